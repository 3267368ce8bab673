//! Outboxes: how much waits in them, and what was refused.

use super::executions;
use super::route::{PAGE, Route};
use crate::App;
use crate::outboxes::Taken;
use crate::scope::Scope;
use crate::shapes;
use axum::extract::{Path, Query as Parameters, State};
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::reading::Query;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{OutboxError, RefusedRow};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The routes of outboxes.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/outboxes",
        scope: Some(Scope::Read),
        summary: "The outboxes from which this server takes starts, and how much waits in them",
        query: &[],
        body: None,
        answers: &[(200, "all of them", Some("OutboxList"))],
        handler: Some(|| get(list)),
    },
    Route {
        method: "GET",
        path: "/v1/outboxes/{name}/refused",
        scope: Some(Scope::Read),
        summary: "The rows of an outbox that could not be carried out, the newest first, with the reasons",
        query: PAGE,
        body: None,
        answers: &[
            (200, "a page of them", Some("RefusedRowPage")),
            (
                404,
                "`NoSuchOutbox`: this server has none of that name",
                Some("Problem"),
            ),
            (
                503,
                "`OutboxUnavailable`: its database does not answer",
                Some("Problem"),
            ),
        ],
        handler: Some(|| get(refused)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}",
        scope: Some(Scope::Read),
        summary: "An execution",
        query: &[
            ("data", "`none`: without its input and output"),
            (
                "wait",
                "answers when it has ended or so many seconds have passed, at most 60",
            ),
        ],
        body: None,
        answers: &[
            (200, "the execution", Some("Execution")),
            (
                404,
                "there is none; `StartRefused`: an outbox asked for it, and `reason` says why it was not started",
                Some("Problem"),
            ),
        ],
        handler: Some(|| get(show)),
    },
];

/// `GET /v1/outboxes`
async fn list(State(app): State<App>) -> Answer {
    let mut items = Vec::with_capacity(app.outboxes.len());
    for outbox in &app.outboxes {
        items.push(shape(outbox).await);
    }
    app.answers.value(StatusCode::OK, shapes::page(items, None)).await
}

async fn shape(outbox: &Taken) -> Value {
    let standing = outbox.source.standing().await;
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("name", outbox.source.name().into());
    set("database", outbox.source.place().into());
    match &standing {
        Ok(standing) => {
            set("waiting", standing.waiting.into());
            if let Some(oldest) = standing.oldest {
                set("oldestTime", oldest.to_string().into());
            }
            set("refused", standing.refused.into());
        }
        Err(error) => set("problem", error.0.as_str().into()),
    }
    if let (Ok(_), Some(why)) = (&standing, outbox.why()) {
        set("problem", why.as_str().into());
    }
    set("started", outbox.started.load(Ordering::Relaxed).into());
    shape.into()
}

/// `GET /v1/outboxes/{name}/refused`
async fn refused(State(app): State<App>, Path(name): Path<String>, query: Parameters<Vec<(String, String)>>) -> Answer {
    let query = Query::of(query.0, &["cursor", "limit"])?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let below = match query.get("cursor").map(str::parse) {
        None => None,
        Some(Ok(below)) => Some(below),
        Some(Err(_)) => return Err(Problem::bad("`cursor` must be `next` of the page before")),
    };
    let outbox = app.outboxes.iter().find(|outbox| outbox.source.name() == name);
    let outbox = outbox.ok_or_else(|| {
        let detail = format!(
            "this server has no outbox {}: `GET /v1/outboxes` lists them",
            quoted(&name)
        );
        Problem::missing("NoSuchOutbox", detail)
    })?;
    let rows = outbox.source.refused(below, limit).await.map_err(unavailable)?;
    let next = rows.last().filter(|_| rows.len() == limit);
    let next = next.map(|row| Value::from(row.number.to_string().as_str()));
    let page = shapes::page(rows.iter().map(row_shape).collect(), next);
    app.answers.value(StatusCode::OK, page).await
}

fn unavailable(error: OutboxError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "OutboxUnavailable", error.0)
}

fn row_shape(row: &RefusedRow) -> Value {
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("id", row.id.clone().into());
    set("action", row.action.as_str().into());
    if let Some(flow) = &row.flow {
        set("flow", flow.clone().into());
    }
    if let Some(name) = &row.name {
        set("name", name.clone().into());
    }
    set("by", row.by.clone().into());
    set("writtenTime", row.written.to_string().into());
    set("refusedTime", row.refused.to_string().into());
    set("code", row.code.clone().into());
    set("reason", row.reason.clone().into());
    shape.into()
}

/// `GET /v1/executions/{id}`
async fn show(State(app): State<App>, Path(id): Path<String>, query: executions::Parameters) -> Answer {
    let shown = executions::show(State(app.clone()), Path(id.clone()), query).await;
    match shown {
        Err(problem) if problem.code() == "NoSuchExecution" => Err(refused_start(&app, &id).await.unwrap_or(problem)),
        shown => shown,
    }
}

/// Why an execution that an outbox asked for was not started. An outbox that can't be asked now says nothing.
async fn refused_start(app: &App, id: &str) -> Option<Problem> {
    // Nothing else is an id that an outbox makes.
    if id.len() != 36 {
        return None;
    }
    for outbox in &app.outboxes {
        let found = outbox.source.refused_one(Text::from(id)).await;
        if let Ok(Some(row)) = found {
            let name = outbox.source.name();
            let detail = format!(
                "the outbox `{name}` asked for it, and it was not carried out: {}",
                row.reason
            );
            let problem = Problem::missing("StartRefused", detail)
                .with("outbox", name.into())
                .with("reasonCode", row.code.as_str().into())
                .with("reason", row.reason.as_str().into());
            return Some(problem);
        }
    }
    None
}

/// The metrics of outboxes. What its database alone knows is left out while it does not answer.
pub(super) async fn metrics(text: &mut String, outboxes: &[Arc<Taken>], now: starbridge_flow::time::Timestamp) {
    let mut lines: [(&str, &str, &str, String); 6] = [
        (
            "up",
            "1 while the database of an outbox can be used.",
            "gauge",
            String::new(),
        ),
        (
            "waiting",
            "Rows of an outbox that are not finished.",
            "gauge",
            String::new(),
        ),
        (
            "age_seconds",
            "How long the oldest row of an outbox waits.",
            "gauge",
            String::new(),
        ),
        (
            "started_total",
            "Executions started from an outbox.",
            "counter",
            String::new(),
        ),
        (
            "refused",
            "Rows of an outbox that were refused and are kept.",
            "gauge",
            String::new(),
        ),
        (
            "forgotten_total",
            "Refused rows of an outbox deleted because more were refused than are kept.",
            "counter",
            String::new(),
        ),
    ];
    for outbox in outboxes {
        let standing = outbox.source.standing().await.ok();
        let age = |oldest: Option<_>| oldest.map_or(0, |oldest| now.since(oldest).as_secs());
        let values = [
            Some(u64::from(standing.is_some() && outbox.why().is_none())),
            standing.map(|standing| standing.waiting),
            standing.map(|standing| age(standing.oldest)),
            Some(outbox.started.load(Ordering::Relaxed)),
            standing.map(|standing| standing.refused),
            Some(outbox.forgotten.load(Ordering::Relaxed)),
        ];
        for ((name, _, _, text), value) in lines.iter_mut().zip(values) {
            if let Some(value) = value {
                let of = outbox.source.name();
                // Writing to a string can't fail.
                let _ = writeln!(text, "starbridge_outbox_{name}{{outbox=\"{of}\"}} {value}");
            }
        }
    }
    for (name, help, kind, values) in lines {
        let _ = write!(
            text,
            "# HELP starbridge_outbox_{name} {help}\n# TYPE starbridge_outbox_{name} {kind}\n{values}"
        );
    }
}
