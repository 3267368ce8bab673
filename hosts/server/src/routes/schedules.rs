//! Schedules.

use super::executions::not_started;
use super::route::Route;
use crate::App;
use crate::answers::Found;
use crate::scope::Scope;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::{Body, Query};
use starbridge_node::node::{Operator, RunError, ScheduleError, Scheduled};
use starbridge_node::problem::{Answer, Problem, quoted};

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The routes of schedules.
pub const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/schedules",
        scope: Some(Scope::Read),
        summary: "The schedules",
        query: &[(
            "next",
            "0 to 20: also when each triggers next, so many times, in UTC and by the clocks of its zone",
        )],
        body: None,
        answers: &[(200, "the schedules", Some("ScheduleList"))],
        handler: Some(|| routing::get(list)),
    },
    Route {
        method: "PUT",
        path: "/v1/schedules/{name}",
        scope: Some(Scope::Admin),
        summary: "Puts a schedule in place of an earlier one; what is left out is as if nothing was set",
        query: &[],
        body: Some("ScheduleSettings"),
        answers: &[
            (200, "the schedule", Some("Schedule")),
            (422, "it can't be", Some("Problem")),
        ],
        handler: Some(|| routing::put(put)),
    },
    Route {
        method: "GET",
        path: "/v1/schedules/{name}",
        scope: Some(Scope::Read),
        summary: "A schedule",
        query: &[],
        body: None,
        answers: &[
            (200, "the schedule", Some("Schedule")),
            (404, "there is no such schedule", Some("Problem")),
        ],
        handler: Some(|| routing::get(get)),
    },
    Route {
        method: "PATCH",
        path: "/v1/schedules/{name}",
        scope: Some(Scope::Admin),
        summary: "Changes what is named of a schedule; what is left out stays as it is",
        query: &[],
        body: Some("ScheduleChanges"),
        answers: &[
            (200, "the schedule", Some("Schedule")),
            (404, "there is no such schedule", Some("Problem")),
            (422, "it can't be", Some("Problem")),
        ],
        handler: Some(|| routing::patch(change)),
    },
    Route {
        method: "POST",
        path: "/v1/schedules/{name}/pause",
        scope: Some(Scope::Operate),
        summary: "Lets a schedule start nothing until it is resumed",
        query: &[],
        body: None,
        answers: &[
            (200, "the schedule", Some("Schedule")),
            (404, "there is no such schedule", Some("Problem")),
        ],
        handler: Some(|| routing::post(pause)),
    },
    Route {
        method: "POST",
        path: "/v1/schedules/{name}/resume",
        scope: Some(Scope::Operate),
        summary: "Lets a schedule go on from now; what passed meanwhile is not missed",
        query: &[],
        body: None,
        answers: &[
            (200, "the schedule", Some("Schedule")),
            (404, "there is no such schedule", Some("Problem")),
        ],
        handler: Some(|| routing::post(resume)),
    },
    Route {
        method: "POST",
        path: "/v1/schedules/{name}/run",
        scope: Some(Scope::Operate),
        summary: "Starts now what a schedule starts; its triggers come as before",
        query: &[],
        body: None,
        answers: &[
            (201, "started", Some("Execution")),
            (404, "there is no such schedule or flow", Some("Problem")),
            (422, "the input does not fit", Some("Problem")),
        ],
        handler: Some(|| routing::post(run)),
    },
    Route {
        method: "DELETE",
        path: "/v1/schedules/{name}",
        scope: Some(Scope::Admin),
        summary: "Deletes a schedule",
        query: &[],
        body: None,
        answers: &[(204, "done", None), (404, "there is no such schedule", Some("Problem"))],
        handler: Some(|| routing::delete(discard)),
    },
];

const MEMBERS: &[&str] = &[
    "flow",
    "cron",
    "payload",
    "overlap",
    "catchUp",
    "priority",
    "startDeadlineSeconds",
    "paused",
];

/// `PUT /v1/schedules/{name}`
pub async fn put(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(MEMBERS).await?;
    check(&body)?;
    let put = app.node.put_schedule(&name, body.members(), &operator);
    answer(&app, &name, put).await
}

/// `PATCH /v1/schedules/{name}`
pub async fn change(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(MEMBERS).await?;
    check(&body)?;
    for member in ["flow", "cron"] {
        if body.members().get(member) == Some(&Value::Null) {
            let detail = format!("`{member}` must be a string, not null: leave it out to keep what it is");
            return Err(Problem::bad(detail));
        }
    }
    let changed = app.node.change_schedule(&name, body.members(), &operator);
    answer(&app, &name, changed).await
}

/// `POST /v1/schedules/{name}/pause`
pub async fn pause(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
) -> Answer {
    set_paused(&app, &name, true, &operator).await
}

/// `POST /v1/schedules/{name}/resume`
pub async fn resume(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
) -> Answer {
    set_paused(&app, &name, false, &operator).await
}

async fn set_paused(app: &App, name: &str, paused: bool, operator: &Operator) -> Answer {
    let change: Object = [("paused".into(), paused.into())].into_iter().collect();
    answer(app, name, app.node.change_schedule(name, &change, operator)).await
}

/// `POST /v1/schedules/{name}/run`
pub async fn run(State(app): State<App>, Extension(operator): Extension<Operator>, Path(name): Path<String>) -> Answer {
    let room = app.answers.room_before(0)?;
    match app.node.run_schedule(&name, &operator).await {
        Ok(start) => {
            room.execution(StatusCode::CREATED, Found::Live(Box::new(start.snapshot)))
                .await
        }
        Err(RunError::NoSuchSchedule) => Err(missing(&name)),
        Err(RunError::NotStarted(execution, failure)) => {
            let flow = app.node.schedule(&name).map(|scheduled| scheduled.schedule.flow);
            Err(not_started(&flow.unwrap_or_default(), Some(&execution), failure))
        }
    }
}

fn check(body: &Body) -> Answer<()> {
    for member in ["flow", "cron", "overlap", "catchUp"] {
        body.text(member)?;
    }
    for member in ["priority", "startDeadlineSeconds"] {
        body.number(member)?;
    }
    body.flag("paused").map(drop)
}

async fn answer(app: &App, name: &str, put: Result<Scheduled, ScheduleError>) -> Answer {
    let scheduled = put.map_err(|error| match error {
        ScheduleError::NoSuchSchedule => missing(name),
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
pub async fn list(State(app): State<App>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["next"])?;
    let most = usize::try_from(query.number("next", 0, 0, 20)?).unwrap_or(0);
    let schedules = app.node.schedules();
    let shape = |scheduled: &Scheduled| {
        let mut shape = scheduled.to_object();
        if most > 0 {
            let times = scheduled.next_times(most).into_iter().map(next_time);
            shape.insert("nextTimes".into(), times.collect::<Vec<_>>().into());
        }
        shape.into()
    };
    let items = schedules.iter().map(shape).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, None)).await
}

fn next_time((time, local): (Timestamp, Option<String>)) -> Value {
    let mut shape = Object::new();
    shape.insert("time".into(), time.to_string().into());
    if let Some(local) = local {
        shape.insert("local".into(), local.into());
    }
    shape.into()
}

/// `DELETE /v1/schedules/{name}`
pub async fn discard(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
) -> Answer<Response> {
    if app.node.discard_schedule(&name, &operator)? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(missing(&name))
    }
}

fn missing(name: &str) -> Problem {
    Problem::missing("NoSuchSchedule", format!("there is no schedule {}", quoted(name)))
}
