//! Schedules.

use crate::App;
use crate::body::Sent;
use crate::shapes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use starbridge_node::node::ScheduleError;
use starbridge_node::problem::{Answer, Problem, quoted};

/// `PUT /v1/schedules/{name}`
pub async fn put(State(app): State<App>, Path(name): Path<String>, mut body: Sent) -> Answer {
    const MEMBERS: &[&str] = &["flow", "cron", "payload", "overlap", "catchUp", "paused"];
    let body = body.read(MEMBERS).await?;
    for member in ["flow", "cron", "overlap", "catchUp"] {
        body.text(member)?;
    }
    body.flag("paused")?;
    let put = app.node.put_schedule(&name, body.members());
    let scheduled = put.map_err(|error| match error {
        ScheduleError::Bad(why) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidSchedule", why),
        ScheduleError::NoSuchFlow => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "NoSuchFlow",
            "there is no flow of that name to be started",
        ),
        ScheduleError::Store(error) => error.into(),
    })?;
    app.answers.value(StatusCode::OK, scheduled.to_object().into()).await
}

/// `GET /v1/schedules/{name}`
pub async fn get(State(app): State<App>, Path(name): Path<String>) -> Answer {
    let scheduled = app.node.schedule(&name).ok_or_else(|| missing(&name))?;
    app.answers.value(StatusCode::OK, scheduled.to_object().into()).await
}

/// `GET /v1/schedules`
pub async fn list(State(app): State<App>) -> Answer {
    let schedules = app.node.schedules();
    let items = schedules.iter().map(|scheduled| scheduled.to_object().into()).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, None)).await
}

/// `DELETE /v1/schedules/{name}`
pub async fn discard(State(app): State<App>, Path(name): Path<String>) -> Answer<Response> {
    if app.node.discard_schedule(&name)? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(missing(&name))
    }
}

fn missing(name: &str) -> Problem {
    Problem::missing("NoSuchSchedule", format!("there is no schedule {}", quoted(name)))
}
