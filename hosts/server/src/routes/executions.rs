//! Executions: starting and reading them.

use super::briefs::{Brief, Briefs};
use super::flows::no_such_flow;
use super::start_terms::{TraceParent, read_terms};
use super::waiting::waiting_for;
use super::why::primary;
use crate::App;
use crate::answers::{Found, Room, aside, find};
use crate::caller::Caller;
use crate::open_requests;
use crate::scope::Scope;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use starbridge_flow::limits::{LABEL_CHARS, LABELS, NAME_CHARS, is_execution_name};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Rejection, Status};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::{Body, Query};
use starbridge_node::node::{ExecutionFilter, Node, Selection, StoredExecution, WaitPermit};
use starbridge_node::offload;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{Dependency, StoreError};
use starbridge_runtime::{Snapshot, StartError, StartFailure, StartRequest};
use std::time::Duration;
use tokio::sync::oneshot;

pub(super) type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The longest wait for an end, in seconds.
const MAX_WAIT_SECONDS: u64 = 60;

pub(super) const START: &[&str] = &[
    "input",
    "name",
    "version",
    "labels",
    "priority",
    "orderTime",
    "startAt",
    "delaySeconds",
    "startDeadlineSeconds",
    "onceKey",
    "after",
    "traceparent",
];

/// Reads a start. A trace context in the body takes precedence over that of the request.
pub(super) fn read_start(flow: &str, body: &Body, traceparent: Option<Text>) -> Answer<StartRequest> {
    let name = read_name(body)?;
    let mut request = StartRequest {
        flow: Text::from(flow),
        version: body.number("version")?,
        input: body.object("input")?.unwrap_or_default().into(),
        name,
        labels: read_labels(body)?,
        traceparent,
        ..StartRequest::default()
    };
    read_terms(body, &mut request)?;
    Ok(request)
}

/// The name for an execution, if the request gives one.
pub(super) fn read_name(body: &Body) -> Answer<Option<Text>> {
    let name = body.text("name")?;
    match name.as_ref().filter(|name| !is_execution_name(name)) {
        None => Ok(name),
        Some(name) => Err(Problem::bad(format!(
            "{} is no name of an execution: 1 to 128 of `A-Z a-z 0-9 _ -`, not beginning with `-`",
            quoted(name)
        ))),
    }
}

fn read_labels(body: &Body) -> Answer<Option<Object>> {
    let labels = body.texts("labels")?.filter(|labels| !labels.is_empty());
    let Some(labels) = labels else {
        return Ok(None);
    };
    if labels.len() > LABELS {
        return Err(Problem::bad(format!("an execution has at most {LABELS} labels")));
    }
    for (key, value) in &labels {
        if key.is_empty() || key.contains(':') || key.chars().count() > NAME_CHARS {
            let detail = format!("a label's name has 1 to {NAME_CHARS} characters and no colon");
            return Err(Problem::bad(detail));
        }
        if value.as_str().is_some_and(|value| value.chars().count() > LABEL_CHARS) {
            let detail = format!("the label `{key}` says more than {LABEL_CHARS} characters");
            return Err(Problem::bad(detail));
        }
    }
    Ok(Some(labels))
}

/// `POST /v1/flows/{name}/executions`
pub async fn start(
    State(app): State<App>,
    Path(flow): Path<String>,
    query: Parameters,
    Extension(caller): Extension<Caller>,
    TraceParent(traceparent): TraceParent,
    mut body: Sent,
) -> Answer {
    let wait = Query::of(query.0, &["wait"])?.number("wait", 0, 0, MAX_WAIT_SECONDS)?;
    let mut request = Box::new(read_start(&flow, &body.read(START).await?, traceparent)?);
    request.by = caller.0.clone();
    let room = app.answers.room_before(request.input.json_len())?;
    let (status, found, room) = begin(&app, &caller, &request, wait, room).await?;
    room.execution(status, found).await
}

/// A permit to wait, for a request that waits.
fn wait_permit(app: &App, wait: u64) -> Answer<Option<WaitPermit>> {
    Ok((wait > 0).then(|| app.node.wait_permit()).transpose()?)
}

/// An execution, with the status of the answer and room to show it.
pub(super) type Shown = (StatusCode, Found, Room);

/// How often a start is tried again because the execution that had its key or name was deleted meanwhile.
const BEGIN_TRIES: usize = 5;

/// Starts an execution, or finds the one that the same request has started before.
pub(super) async fn begin(app: &App, caller: &Caller, request: &StartRequest, wait: u64, room: Room) -> Answer<Shown> {
    let _permit = wait_permit(app, wait)?;
    let mut room = Some(room);
    for _ in 0..BEGIN_TRIES {
        let room = match room.take() {
            Some(room) => room,
            None => app.answers.room_before(request.input.json_len())?,
        };
        if let Some(shown) = begin_or_find(app, caller, request, wait, room).await? {
            return Ok(shown);
        }
    }
    Err(Problem::busy())
}

/// Starts an execution, or finds the one that has its key. `None`: the execution that has the key or the name was deleted before it could be shown.
async fn begin_or_find(
    app: &App,
    caller: &Caller,
    request: &StartRequest,
    wait: u64,
    room: Room,
) -> Answer<Option<Shown>> {
    if let Some(known) = known_start(app, request)? {
        return same(app, caller, request, known, wait, room).await;
    }
    check_dependencies(app, request)?;
    match app.node.begin(Box::new(request.clone()), wait > 0).await {
        Ok(start) => {
            let (found, room) = match start.end {
                None => (Found::Live(Box::new(start.snapshot)), room),
                Some(end) => ended(app, start.snapshot.execution, end, wait, room).await?,
            };
            Ok(Some((StatusCode::CREATED, found, room)))
        }
        Err(StartFailure::Exists(known)) => same(app, caller, request, known, wait, room).await,
        Err(StartFailure::Refused(StartError::NoSuchFlow)) => Err(match request.version {
            None => no_such_flow(&request.flow),
            Some(version) => {
                let detail = format!("there is no version {version} of the flow `{}`", request.flow);
                Problem::missing("NoSuchFlow", detail)
            }
        }),
        Err(failure) => Err(not_started(&request.flow, request.name.as_ref(), failure)),
    }
}

/// An execution that a start waits for by id must exist. A name may appear later.
pub(super) fn check_dependencies(app: &App, request: &StartRequest) -> Answer<()> {
    for Dependency { flow, execution, .. } in &request.after {
        let detail = match flow {
            // A name of the flow itself is refused with it.
            Some(flow) if *flow == request.flow || may_appear(app, flow, execution)? => continue,
            Some(flow) => format!("`after` has `{flow}/{execution}`, and there is no flow `{flow}`: put it first"),
            None if app.node.store().record(execution)?.is_some() => continue,
            None => format!(
                "`after` has the id `{execution}`, and there is no such execution: leave it out, or give `FLOW/NAME` of one that is yet to come"
            ),
        };
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "UnknownDependency",
            detail,
        ));
    }
    let Some(name) = &request.name else {
        return Ok(());
    };
    match app.node.find_cycle((&request.flow, name), &request.after)? {
        Some(cycle) => {
            let (flow, cycle_of) = (&request.flow, cycle.join(", "));
            tracing::warn!(%flow, %name, cycle = %cycle_of, "a start that would wait for itself is refused");
            Err(cyclic(&cycle))
        }
        None => Ok(()),
    }
}

/// Whether the flow can be started, or the execution is already there: a deleted flow starts nothing new.
fn may_appear(app: &App, flow: &str, name: &str) -> Result<bool, StoreError> {
    let flows = app.node.flows();
    Ok(flows.get(flow, None).is_some() || flows.has(flow) && app.node.store().named(flow, name)?.is_some())
}

/// The problem with a start that would wait for itself.
fn cyclic(cycle: &[String]) -> Problem {
    let detail = match cycle {
        [alone] => format!("`{alone}` can't wait for itself (`after`)"),
        [first, others @ ..] => {
            let others: Vec<String> = others.iter().map(|other| format!("`{other}`")).collect();
            format!(
                "`{first}` would wait for {}, which waits for `{first}` (`after`); leave one of them out",
                others.join(", which waits for ")
            )
        }
        [] => String::new(),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "DependencyCycle", detail)
}

/// The execution that has the key of a start, or else its name.
pub(super) fn known_start(app: &App, request: &StartRequest) -> Result<Option<Text>, StoreError> {
    let store = app.node.store();
    let keyed = request.once_key.as_ref().map(|key| store.keyed(&request.flow, key));
    if let Some(known) = keyed.transpose()?.flatten() {
        return Ok(Some(known));
    }
    let named = request.name.as_ref().map(|name| store.named(&request.flow, name));
    Ok(named.transpose()?.flatten())
}

/// The problem if the start of an execution with this name failed.
pub fn not_started(flow: &str, name: Option<&Text>, failure: StartFailure) -> Problem {
    match failure {
        StartFailure::Refused(error @ StartError::NoSuchFlow) => Problem::missing("NoSuchFlow", error.to_string()),
        StartFailure::Refused(StartError::InvalidInput(violations)) => Rejection::InvalidInput(violations).into(),
        StartFailure::Refused(StartError::Refused(rejection)) => rejection.into(),
        StartFailure::Refused(StartError::InvalidKey(why)) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidConcurrencyKey", why)
        }
        StartFailure::Refused(error @ StartError::NotSupported(_)) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", error.to_string())
        }
        StartFailure::Refused(error @ StartError::TooManyWaiting(_)) => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyWaiting", error.to_string())
        }
        StartFailure::Refused(error @ StartError::Panicked(_)) => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "Panicked", error.to_string())
        }
        StartFailure::Exists(id) => taken(flow, name, &id),
        StartFailure::NoFork(error) => Problem::new(StatusCode::CONFLICT, "NotForkable", error.to_string()),
        StartFailure::Busy => Problem::busy(),
        StartFailure::NoRoom => Problem::no_room(),
        StartFailure::Stopping => Problem::stopping(),
    }
}

/// The problem with a name that an execution has.
pub(super) fn taken(flow: &str, name: Option<&Text>, id: &str) -> Problem {
    let name = name.map(Text::as_str).unwrap_or_default();
    let detail = format!("the flow `{flow}` has an execution named `{name}` already");
    Problem::new(StatusCode::CONFLICT, "ExecutionAlreadyExists", detail).with("execution", id.into())
}

/// The execution with that key or that name, waiting, running or ended, if it was started with the
/// same input (and version, if the request gives one). `None` if it was deleted meanwhile.
async fn same(
    app: &App,
    caller: &Caller,
    request: &StartRequest,
    id: Text,
    wait: u64,
    room: Room,
) -> Answer<Option<Shown>> {
    let (kept, room) = match find(app, id, room).await {
        Err(problem) if problem.code() == "NoSuchExecution" => return Ok(None),
        found => found?,
    };
    let keyed = request.once_key.is_some() && request.once_key == kept.record.once_key;
    if keyed && app.access.may(caller.0.as_deref(), Scope::Read) {
        let (found, room) = wait_for_end(app, kept, wait, room).await?;
        return Ok(Some((StatusCode::OK, found, room)));
    }
    let id = kept.execution.clone();
    let taken = || {
        taken(&request.flow, request.name.as_ref(), &id)
            .with_detail(|detail| format!("{detail}, started with another input, version or key"))
    };
    let version = request.version.is_none_or(|version| version == kept.record.version);
    // A key that was not stored would begin another execution next time.
    if !keyed && (!version || request.once_key.is_some()) {
        return Err(taken());
    }
    let input = request.input.clone();
    let bytes = kept.bytes().max(input.json_len());
    let compared = offload::work(bytes, move || kept.has_input(&input).map(|same| (same, kept)));
    let (same, kept) = compared.await??;
    if !same && !keyed {
        return Err(taken());
    }
    let (found, room) = wait_for_end(app, kept, wait, room).await?;
    // A key may be guessed: it shows nobody else's data.
    let found = if same { found } else { Found::Withheld(Box::new(found)) };
    Ok(Some((StatusCode::OK, found, room)))
}

/// The execution when it has ended, or when this many seconds have passed.
async fn wait_for_end(app: &App, kept: StoredExecution, wait: u64, mut room: Room) -> Answer<(Found, Room)> {
    if wait == 0 || kept.record.ended.is_some() {
        return Ok((Found::Stored(Box::new(kept)), room));
    }
    let end = app.node.await_end(&kept.execution).await?;
    let id = kept.execution.clone();
    // Waiting takes no room.
    drop(kept);
    room.hold(0)?;
    ended(app, id, end, wait, room).await
}

async fn ended(app: &App, id: Text, end: oneshot::Receiver<Snapshot>, wait: u64, room: Room) -> Answer<(Found, Room)> {
    let waiting = open_requests::waits();
    let end = tokio::time::timeout(Duration::from_secs(wait), end).await;
    drop(waiting);
    match end {
        Ok(Ok(ended)) => Ok((Found::Live(Box::new(ended)), room)),
        // It had ended before, or it has not ended yet.
        Ok(Err(_)) | Err(_) => {
            let (kept, room) = find(app, id, room).await?;
            Ok((Found::Stored(Box::new(kept)), room))
        }
    }
}

/// `GET /v1/executions/{id}`
pub async fn show(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["data", "wait"])?;
    let wait = query.number("wait", 0, 0, MAX_WAIT_SECONDS)?;
    match query.get("data") {
        None => {}
        Some("none") if wait == 0 => return without_data(&app, Text::from(id)).await,
        Some("none") => return Err(Problem::bad("`data` and `wait` do not go together")),
        Some(other) => {
            return Err(Problem::bad(format!(
                "`data` can only be `none`, not {}",
                quoted(other)
            )));
        }
    }
    let _permit = wait_permit(&app, wait)?;
    let (kept, room) = find(&app, Text::from(id), app.answers.room()).await?;
    let (found, room) = wait_for_end(&app, kept, wait, room).await?;
    shown(&app, found, room).await
}

/// An execution without its input and output, which are not read.
async fn without_data(app: &App, id: Text) -> Answer {
    let shape = aside(&app.node, move |node| {
        let kept = node.stored_without_request(&id)?;
        let mut shape = shapes::without_data(&kept);
        if let Some(waiting) = waiting_of(node, &kept)? {
            shape.insert("waitingFor".into(), waiting);
        }
        Ok::<_, Problem>(shape)
    });
    app.answers.value(StatusCode::OK, shape.await??.into()).await
}

/// How many events are read to find what an execution waits for. With more events, the answer is as
/// short as in lists.
const READ_EVENTS: u64 = 200;

/// What an execution waits for that has not ended and is not set aside or paused. The record has
/// those other reasons.
fn waiting_of(node: &Node, kept: &StoredExecution) -> Answer<Option<Value>> {
    let (id, record) = (&kept.execution, &kept.record);
    if record.ended.is_some() || record.broken.is_some() || record.paused.is_some() {
        return Ok(None);
    }
    let waiting = match record.status {
        Status::Queued | Status::Blocked => Some(waiting_for(node.store().as_ref(), id, record)?),
        Status::Delayed => None,
        _ if kept.last_event().0 <= READ_EVENTS => Some(primary(node, id, record)?),
        _ => Briefs::new(node).of(id, record)?.map(Brief::into_value),
    };
    Ok(waiting.filter(|waiting| *waiting != Value::Null))
}

/// An answer with an execution. If it has not ended, it says what it waits for.
async fn shown(app: &App, found: Found, room: Room) -> Answer {
    let kept = match found {
        Found::Stored(kept) if kept.record.ended.is_none() => kept,
        found => return room.execution(StatusCode::OK, found).await,
    };
    let (found, waiting) = aside(&app.node, move |node| {
        waiting_of(node, &kept).map(|waiting| (Found::Stored(kept), waiting))
    })
    .await??;
    let Some(waiting) = waiting else {
        return room.execution(StatusCode::OK, found).await;
    };
    let bytes = found.bytes() + waiting.json_len();
    let make = move || {
        let mut shape = match found.shape()? {
            Value::Object(shape) => shape,
            other => return Ok(other),
        };
        shape.insert("waitingFor".into(), waiting);
        Ok(shape.into())
    };
    room.write(StatusCode::OK, bytes, make).await
}

/// `GET /v1/flows/{name}/executions/{executionName}`
pub async fn named(State(app): State<App>, Path((flow, name)): Path<(String, String)>) -> Answer {
    let found = aside(&app.node, move |node| {
        let id = node.store().named(&flow, &name)?;
        id.ok_or_else(|| {
            let detail = format!("the flow `{flow}` has no execution named `{name}`");
            Problem::missing("NoSuchExecution", detail)
        })
    });
    let id = found.await??;
    let (kept, room) = find(&app, id, app.answers.room()).await?;
    shown(&app, Found::Stored(Box::new(kept)), room).await
}

/// `GET /v1/executions`
pub async fn list(State(app): State<App>, query: Parameters) -> Answer {
    const KNOWN: &[&str] = &[
        "flow",
        "status",
        "reason",
        "reasonOf",
        "name",
        "parent",
        "root",
        "label",
        "from",
        "to",
        "error",
        "step",
        "endedFrom",
        "endedTo",
        "cursor",
        "limit",
    ];
    let query = Query::of(query.0, KNOWN)?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let cursor = query.get("cursor").map(Text::from);
    let Some(mut wanted) = filter_of(&query)?.selection().map_err(Problem::bad)? else {
        let none = with_looked(shapes::page(Vec::new(), None), None);
        return app.answers.value(StatusCode::OK, none).await;
    };
    wanted.query.cursor = cursor;
    wanted.query.limit = limit;
    let page = aside(&app.node, move |node| listed(node, &wanted));
    app.answers.value(StatusCode::OK, page.await??).await
}

/// The filter that a query spells.
fn filter_of(query: &Query) -> Answer<ExecutionFilter> {
    let text = |key: &str| query.get(key).map(Text::from);
    Ok(ExecutionFilter {
        flow: text("flow"),
        status: query.all("status").into_iter().map(Text::from).collect(),
        reason: text("reason"),
        reason_of: text("reasonOf"),
        name: text("name"),
        parent: family(query, "parent")?,
        root: family(query, "root")?,
        labels: labels_of(query)?,
        from: text("from"),
        to: text("to"),
        error: text("error"),
        step: text("step"),
        ended_from: text("endedFrom"),
        ended_to: text("endedTo"),
    })
}

/// The labels that are asked for.
fn labels_of(query: &Query) -> Answer<Vec<(Text, Text)>> {
    let label = |label: &str| {
        let (key, value) = label
            .split_once(':')
            .ok_or_else(|| Problem::bad(format!("`label` is written `key:value`, not {}", quoted(label))))?;
        Ok((Text::from(key), Text::from(value)))
    };
    query.each("label").map(label).collect()
}

/// A page of executions, each with its reason.
fn listed(node: &Node, wanted: &Selection) -> Result<Value, StoreError> {
    let page = node.store().list(&wanted.query)?;
    let mut briefs = Briefs::new(node);
    let mut items = Vec::with_capacity(page.items.len());
    for listed in &page.items {
        let brief = briefs.of(&listed.id, &listed.record)?;
        if wanted.fits(brief.as_ref().map(Brief::fine)) {
            let mut shape = shapes::record(&listed.id, &listed.record);
            if let Some(brief) = brief {
                brief.tell(&mut shape);
            }
            items.push(shape.into());
        }
    }
    let shape = shapes::page(items, page.next.map(Value::from));
    Ok(with_looked(shape, page.looked))
}

/// A page of executions that says how far was looked, where that is less far than the page has room.
fn with_looked(page: Value, looked: Option<Timestamp>) -> Value {
    match page {
        Value::Object(mut page) => {
            let looked = looked.map(|looked| Value::from(looked.to_string()));
            page.insert("looked".into(), looked.unwrap_or_default());
            page.into()
        }
        other => other,
    }
}

/// The id of the execution whose family is requested. An empty id is a mistake, because without it
/// everything is listed.
fn family(query: &Query, key: &str) -> Answer<Option<Text>> {
    if query.is_empty(key) {
        return Err(Problem::bad(format!("`{key}` is empty: give the id of an execution")));
    }
    Ok(query.get(key).map(Text::from))
}
