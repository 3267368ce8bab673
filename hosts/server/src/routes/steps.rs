//! The steps of a history: visits, attempts, iterations. All are read from one fold.

use super::route::{PAGE, Route};
use crate::App;
use crate::folds::Folded;
use crate::scope::Scope;
use crate::shapes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::graph::{Budget, Flow, Root, StepKind};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::http::reading::Query;
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_node::visits::{ChildStatus, Children, Row, STEP_STATUSES, Span, SpanKind, VisitFilter, Visits};
use starbridge_runtime::QueueView;
use std::collections::HashMap;
use std::sync::Arc;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The routes of steps.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/executions/{id}/steps",
        scope: Some(Scope::Read),
        summary: "Its steps, one row for each visit",
        query: &[
            PAGE[0],
            ("limit", "how many at most: 1 to 10000, 1000 where none is given"),
            (
                "status",
                "only those that stand so: `retrying` are those that wait for a retry; a page may have fewer than `limit`, and \
                 `next` all the same",
            ),
            ("step", "only visits of the step of this name"),
            (
                "path",
                "only those inside of this place: their `path` begins with this list, written as JSON",
            ),
            AT,
        ],
        body: None,
        answers: &[
            (200, "a page of rows", Some("StepPage")),
            (404, "there is no such execution", Some("Problem")),
        ],
        handler: Some(|| get(steps)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}/steps/{event}",
        scope: Some(Scope::Read),
        summary: "A visit of a step with its attempts, given by the `event` of its row: what went in, what was sent, what came back",
        query: &[
            (
                "bytes",
                "data of more bytes is left out and its size told in `left`: 0 to 1048576, 16384 where none is given",
            ),
            AT,
        ],
        body: None,
        answers: &[
            (200, "the visit", Some("Visit")),
            (404, "there is no such execution or visit", Some("Problem")),
        ],
        handler: Some(|| get(visit)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}/iterations",
        scope: Some(Scope::Read),
        summary: "How the iterations of a foreach stand, or the branches of a parallel, with a map of all",
        query: &[
            ("event", "the `event` of the composite's row among the steps"),
            (
                "status",
                "only those that stand so: `running`, `succeeded`, `failed`, `cancelled` or `notBegun`",
            ),
            PAGE[0],
            PAGE[1],
            AT,
        ],
        body: None,
        answers: &[
            (
                200,
                "counts, a letter for each, and a page of those that are wanted",
                Some("Iterations"),
            ),
            (404, "there is no such execution or visit", Some("Problem")),
        ],
        handler: Some(|| get(iterations)),
    },
];

/// The parameter for the event at which something is shown.
pub(super) const AT: (&str, &str) = (
    "at",
    "as it was after the event of this number; the last where none is given",
);

/// The event of the parameter `at`.
pub(super) fn at(query: &Query) -> Answer<Option<EventId>> {
    match query.get("at") {
        None => Ok(None),
        Some(_) => Ok(Some(EventId(query.number("at", 1, 1, u64::MAX)?))),
    }
}

/// `GET /v1/executions/{id}/steps`
async fn steps(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["cursor", "limit", "status", "step", "path", "at"])?;
    let limit = usize::try_from(query.number("limit", 1000, 1, 10_000)?).unwrap_or(1000);
    let filter = VisitFilter {
        status: status(&query)?,
        step: query.get("step").map(str::to_owned),
        path: query.get("path").map(path).transpose()?,
        after: query.number("cursor", 0, 0, u64::MAX)?,
    };
    let at = at(&query)?;
    let queues = app.node.queue_views(QUEUES).await.into_iter();
    let queues: HashMap<Text, QueueView> = queues.map(|queue| (queue.name.clone(), queue)).collect();
    let make_of = app.clone();
    let make = move || {
        let node = &make_of.node;
        let folded = make_of.folds.get(node, &id, at)?;
        let visits = folded.visits();
        let (rows, next) = match visits.is_full() {
            false => visits.page(&folded.flow, &filter, limit),
            true => long(node, &id, &folded, &filter, limit)?,
        };
        let items = told(node, &id, &folded.flow, rows, &queues);
        Ok::<_, Problem>(shapes::page(items, next.map(Value::from)))
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// A page of the steps of a history that is too long to be kept folded.
fn long(node: &Node, id: &str, folded: &Folded, filter: &VisitFilter, limit: usize) -> Answer<(Vec<Row>, Option<u64>)> {
    let mut visits = Visits::new(limit).after(filter.after);
    if let Some(status) = &filter.status {
        visits = visits.only(status);
    }
    let last = folded.fold.last;
    node.each_event(id, |flow, event| {
        visits.see(flow, event);
        event.id < last
    })?;
    let ended = folded.ended.then(|| visits.time());
    let (rows, next) = visits.into_rows(ended);
    Ok((filter.of(&folded.flow, rows), next))
}

/// Rows in the form of the API.
fn told(node: &Node, id: &str, flow: &Flow, rows: Vec<Row>, queues: &HashMap<Text, QueueView>) -> Vec<Value> {
    let task = |call: EventId| (Text::from(id), call);
    let waiting = rows.iter().filter_map(Row::awaited_worker);
    let holders = node.holders(waiting.map(|(call, _)| task(call)).collect());
    let standing = |call: EventId, queue: &str| match holders.get(&task(call)) {
        Some((worker, since)) => Some(format!("`{worker}` has it since {since}")),
        None => queues.get(queue).map(queue_in_words),
    };
    rows.into_iter().map(|row| row.into_value(flow, standing)).collect()
}

fn status(query: &Query) -> Answer<Option<String>> {
    let status = query.get("status").map(str::to_owned);
    if let Some(status) = status.as_deref().filter(|status| !STEP_STATUSES.contains(status)) {
        let detail = format!(
            "`status` must be one of {}, not {}",
            STEP_STATUSES.join(", "),
            quoted(status)
        );
        return Err(Problem::bad(detail));
    }
    Ok(status)
}

/// A requested place.
fn path(text: &str) -> Answer<Value> {
    let read = Value::read_bounded(text.as_bytes(), Value::most_memory(text.len()));
    let read = read.ok().filter(|path| path.as_array().is_some());
    read.ok_or_else(|| {
        let form = "as the `path` of a row: `[{\"step\": \"each\", \"iteration\": 3}]`";
        Problem::bad(format!("`path` must be a list in JSON, {form}, not {}", quoted(text)))
    })
}

/// The largest number of queues whose state is added to steps.
pub(super) const QUEUES: usize = 1_000;

/// The state of a queue, for a step that waits for one of its workers.
fn queue_in_words(view: &QueueView) -> String {
    if view.settings.paused {
        return "it is paused".to_owned();
    }
    let serving = match (view.workers, view.busy) {
        (0, 0) => "no worker".to_owned(),
        (idle, busy) => format!("workers: {idle} idle, {busy} busy"),
    };
    format!("{} waiting, {} held, {serving}", view.waiting, view.held)
}

/// The number of the event in an address.
pub(super) fn entered(event: &str) -> Answer<u64> {
    let number = event.parse().ok();
    number.ok_or_else(|| Problem::bad(format!("{} is not the number of an event", quoted(event))))
}

/// The visit that an event entered.
pub(super) fn row_of(visits: &Visits, event: u64) -> Answer<Arc<Row>> {
    visits.row(event).ok_or_else(|| {
        let detail = match visits.is_full() {
            true => format!("event {event} enters no step, or the history is too long to look into its visits"),
            false => format!("event {event} enters no step: `steps` lists the `event` of each visit"),
        };
        Problem::missing("NoSuchEvent", detail)
    })
}

/// `GET /v1/executions/{id}/steps/{event}`
async fn visit(State(app): State<App>, Path((id, event)): Path<(String, String)>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["bytes", "at"])?;
    let most = usize::try_from(query.number("bytes", 16 << 10, 0, 1 << 20)?).unwrap_or(0);
    let (event, at) = (entered(&event)?, at(&query)?);
    let queues = app.node.queue_views(QUEUES).await.into_iter();
    let queues: HashMap<Text, QueueView> = queues.map(|queue| (queue.name.clone(), queue)).collect();
    let make_of = app.clone();
    let make = move || {
        let node = &make_of.node;
        let folded = make_of.folds.get(node, &id, at)?;
        let visits = folded.visits();
        let row = row_of(&visits, event)?;
        let (mut attempts, mut pauses) = (Vec::new(), Vec::new());
        for span in row.spans() {
            match span.kind {
                SpanKind::Attempt => attempts.push(attempt(node, &id, span, most)?),
                _ => pauses.push(span.to_value()),
            }
        }
        let last = row.spans().iter().rfind(|span| span.kind == SpanKind::Attempt);
        let event_of_last = last.map(|span| span.call.as_ref().map_or(span.event, |(call, _)| *call));
        if let Some(input) = event_of_last.and_then(|event| open_input(node, &id, event, &folded.flow, &row)) {
            attempts = attempts
                .into_iter()
                .map(|tried| with_input(tried, &input, most))
                .collect();
        }
        let left_out = row.spans_left_out();
        let mut shape = match told(node, &id, &folded.flow, vec![Row::clone(&row)], &queues).pop() {
            Some(Value::Object(shape)) => shape,
            _ => Object::new(),
        };
        // The row has the number of attempts; here are their details.
        shape.insert("tries".into(), attempts.into());
        shape.insert("pauses".into(), pauses.into());
        shape.insert("earlierLeftOut".into(), left_out.into());
        Ok::<_, Problem>(shape.into())
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// To find the input of a step, a state after more events than this is not folded.
const FOLDED_EVENTS: u64 = 100_000;

/// The input of a step whose mappings made none: the state's input for it at the end of the turn
/// with that event. `None` if the visit was over by then.
fn open_input(node: &Node, id: &str, event: EventId, flow: &Flow, row: &Row) -> Option<Value> {
    if event.0 > FOLDED_EVENTS {
        return None;
    }
    let open = node.steps_open_at(id, event).ok()?;
    let path = row.path(flow);
    let mut open = open
        .iter()
        .filter(|open| open.get("step").and_then(Value::as_str) == Some(row.step()));
    let same = open.find(|open| open.get("path") == Some(&path))?;
    same.get("input").cloned()
}

/// An attempt with the input of its visit, unless mappings made one.
fn with_input(tried: Value, input: &Value, most: usize) -> Value {
    let Value::Object(mut tried) = tried else {
        return tried;
    };
    let has_own = tried.contains_key("input") || tried.get("left").is_some_and(|left| left.get("input").is_some());
    if !has_own && input.json_len() <= most {
        tried.insert("input".into(), input.clone());
    }
    tried.into()
}

/// An attempt with its data.
fn attempt(node: &Node, id: &str, span: &Span, most: usize) -> Answer<Value> {
    let mut shape = span.to_value().as_object().cloned().unwrap_or_default();
    let mut left = Object::new();
    let parts = [
        ("input", Some(span.event), "input"),
        ("sent", span.call.as_ref().map(|(call, _)| *call), "params"),
        ("received", span.result, "result"),
        ("output", span.last, "output"),
    ];
    for (name, event, member) in parts {
        let Some(event) = event else { continue };
        let read = node.written_event(id, event)?;
        let datum = read.get("detail").and_then(|detail| detail.get(member)).cloned();
        match datum {
            Some(datum) if datum.json_len() <= most => drop(shape.insert(name.into(), datum)),
            Some(datum) => {
                let bytes = datum.json_len() as u64;
                let place: Object = [
                    ("event".into(), Value::from(event.0)),
                    ("part".into(), Text::from(member).into()),
                    ("bytes".into(), bytes.into()),
                ]
                .into_iter()
                .collect();
                left.insert(name.into(), place.into());
            }
            None => {}
        }
    }
    if !left.is_empty() {
        shape.insert("left".into(), left.into());
    }
    Ok(shape.into())
}

/// `GET /v1/executions/{id}/iterations`
async fn iterations(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["event", "status", "cursor", "limit", "at"])?;
    let Some(event) = query.get("event") else {
        return Err(Problem::bad(
            "`event` is missing: the `event` of the foreach's row among the steps",
        ));
    };
    let (event, at) = (entered(event)?, at(&query)?);
    let wanted = query.get("status").map(child_status).transpose()?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let after = query.number("cursor", 0, 0, u64::MAX)?;
    let make_of = app.clone();
    let make = move || {
        let folded = make_of.folds.get(&make_of.node, &id, at)?;
        let visits = folded.visits();
        let row = row_of(&visits, event)?;
        let children = visits.children(event);
        let known = children.and_then(|children| children.total);
        let total = known.or_else(|| items_of(&make_of.node, &id, &folded, &row));
        let asked = Asked { wanted, after, limit };
        Ok::<_, Problem>(map(&row, children, total, &asked))
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// The number of items of a foreach that is in progress.
fn items_of(node: &Node, id: &str, folded: &Folded, row: &Row) -> Option<u64> {
    let Some(StepKind::Foreach(foreach)) = folded.flow.step(row.number()).map(|step| &step.kind) else {
        return None;
    };
    let input = open_input(node, id, folded.fold.last, &folded.flow, row)?;
    let found = foreach
        .collection
        .find(Root::Object(input.as_object()?), &Budget::unlimited());
    let Ok(Some(Value::Array(items))) = found else {
        return None;
    };
    Some(items.len() as u64)
}

fn child_status(word: &str) -> Answer<ChildStatus> {
    let found = ChildStatus::ALL.into_iter().find(|status| status.as_str() == word);
    found.ok_or_else(|| {
        let known = ChildStatus::ALL.map(ChildStatus::as_str).join(", ");
        Problem::bad(format!("`status` must be one of {known}, not {}", quoted(word)))
    })
}

/// Which children are listed.
struct Asked {
    wanted: Option<ChildStatus>,
    after: u64,
    limit: usize,
}

/// The map of a composite's children: a letter for each, in order.
fn map(row: &Row, children: Option<&Children>, total: Option<u64>, asked: &Asked) -> Value {
    let Asked { wanted, after, limit } = *asked;
    let (mut letters, mut counts, mut items) = (String::new(), [0_u64; ChildStatus::ALL.len()], Vec::new());
    let mut next = None;
    let known = children.map_or(0, |children| children.len() as u64);
    let unknown = total.unwrap_or(known).saturating_sub(known);
    let each = children.into_iter().flat_map(|children| children.each());
    let not_begun = (0..unknown).map(|_| (ChildStatus::None, EventId(0)));
    for (number, (status, event)) in (0_u64..).zip(each.chain(not_begun)) {
        letters.push(status.letter());
        if let Some(count) = counts.get_mut(status as usize) {
            *count += 1;
        }
        if number < after || wanted.is_some_and(|wanted| wanted != status) || next.is_some() {
            continue;
        }
        if items.len() == limit {
            next = Some(number);
            continue;
        }
        let mut item = Object::new();
        item.insert("number".into(), number.into());
        item.insert("status".into(), Text::from(status.as_str()).into());
        if event != EventId(0) {
            item.insert("event".into(), event.0.into());
        }
        items.push(item.into());
    }
    let counted = ChildStatus::ALL.into_iter().zip(counts);
    let counted = counted.map(|(status, count)| (Text::from(status.as_str()), count.into()));
    let mut shape = Object::new();
    shape.insert("event".into(), row.event().into());
    shape.insert("step".into(), Text::from(row.step()).into());
    shape.insert("total".into(), total.map(Value::from).unwrap_or_default());
    shape.insert("counts".into(), counted.collect::<Object>().into());
    shape.insert("map".into(), Text::from(letters).into());
    shape.insert("items".into(), items.into());
    shape.insert("next".into(), next.map(Value::from).unwrap_or_default());
    shape.into()
}
