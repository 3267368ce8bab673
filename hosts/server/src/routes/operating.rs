//! Operating executions: stop, redrive, fork, skip an undo, resolve a step, delete.

use super::executions::{not_started, read_name, taken};
use super::flows::not_put;
use crate::App;
use crate::answers::{Found, find};
use crate::caller::Caller;
use crate::scope::{Scope, lacks};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use starbridge_flow::limits::ERROR_CAUSE_CHARS;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Decision, EditedInput, EventId, Rejection, Resolution, ResolutionAction, Signal, cut};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::Body;
use starbridge_node::node::operator_signals as signals;
use starbridge_node::node::{
    BAD_RESOLUTION, DefinedForkRefusal, Operator, QueryError, Redrive, WantedFork, WantedRedrive, check_decision,
};
use starbridge_node::offload;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{AuditEntry, AuditKind};
use starbridge_runtime::Reply;
use tokio::sync::Semaphore;

/// `POST /v1/executions/{id}/stop`
pub async fn stop(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["error", "cause", "rollback"]).await?;
    let error = body.text("error")?.map(|error| error.to_string());
    let rollback = body.flag("rollback")?.unwrap_or(false);
    let stop = signals::stop(Some(operator.by.to_string()), error, cause(&body)?, rollback);
    let audit = audit(&app, &operator, "stop", &id, &body);
    give(&app, &id, stop, audit).await
}

/// `POST /v1/executions/{id}/redrive`
pub async fn redrive(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["inputs", "input", "version"]).await?;
    if body.get("input").is_some() {
        let detail =
            "a redrive keeps the execution's input: `inputs` changes that of steps, `{\"event\", \"input\"}` each";
        return Err(not_supported(detail));
    }
    let inputs = match body.get("inputs") {
        None => Vec::new(),
        Some(inputs) => read_inputs(inputs)?,
    };
    let by = Some(operator.by.to_string());
    let mut audit = audit(&app, &operator, "redrive", &id, &body);
    if !inputs.is_empty() {
        let edited: Vec<Value> = inputs.iter().map(|edited| edited.event.0.into()).collect();
        audit = audit.with("inputs", edited);
    }
    let Some(version) = body.get("version") else {
        let definition = None;
        return give(&app, &id, Signal::Redrive { by, inputs, definition }, audit).await;
    };
    let version = match version.as_str() {
        Some("latest") => None,
        Some(_) => return Err(Problem::bad("`version` must be the number of a version, or `latest`")),
        None => body.number("version")?,
    };
    let wanted = WantedRedrive {
        version,
        inputs,
        by,
        audit: Some(audit.clone()),
    };
    let (node, of) = (app.node.clone(), id.clone());
    let request = offload::work(usize::MAX, move || node.redrive_request(&of, wanted)).await??;
    let reply = match request {
        Redrive::Same(signal, version) => return give(&app, &id, signal, audit.with("version", version)).await,
        Redrive::Other(request) => app.node.redefine(*request).await?,
    };
    answered(&app, &id, reply).await
}

fn not_supported(detail: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail)
}

/// The inputs of a redrive.
fn read_inputs(inputs: &Value) -> Answer<Vec<EditedInput>> {
    let wrong = || Problem::bad("`inputs` must be a list of objects with `event` and `input`");
    let inputs = inputs.as_array().ok_or_else(wrong)?;
    let read = |given: &Value| {
        let given = Body::of(given.as_object().ok_or_else(wrong)?.clone(), &["event", "input"])?;
        Ok(EditedInput {
            event: EventId(given.number("event")?.ok_or_else(wrong)?),
            input: given.object("input")?.ok_or_else(wrong)?.into(),
        })
    };
    inputs.values().iter().map(read).collect()
}

/// `POST /v1/executions/{id}/skip`
pub async fn skip(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["cause"]).await?;
    let skip = signals::skip(&operator.by, cause(&body)?);
    let audit = audit(&app, &operator, "skip", &id, &body);
    give(&app, &id, skip, audit).await
}

/// `POST /v1/executions/{id}/pause`
pub async fn pause(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["cause"]).await?;
    let pause = signals::pause(&operator.by, cause(&body)?);
    let audit = audit(&app, &operator, "pause", &id, &body);
    give_once(&app, &id, pause, audit).await
}

/// `POST /v1/executions/{id}/resume`
pub async fn resume(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&[]).await?;
    let audit = audit(&app, &operator, "resume", &id, &body);
    give_once(&app, &id, signals::resume(&operator.by), audit).await
}

/// Gives a signal to an execution that runs or waits to begin. If the execution is already in the
/// requested state, nothing changes, and this is not an error.
async fn give_once(app: &App, id: &str, signal: Signal, audit: AuditEntry) -> Answer {
    let given = app.node.signal_audited(&Text::from(id), signal, Some(audit)).await?;
    let reply = match given {
        Reply::Rejected(Rejection::AlreadyPaused | Rejection::NotPaused) => Reply::Taken,
        Reply::Rejected(Rejection::Finished) => {
            let detail = "the execution has ended: only one that has not ended can be paused or resumed; `redrive` lets it go on";
            return Err(Problem::new(StatusCode::CONFLICT, "NotRunning", detail));
        }
        reply => reply,
    };
    answered(app, id, reply).await
}

/// `POST /v1/executions/{id}/steps/{event}/resolve`
pub async fn resolve(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path((id, event)): Path<(String, String)>,
    mut body: Sent,
) -> Answer {
    let Ok(event) = event.parse() else {
        return Err(Problem::bad(format!("{} is no number of an event", quoted(&event))));
    };
    let event = EventId(event);
    let body = body.read(&["action", "output", "error", "cause", "note"]).await?;
    let resolution = Resolution {
        decision: read_decision(&body)?,
        by: operator.by.clone(),
        note: body.text("note")?,
    };
    let signal = Signal::Resolve {
        request: event,
        resolution: Box::new(resolution),
    };
    let mut entry = audit(&app, &operator, "resolve", &id, &body);
    entry.detail.insert("event".into(), event.0.into());
    let answer = give(&app, &id, signal, entry).await;
    match answer {
        Err(problem) if problem.code() == "NotManual" => Err(not_manual(&app, id, event).await?),
        answer => answer,
    }
}

/// An operator's decision.
fn read_decision(body: &Body) -> Answer<Decision> {
    let action = body.text("action")?;
    let known = action.as_deref().and_then(ResolutionAction::parse);
    let action = known.ok_or_else(|| Problem::bad(BAD_RESOLUTION))?;
    check_decision(action, |member| body.get(member).is_some()).map_err(Problem::bad)?;
    let output = body.object("output")?.map(Value::from);
    let (error, cause) = (body.text("error")?, body.text("cause")?);
    Ok(signals::decision(action, output, error, cause))
}

/// Why an operator acts; empty if nothing is said.
fn cause(body: &Body) -> Answer<String> {
    Ok(body.text("cause")?.map(|cause| cause.to_string()).unwrap_or_default())
}

/// Why a step takes no decision: another operator was first, or it does not wait for an operator.
async fn not_manual(app: &App, id: String, event: EventId) -> Answer<Problem> {
    let node = app.node.clone();
    let resolved = offload::work(usize::MAX, move || node.resolved_step(&id, event)).await??;
    Ok(match resolved {
        None => {
            let detail = "the step does not wait for an operator: `starbridge show EXECUTION --steps` shows which do";
            Problem::new(StatusCode::CONFLICT, "NotManual", detail)
        }
        Some(first) => {
            let (by, time, action) = (&first.by, first.time, first.action.as_str());
            let detail = format!("{} resolved the step before, at {time}: {action}", quoted(by));
            Problem::new(StatusCode::CONFLICT, "AlreadyResolved", detail)
                .with("by", by.as_str().into())
                .with("action", action.into())
                .with("resolvedTime", time.to_string().into())
        }
    })
}

/// The definition that a fork is to run, as text. Who gives one puts a flow.
fn read_definition(app: &App, headers: &HeaderMap, body: &Body) -> Answer<Option<String>> {
    let Some(definition) = body.get("definition") else {
        return Ok(None);
    };
    if body.get("version").is_some() {
        return Err(Problem::bad("a fork has `definition` or `version`: give one of them"));
    }
    if !app.access.allows(headers, Scope::Admin) {
        return Err(lacks(Scope::Admin));
    }
    match definition {
        Value::String(text) => Ok(Some(text.to_string())),
        Value::Object(_) => Ok(Some(definition.to_json())),
        other => {
            let kind = other.kind();
            Err(Problem::bad(format!(
                "`definition` must be an object or the text of one, not {kind}"
            )))
        }
    }
}

/// How many forks are made at once. Each holds the state that it continues, which may be large, until it has begun.
static FORKS: Semaphore = Semaphore::const_new(2);

/// `POST /v1/executions/{id}/fork`
pub async fn fork(
    State(app): State<App>,
    Extension(Caller(caller)): Extension<Caller>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    headers: HeaderMap,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["event", "name", "input", "version", "definition"]).await?;
    let definition = read_definition(&app, &headers, &body)?;
    let event = body.number("event")?;
    let event = event.ok_or_else(|| Problem::bad("`event` is missing: the number of the event to go on from"))?;
    let name = read_name(&body)?;
    let wanted = WantedFork {
        event: EventId(event),
        name: name.clone(),
        version: body.number("version")?,
        definition: None,
        input: body.object("input")?.map(Value::from),
        by: caller,
    };
    let audit = audit(&app, &operator, "fork", &id, &body);
    let _fork = FORKS.acquire().await.map_err(|_| Problem::stopping())?;
    let node = app.node.clone();
    let reading = offload::work(usize::MAX, move || {
        let record = node.store().record(&id)?.ok_or(QueryError::NoSuchExecution)?;
        let mut request = match definition {
            None => node.fork_request(&id, wanted)?,
            Some(definition) => {
                // A definition is not put for a fork that can't begin.
                if let Some(name) = &wanted.name
                    && let Some(other) = node.store().named(&record.flow, name)?
                {
                    return Err(taken(&record.flow, Some(name), &other));
                }
                let made = node.fork_defined(&id, wanted, definition, &operator);
                made.map_err(|refusal| match refusal {
                    DefinedForkRefusal::Fork(refusal) => refusal.into(),
                    DefinedForkRefusal::Put(error) => not_put(&record.flow, error),
                })?
            }
        };
        request.audit = Some(audit);
        Ok::<_, Problem>((record.flow, request))
    });
    let (flow, request) = reading.await??;
    let room = app.answers.room_before(0)?;
    let start = app.node.fork(request).await;
    let start = start.map_err(|failure| not_started(&flow, name.as_ref(), failure))?;
    room.execution(StatusCode::CREATED, Found::Live(Box::new(start.snapshot)))
        .await
}

/// `DELETE /v1/executions/{id}`
pub async fn delete(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Answer<Response> {
    let (node, of) = (app.node.clone(), id.clone());
    let needed = offload::work(usize::MAX, move || node.is_needed(&of));
    if needed.await?? {
        return Err(Problem::needed_by_parent());
    }
    match app.node.delete_execution(&Text::from(id), &operator).await? {
        Reply::Taken => Ok(StatusCode::NO_CONTENT.into_response()),
        Reply::NotEnded => Err(Problem::not_ended()),
        Reply::Held => Err(Problem::held()),
        _ => Err(Problem::missing("NoSuchExecution", "there is no such execution")),
    }
}

/// Members that are data of the execution, which the list would keep longer than the execution.
const DATA: [&str; 4] = ["input", "inputs", "output", "definition"];

/// What the audit list says of a request about an execution: its members are the detail, but for data and definitions.
pub(super) fn audit(app: &App, operator: &Operator, action: &str, id: &str, body: &Body) -> AuditEntry {
    let members = body.members().iter().filter(|(key, _)| !DATA.contains(&key.as_str()));
    let short = |(key, value): (&Text, &Value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.clone(), |text| cut(text, ERROR_CAUSE_CHARS).into());
        (key.clone(), value)
    };
    AuditEntry {
        detail: members.map(short).collect(),
        ..app.node.audit_entry(operator, action, AuditKind::Execution, id)
    }
}

/// Gives a signal. The answer is the execution after it.
async fn give(app: &App, id: &str, signal: Signal, audit: AuditEntry) -> Answer {
    let reply = app.node.signal_audited(&Text::from(id), signal, Some(audit)).await?;
    answered(app, id, reply).await
}

/// The answer to an operator's request: the execution after it.
pub(super) async fn answered(app: &App, id: &str, reply: Reply) -> Answer {
    let id = Text::from(id);
    let status = match reply {
        Reply::Taken => StatusCode::OK,
        // The process that has it finds the message soon.
        Reply::Left => StatusCode::ACCEPTED,
        Reply::Held => return Err(Problem::held()),
        Reply::NoRoom => return Err(Problem::no_room()),
        Reply::SetAside => return Err(Problem::set_aside()),
        Reply::Rejected(rejection) => return Err(rejection.into()),
        _ => return Err(Problem::missing("NoSuchExecution", "there is no such execution")),
    };
    let (kept, room) = find(app, id, app.answers.room_before(0)?).await?;
    room.execution(status, Found::Stored(Box::new(kept))).await
}
