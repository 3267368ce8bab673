//! The server itself: health, readiness and metrics.

use super::outboxes;
use crate::{App, shapes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::time::Timestamp;
use starbridge_machine::Status;
use starbridge_node::node::{Counters, Node, ShownQueue, ShownTarget};
use starbridge_node::problem::{Answer, Problem};
use starbridge_runtime::QueueView;
use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many queues have metrics of their own.
const MAX_QUEUES: usize = 1_000;
/// The name for all others together. No queue can have this name.
const OTHERS: &str = "(others)";

/// `GET /healthz`
pub async fn healthz(State(app): State<App>) -> Answer<Response> {
    match app.node.ended().borrow().as_ref() {
        None => Ok("alive\n".into_response()),
        Some(_) => Err(Problem::stopping()),
    }
}

/// `GET /readyz`
pub async fn readyz(State(app): State<App>) -> Answer<Response> {
    if app.draining.load(Ordering::SeqCst) || app.node.ended().borrow().is_some() {
        return Err(Problem::stopping());
    }
    Ok("ready\n".into_response())
}

/// `GET /metrics`
pub async fn metrics(State(app): State<App>) -> Answer<Response> {
    let counts = super::aside(&app.node, |node| node.store().counts()).await??;
    let broken = super::aside(&app.node, |node| node.count_broken()).await??;
    let counters = app.node.counters();
    let mut text = String::new();
    counted(&mut text, counters);
    let ended = "starbridge_executions_ended_total";
    head(&mut text, ended, "Executions that ended, by how.", "counter");
    for (status, count) in counters.ended() {
        line(&mut text, ended, &format!("{{status=\"{}\"}}", status.as_str()), count);
    }
    standing(&mut text, counts, broken);
    let may_lose = super::aside(&app.node, |node| node.store().may_lose()).await??;
    let name = "starbridge_store_may_lose";
    let help = "1 while the store's database has standbys and none of them is synchronous.";
    head(&mut text, name, help, "gauge");
    line(&mut text, name, "", u64::from(may_lose));
    let shown = app.node.shown_queues("", usize::MAX).await?;
    queues(&mut text, &bounded(shown), app.node.now());
    let targets = super::aside(&app.node, |node| node.notifications()).await??;
    notifications(&mut text, &targets);
    outboxes::metrics(&mut text, &app.outboxes, app.node.now()).await;
    kept_open(&mut text, &app.node);
    if let Some(cluster) = &app.cluster {
        text.push_str(&super::cluster::metrics(cluster));
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

/// `GET /v1/openapi.json`
pub async fn openapi(State(app): State<App>) -> Response {
    shapes::json(StatusCode::OK, app.openapi.clone())
}

fn counted(text: &mut String, counters: &Counters) {
    let mut counter = |name: &str, help: &str, count: &AtomicU64| {
        head(text, name, help, "counter");
        line(text, name, "", count.load(Ordering::Relaxed));
    };
    counter(
        "starbridge_executions_started_total",
        "Executions started.",
        &counters.started,
    );
    counter("starbridge_turns_total", "Turns made durable.", &counters.turns);
    counter("starbridge_events_total", "Events made durable.", &counters.events);
    counter(
        "starbridge_calls_total",
        "Calls handed to connectors, repeated ones included.",
        &counters.calls,
    );
    counter(
        "starbridge_step_failures_total",
        "Attempts of steps that failed.",
        &counters.failures,
    );
    counter("starbridge_retries_total", "Retries scheduled.", &counters.retries);
    counter("starbridge_tasks_held_total", "Tasks given to workers.", &counters.held);
    counter(
        "starbridge_leases_ended_total",
        "Tasks whose worker fell silent.",
        &counters.leases_ended,
    );
    counter(
        "starbridge_replies_total",
        "Reports taken from queues of others.",
        &counters.replies,
    );
    counter(
        "starbridge_replies_rejected_total",
        "Messages of reply queues that nobody could deal with.",
        &counters.replies_rejected,
    );
    counter(
        "starbridge_schedule_refusals_total",
        "Triggers of schedules whose flow could not be started.",
        &counters.schedule_refusals,
    );
    counter(
        "starbridge_late_reports_total",
        "Reports that came too late.",
        &counters.late,
    );
}

fn kept_open(text: &mut String, node: &Node) {
    let watched = "starbridge_watched_executions";
    head(text, watched, "Executions whose history is streamed.", "gauge");
    line(text, watched, "", node.watchers().len() as u64);
    let places: [(&str, &str, usize); 2] = [
        (
            "starbridge_followers",
            "Requests that follow histories.",
            node.followed(),
        ),
        (
            "starbridge_waiting_requests",
            "Places taken by requests that wait for tasks or ends.",
            node.waiting(),
        ),
    ];
    for (name, help, count) in places {
        head(text, name, help, "gauge");
        line(text, name, "", count as u64);
    }
}

/// The queues with the most tasks, in the order of their names, and the sums of the others.
fn bounded(mut queues: Vec<ShownQueue>) -> Vec<ShownQueue> {
    if queues.len() <= MAX_QUEUES {
        return queues;
    }
    let tasks = |queue: &ShownQueue| queue.view.waiting + queue.view.held + queue.dead;
    queues.sort_by_key(|queue| Reverse(tasks(queue)));
    let mut others = ShownQueue::from(QueueView::of_nothing(OTHERS.into()));
    for ShownQueue { view, dead } in queues.drain(MAX_QUEUES..) {
        let oldest = [others.view.oldest, view.oldest];
        others.view.oldest = oldest.into_iter().flatten().min();
        others.view.waiting += view.waiting;
        others.view.held += view.held;
        others.view.workers += view.workers;
        others.view.busy += view.busy;
        others.dead += dead;
    }
    queues.sort_by(|one, two| one.view.name.cmp(&two.view.name));
    queues.push(others);
    queues
}

fn queues(text: &mut String, queues: &[ShownQueue], now: Timestamp) {
    let tasks = "starbridge_queue_tasks";
    head(text, tasks, "Tasks of queues, by where they stand.", "gauge");
    for ShownQueue { view, dead } in queues {
        for (standing, count) in [("waiting", view.waiting), ("held", view.held), ("dead", *dead)] {
            let labels = format!("{{queue=\"{}\",standing=\"{standing}\"}}", view.name);
            line(text, tasks, &labels, count);
        }
    }
    let age = "starbridge_queue_age_seconds";
    let help = "How long the task that has waited longest among the next ones of a queue has.";
    head(text, age, help, "gauge");
    for ShownQueue { view, .. } in queues {
        let waited = view.oldest.map_or(0, |since| now.since(since).as_secs());
        line(text, age, &format!("{{queue=\"{}\"}}", view.name), waited);
    }
    let workers = "starbridge_queue_workers";
    head(text, workers, "Workers that wait for tasks of a queue.", "gauge");
    for ShownQueue { view, .. } in queues {
        line(
            text,
            workers,
            &format!("{{queue=\"{}\"}}", view.name),
            view.workers as u64,
        );
    }
    let busy = "starbridge_queue_busy_workers";
    head(text, busy, "Workers that have tasks of a queue.", "gauge");
    for ShownQueue { view, .. } in queues {
        line(text, busy, &format!("{{queue=\"{}\"}}", view.name), view.busy as u64);
    }
}

fn notifications(text: &mut String, targets: &[ShownTarget]) {
    type Count = fn(&ShownTarget) -> u64;
    let metrics: [(&str, &str, &str, Count); 4] = [
        ("told_total", "Notifications told.", "counter", |target| target.told),
        (
            "failed_total",
            "Tries to tell a target that failed.",
            "counter",
            |target| target.failed,
        ),
        ("dropped_total", "Notifications given up.", "counter", |target| {
            target.dropped
        }),
        ("waiting", "Notifications kept for a target.", "gauge", |target| {
            target.waiting
        }),
    ];
    for (name, help, kind, count) in metrics {
        let metric = format!("starbridge_notifications_{name}");
        head(text, &metric, help, kind);
        for target in targets {
            line(text, &metric, &format!("{{target=\"{}\"}}", target.name), count(target));
        }
    }
}

fn standing(text: &mut String, counts: Vec<(Status, u64)>, broken: u64) {
    let name = "starbridge_executions_broken";
    let help = "Executions that are set aside: going on with them failed several times in a row.";
    head(text, name, help, "gauge");
    line(text, name, "", broken);
    let name = "starbridge_executions";
    head(text, name, "Executions the store has, by where they stand.", "gauge");
    for (status, count) in counts {
        line(text, name, &format!("{{status=\"{}\"}}", status.as_str()), count);
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, count: u64) {
    let _ = writeln!(text, "{name}{labels} {count}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_queues_are_summed() {
        let queue = |number: u64| {
            let mut view = QueueView::of_nothing(format!("q{number:04}").into());
            view.waiting = number;
            view.workers = 1;
            ShownQueue { view, dead: 0 }
        };
        let most = MAX_QUEUES as u64;
        assert_eq!(bounded((0..most).map(queue).collect()).len(), MAX_QUEUES);
        let shown = bounded((0..most + 3).map(queue).collect());
        assert_eq!(shown.len(), MAX_QUEUES + 1);
        assert_eq!(shown[0].view.name.as_str(), "q0003");
        let others = &shown[MAX_QUEUES].view;
        assert_eq!((others.name.as_str(), others.waiting, others.workers), (OTHERS, 3, 3));
    }
}
