//! Operating executions: stop, redrive, fork and delete.

use super::executions::{not_started, read_name};
use crate::App;
use crate::answers::{Found, find};
use crate::body::Sent;
use crate::caller::Caller;
use crate::reading::Body;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Signal};
use starbridge_node::node::{Operator, QueryError};
use starbridge_node::offload;
use starbridge_node::problem::{Answer, Problem};
use starbridge_ports::{AuditEntry, AuditKind};
use starbridge_runtime::Reply;

/// `POST /v1/executions/{id}/stop`
pub async fn stop(
    State(app): State<App>,
    Extension(Caller(caller)): Extension<Caller>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["error", "cause", "rollback"]).await?;
    let stop = Signal::Stop {
        error: body.text("error")?.map(|error| error.to_string()),
        cause: body.text("cause")?.map(|cause| cause.to_string()).unwrap_or_default(),
        by: caller.map(|name| name.to_string()),
        rollback: body.flag("rollback")?.unwrap_or(false),
    };
    let audit = audit(&app, &operator, "stop", &id, &body);
    give(&app, &id, stop, audit).await
}

/// `POST /v1/executions/{id}/redrive`
pub async fn redrive(
    State(app): State<App>,
    Extension(Caller(caller)): Extension<Caller>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["input", "version"]).await?;
    for member in ["input", "version"] {
        if body.get(member).is_some() {
            let detail = format!("`{member}` can't be changed by a redrive yet: leave it out");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail));
        }
    }
    let by = caller.map(|name| name.to_string());
    let audit = audit(&app, &operator, "redrive", &id, &body);
    give(&app, &id, Signal::Redrive { by }, audit).await
}

/// `POST /v1/executions/{id}/fork`
pub async fn fork(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["event", "name", "input", "version", "definition"]).await?;
    for member in ["input", "version", "definition"] {
        if body.get(member).is_some() {
            let detail = format!("`{member}` can't be changed by a fork yet: leave it out");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail));
        }
    }
    let event = body.number("event")?;
    let event = event.ok_or_else(|| Problem::bad("`event` is missing: the number of the event to go on from"))?;
    let name = read_name(&body)?;
    let named = name.clone();
    let audit = audit(&app, &operator, "fork", &id, &body);
    let node = app.node.clone();
    let reading = offload::work(usize::MAX, move || {
        let record = node.store().record(&id)?.ok_or(QueryError::NoSuchExecution)?;
        let mut request = node.fork_request(&id, EventId(event), named)?;
        request.audit = Some(audit);
        Ok::<_, QueryError>((record.flow, request))
    });
    let (flow, request) = reading.await??;
    let room = app.answers.room_before(0)?;
    let start = app.node.fork(request).await;
    let start = start.map_err(|failure| not_started(&flow, name.as_ref(), failure))?;
    room.execution(StatusCode::CREATED, Found::Live(start.snapshot)).await
}

/// `DELETE /v1/executions/{id}`
pub async fn delete(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Answer<Response> {
    match app.node.delete_execution(&Text::from(id), &operator).await? {
        Reply::Taken => Ok(StatusCode::NO_CONTENT.into_response()),
        Reply::NotEnded => {
            let detail = "the execution has not ended: stop it first";
            Err(Problem::new(StatusCode::CONFLICT, "NotEnded", detail))
        }
        Reply::Held => Err(Problem::held()),
        _ => Err(Problem::missing("NoSuchExecution", "there is no such execution")),
    }
}

/// What the audit list says of a request about an execution: its members are the detail.
fn audit(app: &App, operator: &Operator, action: &str, id: &str, body: &Body) -> AuditEntry {
    AuditEntry {
        detail: body.members().clone(),
        ..app.node.audit_entry(operator, action, AuditKind::Execution, id)
    }
}

/// Gives a signal, and answers with the execution after it.
async fn give(app: &App, id: &str, signal: Signal, audit: AuditEntry) -> Answer {
    let id = Text::from(id);
    let status = match app.node.signal_audited(&id, signal, Some(audit)).await? {
        Reply::Taken => StatusCode::OK,
        // The process that has it finds the message soon.
        Reply::Left => StatusCode::ACCEPTED,
        Reply::Held => return Err(Problem::held()),
        Reply::SetAside => return Err(Problem::set_aside()),
        Reply::Rejected(rejection) => return Err(rejection.into()),
        _ => return Err(Problem::missing("NoSuchExecution", "there is no such execution")),
    };
    let (kept, room) = find(app, id, app.answers.room_before(0)?).await?;
    room.execution(status, Found::Stored(kept)).await
}
