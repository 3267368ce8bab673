//! What happened in the last hour and day, as it was counted while turns passed.

use super::route::Route;
use crate::App;
use crate::scope::Scope;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::reading::Query;
use starbridge_node::node::{Counts, FailureCounts, FailureKind, FlowCounts, LastHour, StepFigures};
use starbridge_node::problem::Answer;
use std::cmp::Reverse;
use std::collections::BTreeMap;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The route of the counts.
pub(super) const ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/v1/stats",
    scope: Some(Scope::Read),
    summary: "What happened in the last hour, as this process counted it: starts, ends, failures, by minute and by flow; and in the last day, by quarters of an hour",
    query: &[(
        "flow",
        "failures, figures and day of this flow only, and the figures of its steps",
    )],
    body: None,
    answers: &[(200, "the counts; `since` says from when on", Some("Stats"))],
    handler: Some(|| get(stats)),
}];

/// So many kinds of failures, and so many flows, are in an answer. What is left out is counted.
const MOST: usize = 100;

/// `GET /v1/stats`
async fn stats(State(app): State<App>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["flow"])?;
    let now = app.node.now();
    let hour = app.node.stats().last_hour(now);
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("since", hour.since.to_string().into());
    set("to", now.to_string().into());
    set("counts", counts(&hour.sum.counts).into());
    let minutes = hour.minutes.iter().map(|(begin, minute)| {
        let ended = minute.ended().map(|(_, count)| count).sum();
        span(*begin, minute.started, ended, minute.failed())
    });
    set("minutes", minutes.collect::<Vec<_>>().into());
    let day = app.node.stats().last_day(now, query.get("flow"));
    let quarters = day.quarters.iter();
    let quarters = quarters.map(|(begin, quarter)| span(*begin, quarter.started, quarter.ended, quarter.failed));
    let day_of = [
        ("since".into(), Value::from(day.since.to_string())),
        ("quarters".into(), quarters.collect::<Vec<_>>().into()),
    ];
    set("day", day_of.into_iter().collect::<Object>().into());
    let (failures, others) = failures(&hour, query.get("flow"));
    set("failures", failures.into());
    set("otherFailures", others.into());
    set("flows", flows(&hour, query.get("flow")).into());
    let of = query.get("flow");
    let steps = of.map(|flow| app.node.stats().steps(now, flow));
    set("steps", steps.map(|all| of_steps(&all)).unwrap_or_default().into());
    let mut server = Object::new();
    server.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    server.insert("startedTime".into(), app.node.stats().since().to_string().into());
    server.insert("followers".into(), (app.node.followed() as u64).into());
    server.insert("waitingRequests".into(), (app.node.waiting() as u64).into());
    set("server", server.into());
    app.answers.value(StatusCode::OK, shape.into()).await
}

/// What is told of a span of time: when it begins, and three counts.
fn span(begin: Timestamp, started: u64, ended: u64, failed: u64) -> Value {
    let mut shape = Object::new();
    shape.insert("time".into(), begin.to_string().into());
    for (key, count) in [("started", started), ("ended", ended), ("failed", failed)] {
        shape.insert(key.into(), count.into());
    }
    shape.into()
}

fn counts(counts: &Counts) -> Object {
    let ended = counts.ended();
    let ended = ended.map(|(status, count)| (Text::from(status.as_str()), Value::from(count)));
    let mut shape = Object::new();
    shape.insert("started".into(), counts.started.into());
    shape.insert("ended".into(), ended.collect::<Object>().into());
    shape.insert("turns".into(), counts.turns.into());
    shape.insert("events".into(), counts.events.into());
    shape.insert("calls".into(), counts.calls.into());
    shape.insert("failedAttempts".into(), counts.failed_attempts.into());
    shape
}

/// What failed most, and how many failures are not among it.
fn failures(hour: &LastHour, flow: Option<&str>) -> (Vec<Value>, u64) {
    let all = hour.sum.failures.iter();
    let mut all: Vec<(&FailureKind, &FailureCounts)> = all
        .filter(|(kind, _)| flow.is_none_or(|flow| kind.flow == *flow))
        .collect();
    all.sort_by_key(|(_, counts)| Reverse((counts.executions, counts.attempts)));
    let left = all.split_off(all.len().min(MOST));
    let left: u64 = left.iter().map(|(_, counts)| counts.executions + counts.attempts).sum();
    let shown = all.into_iter().map(|(kind, counts)| {
        let mut shape = Object::new();
        shape.insert("flow".into(), kind.flow.clone().into());
        shape.insert("step".into(), kind.step.clone().into());
        shape.insert("error".into(), kind.error.clone().into());
        shape.insert("executions".into(), counts.executions.into());
        shape.insert("attempts".into(), counts.attempts.into());
        shape.into()
    });
    (shown.collect(), left + hour.sum.other_failures)
}

/// The figures of flows, those with the most starts first.
fn flows(hour: &LastHour, flow: Option<&str>) -> Vec<Value> {
    let all = hour.sum.flows.iter();
    let mut all: Vec<(&Text, &FlowCounts)> = all
        .filter(|(name, _)| flow.is_none_or(|flow| **name == *flow))
        .collect();
    all.sort_by_key(|(_, flow)| Reverse(flow.counts.started));
    let shown = all.into_iter().take(MOST).map(|(name, flow)| {
        let within = |share| flow.within(share).map(|span| Value::from(span.0)).unwrap_or_default();
        let ended: u64 = flow.counts.ended().map(|(_, count)| count).sum();
        let mut shape = Object::new();
        shape.insert("flow".into(), name.clone().into());
        shape.insert("started".into(), flow.counts.started.into());
        shape.insert("ended".into(), ended.into());
        shape.insert("failed".into(), flow.counts.failed().into());
        shape.insert("medianMs".into(), within(0.5));
        shape.insert("p95Ms".into(), within(0.95));
        shape.into()
    });
    shown.collect()
}

/// The figures of a flow's steps.
fn of_steps(all: &BTreeMap<Text, StepFigures>) -> Vec<Value> {
    let shown = all.iter().map(|(step, figures)| {
        let within = |share| {
            figures
                .within(share)
                .map(|span| Value::from(span.0))
                .unwrap_or_default()
        };
        let mut shape = Object::new();
        shape.insert("step".into(), step.clone().into());
        shape.insert("since".into(), figures.since.to_string().into());
        shape.insert("attempts".into(), figures.attempts.into());
        shape.insert("failed".into(), figures.failed.into());
        shape.insert("medianMs".into(), within(0.5));
        shape.insert("p95Ms".into(), within(0.95));
        shape.into()
    });
    shown.collect()
}
