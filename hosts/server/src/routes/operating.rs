//! Operating executions: stop, and what comes to those that have ended.

use crate::App;
use crate::problem::{Answer, Problem};
use crate::reading::{Body, whole};
use crate::shapes;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use starbridge_fdl::value::Text;
use starbridge_machine::Signal;
use starbridge_runtime::Reply;

/// `POST /v1/executions/{id}/stop`
pub async fn stop(State(app): State<App>, Path(id): Path<String>, body: Result<Bytes, BytesRejection>) -> Answer {
    let body = Body::read(&whole(body)?, &["error", "cause", "rollback"])?;
    let stop = Signal::Stop {
        error: body.text("error")?.map(|error| error.to_string()),
        cause: body.text("cause")?.map(|cause| cause.to_string()).unwrap_or_default(),
        by: None,
        rollback: body.flag("rollback")?.unwrap_or(false),
    };
    give(&app, &id, stop).await
}

/// `POST /v1/executions/{id}/redrive`
pub async fn redrive(State(app): State<App>, Path(id): Path<String>, body: Result<Bytes, BytesRejection>) -> Answer {
    let body = Body::read(&whole(body)?, &["input", "version"])?;
    for member in ["input", "version"] {
        if body.get(member).is_some() {
            let detail = format!("`{member}` can't be changed by a redrive yet: leave it out");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail));
        }
    }
    give(&app, &id, Signal::Redrive { by: None }).await
}

/// Gives a signal, and answers with the execution as it is then.
async fn give(app: &App, id: &str, signal: Signal) -> Answer {
    match app.node.signal(&Text::from(id), signal).await? {
        Reply::Taken => Ok(shapes::value(
            StatusCode::OK,
            &shapes::execution(&app.node.execution(id)?),
        )),
        Reply::Rejected(rejection) => Err(rejection.into()),
        _ => Err(Problem::missing("NoSuchExecution", "there is no such execution")),
    }
}
