//! Operating executions: stop, and what comes to those that have ended.

use super::executions::not_started;
use super::flows::bad_name;
use crate::App;
use crate::body::Sent;
use crate::shapes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use starbridge_fdl::limits::is_name;
use starbridge_fdl::value::Text;
use starbridge_machine::{EventId, Signal};
use starbridge_node::problem::{Answer, Problem};
use starbridge_runtime::Reply;

/// `POST /v1/executions/{id}/stop`
pub async fn stop(State(app): State<App>, Path(id): Path<String>, mut body: Sent) -> Answer {
    let body = body.read(&["error", "cause", "rollback"])?;
    let stop = Signal::Stop {
        error: body.text("error")?.map(|error| error.to_string()),
        cause: body.text("cause")?.map(|cause| cause.to_string()).unwrap_or_default(),
        by: None,
        rollback: body.flag("rollback")?.unwrap_or(false),
    };
    give(&app, &id, stop).await
}

/// `POST /v1/executions/{id}/redrive`
pub async fn redrive(State(app): State<App>, Path(id): Path<String>, mut body: Sent) -> Answer {
    let body = body.read(&["input", "version"])?;
    for member in ["input", "version"] {
        if body.get(member).is_some() {
            let detail = format!("`{member}` can't be changed by a redrive yet: leave it out");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail));
        }
    }
    give(&app, &id, Signal::Redrive { by: None }).await
}

/// `POST /v1/executions/{id}/fork`
pub async fn fork(State(app): State<App>, Path(id): Path<String>, mut body: Sent) -> Answer {
    let body = body.read(&["event", "name", "input", "version", "definition"])?;
    for member in ["input", "version", "definition"] {
        if body.get(member).is_some() {
            let detail = format!("`{member}` can't be changed by a fork yet: leave it out");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail));
        }
    }
    let event = body.number("event")?;
    let event = event.ok_or_else(|| Problem::bad("`event` is missing: the number of the event to go on from"))?;
    let name = body.text("name")?;
    if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
        return Err(bad_name("an execution", name));
    }
    let flow = app.node.execution(&id)?.record.flow;
    let named = name.clone();
    let request = super::aside(&app.node, move |node| node.fork_request(&id, EventId(event), named)).await??;
    let start = app.node.fork(request).await;
    let start = start.map_err(|failure| not_started(&flow, name.as_ref(), failure))?;
    Ok(shapes::value(StatusCode::CREATED, &shapes::execution(&start.begun)))
}

/// Gives a signal, and answers with the execution as it is then.
async fn give(app: &App, id: &str, signal: Signal) -> Answer {
    match app.node.signal(&Text::from(id), signal).await? {
        Reply::Taken => Ok(shapes::value(
            StatusCode::OK,
            &shapes::execution(&app.node.execution(id)?),
        )),
        // Whoever has it finds the word soon.
        Reply::Left => Ok(shapes::value(
            StatusCode::ACCEPTED,
            &shapes::execution(&app.node.execution(id)?),
        )),
        Reply::Held => Err(Problem::held()),
        Reply::SetAside => Err(Problem::set_aside()),
        Reply::Rejected(rejection) => Err(rejection.into()),
        _ => Err(Problem::missing("NoSuchExecution", "there is no such execution")),
    }
}
