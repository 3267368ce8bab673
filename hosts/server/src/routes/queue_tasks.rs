//! What is in a queue: its tasks, and its workers.

use super::queues::{dead_after, dead_shape, queue_name};
use super::route::Route;
use crate::App;
use crate::answers::aside;
use crate::scope::Scope;
use crate::shapes;
use axum::extract::{Path, Query as Parameters, State};
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::reading::Query;
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{DeadTask, QueuedTask, ShardSet, StoreError, TaskLease};
use starbridge_runtime::QueueWorker;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/queues/{queue}/tasks",
        scope: Some(Scope::Read),
        summary: "The tasks of a queue that stand so, each with its input",
        query: &[
            (
                "state",
                "`waiting` (usual): those that are handed out next; `held`: those that workers have; `dead`: those that failed for good",
            ),
            (
                "limit",
                "how many at most: 1 to 1000, 100 where none is given; there are no further pages",
            ),
        ],
        body: None,
        answers: &[(200, "the first of them", Some("QueueTaskList"))],
        handler: Some(|| get(tasks)),
    },
    Route {
        method: "GET",
        path: "/v1/queues/{queue}/workers",
        scope: Some(Scope::Read),
        summary: "The workers that have tasks of a queue or wait for some, in the order of their names",
        query: &[],
        body: None,
        answers: &[(200, "the workers", Some("QueueWorkerList"))],
        handler: Some(|| get(workers)),
    },
];

/// An input that has more bytes is not shown here.
const INPUT_BYTES: usize = 16 * 1024;
/// The most events that are folded to find the inputs of the dead tasks on a page.
const FOLDED_EVENTS: u64 = 10_000;

/// `GET /v1/queues/{queue}/tasks`
async fn tasks(
    State(app): State<App>,
    Path(queue): Path<String>,
    Parameters(given): Parameters<Vec<(String, String)>>,
) -> Answer {
    let name = queue_name(&queue)?;
    let query = Query::of(given, &["state", "limit"])?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let items = match query.get("state").unwrap_or("waiting") {
        "waiting" => aside(&app.node, move |node| waiting(node, &name, limit)).await??,
        "held" => aside(&app.node, move |node| held(node, &name, limit)).await??,
        "dead" => {
            let tasks = dead_after(&app, name, None, limit).await?;
            aside(&app.node, move |node| dead(node, &tasks)).await??
        }
        other => {
            let detail = format!("`state` must be `waiting`, `held` or `dead`, not {}", quoted(other));
            return Err(Problem::bad(detail));
        }
    };
    let page = shapes::page(items, None);
    let room = app.answers.room();
    room.write(StatusCode::OK, page.json_len(), move || Ok(page)).await
}

fn waiting(node: &Node, queue: &str, limit: usize) -> Result<Vec<Value>, StoreError> {
    let tasks = node.store().next_tasks(queue, limit)?;
    tasks.iter().map(|task| Ok(shape(node, task)?.into())).collect()
}

fn held(node: &Node, queue: &str, limit: usize) -> Result<Vec<Value>, StoreError> {
    let mut tasks = node.store().leased_tasks(&ShardSet::ALL)?;
    tasks.retain(|(task, _)| task.queue == queue);
    tasks.sort_by_key(|(task, lease)| (lease.held, task.execution.clone(), task.call));
    let shown = tasks.iter().take(limit);
    shown
        .map(|(task, lease)| {
            let TaskLease { worker, held, .. } = lease;
            let mut shape = shape(node, task)?;
            shape.insert("worker".into(), node.shown_worker(worker.clone()).into());
            shape.insert("heldTime".into(), held.to_string().into());
            let until = node.lease_until((task.execution.clone(), task.call));
            if let Some(until) = until {
                shape.insert("leaseUntil".into(), until.to_string().into());
            }
            Ok(shape.into())
        })
        .collect()
}

/// A task that is not dead. Its message has references in the place of secrets and tokens.
fn shape(node: &Node, task: &QueuedTask) -> Result<Object, StoreError> {
    let message = Value::read_bounded(task.message.as_bytes(), Value::most_memory(task.message.len()));
    let message = message.ok();
    let told = |key: &str| message.as_ref().and_then(|message| message.get(key)).cloned();
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("queue", task.queue.clone().into());
    set("execution", task.execution.clone().into());
    set("call", task.call.0.into());
    set("priority", u32::from(task.priority).into());
    set("since", task.since.to_string().into());
    if let Some(until) = task.wait_until {
        set("waitUntil", until.to_string().into());
    }
    for key in ["step", "path", "attempt"] {
        if let Some(value) = told(key) {
            set(key, value);
        }
    }
    if let Some(record) = node.store().record(&task.execution)? {
        set("flow", record.flow.into());
        set("name", record.name.into());
    }
    with_input(&mut shape, told("input"));
    Ok(shape)
}

fn with_input(shape: &mut Object, input: Option<Value>) {
    let Some(input) = input else { return };
    match input.json_len() {
        0..=INPUT_BYTES => shape.insert("input".into(), input),
        bytes => shape.insert("inputBytes".into(), (bytes as u64).into()),
    };
}

fn dead(node: &Node, tasks: &[DeadTask]) -> Answer<Vec<Value>> {
    let mut left = FOLDED_EVENTS;
    let shape = |task: &DeadTask| {
        let shape = dead_shape(task, node.store().record(&task.execution)?);
        let mut shape = shape.as_object().cloned().unwrap_or_default();
        with_input(&mut shape, dead_input(node, task, &mut left));
        Ok(shape.into())
    };
    tasks.iter().map(shape).collect()
}

/// What a dead task was called with: its parameters, or the input of its step. Unknown, where several visits of that step were
/// open, or where finding it takes more events than are left.
fn dead_input(node: &Node, task: &DeadTask, left: &mut u64) -> Option<Value> {
    let called = node.written_event(&task.execution, task.call).ok()?;
    if let Some(params) = called.get("detail").and_then(|detail| detail.get("params")) {
        return Some(params.clone());
    }
    *left = left.checked_sub(task.call.0)?;
    let open = node.steps_open_at(&task.execution, task.call).ok()?;
    let same = |open: &&Value| open.get("step").and_then(Value::as_str) == Some(task.step.as_str());
    let mut same = open.iter().filter(same);
    let only = same.next().filter(|_| same.next().is_none())?;
    only.get("input").cloned()
}

/// `GET /v1/queues/{queue}/workers`
async fn workers(State(app): State<App>, Path(queue): Path<String>) -> Answer {
    let name: Text = queue_name(&queue)?;
    let workers = app.node.queue_workers(&name).await;
    let items = workers.into_iter().map(worker).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, None)).await
}

fn worker(worker: QueueWorker) -> Value {
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("worker", worker.name.into());
    set("held", (worker.held as u64).into());
    set("polls", (worker.polls as u64).into());
    if let Some(since) = worker.since {
        set("since", since.to_string().into());
    }
    shape.into()
}
