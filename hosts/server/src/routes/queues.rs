//! Worker queues: tasks for workers, settings of queues, and dead tasks.

use super::route::{PAGE, Route};
use crate::App;
use crate::caller::Caller;
use crate::open_requests;
use crate::scope::Scope;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, Query as Parameters, State};
use axum::http::StatusCode;
use axum::routing;
use starbridge_flow::limits::is_name;
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Array, Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::{Body, Query};
use starbridge_node::node::{Operator, ShownQueue};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{DeadTask, ExecutionRecord, StoreError};
use starbridge_runtime::{PollOptions, QueueSettings};
use std::time::Duration;

/// The path to tasks of several queues. For other methods it is that of a queue of this name, as [`QUEUE`] is.
pub(crate) const OF_SEVERAL: &str = "/v1/queues/hold";
/// The path of a queue.
pub(crate) const QUEUE: &str = "/v1/queues/{queue}";

/// The routes of queues.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "POST",
        path: OF_SEVERAL,
        scope: Some(Scope::Worker),
        summary: "Gives a worker tasks of several queues, as soon as there are some",
        query: &[],
        body: Some("HoldSeveral"),
        answers: &[(
            200,
            "tasks the worker has now; none, if it waited in vain",
            Some("HeldTasks"),
        )],
        handler: Some(|| routing::post(hold_several).get(get_hold).put(put_hold)),
    },
    Route {
        method: "POST",
        path: "/v1/queues/{queue}/hold",
        scope: Some(Scope::Worker),
        summary: "Gives a worker tasks of a queue, as soon as there are some",
        query: &[],
        body: Some("Hold"),
        answers: &[(
            200,
            "tasks the worker has now; none, if it waited in vain",
            Some("HeldTasks"),
        )],
        handler: Some(|| routing::post(hold_one)),
    },
    Route {
        method: "GET",
        path: "/v1/queues",
        scope: Some(Scope::Read),
        summary: "The queues that have tasks, settings or workers that wait, in the order of their names",
        query: &[
            ("cursor", "`next` of the page before"),
            ("limit", "how many at most: 1 to 1000, 1000 where none is given"),
        ],
        body: None,
        answers: &[(200, "a page of them", Some("QueuePage"))],
        handler: Some(|| routing::get(list)),
    },
    Route {
        method: "GET",
        path: QUEUE,
        scope: Some(Scope::Read),
        summary: "A queue: what waits, how many waited at most in each minute of the last hour, and what is set",
        query: &[],
        body: None,
        answers: &[
            (200, "the queue", Some("Queue")),
            (404, "nothing is known of it", Some("Problem")),
        ],
        handler: Some(|| routing::get(get)),
    },
    Route {
        method: "PUT",
        path: QUEUE,
        scope: Some(Scope::Operate),
        summary: "Sets a queue; what is left out is as if nothing was set",
        query: &[],
        body: Some("QueueSettings"),
        answers: &[
            (200, "what is set now", Some("QueueSet")),
            (422, "these are no settings", Some("Problem")),
        ],
        handler: Some(|| routing::put(put)),
    },
    Route {
        method: "GET",
        path: "/v1/queues/{queue}/dead",
        scope: Some(Scope::Read),
        summary: "Tasks that failed for good, in the order of their executions",
        query: PAGE,
        body: None,
        answers: &[(200, "a page of them", Some("DeadTaskPage"))],
        handler: Some(|| routing::get(dead)),
    },
    Route {
        method: "POST",
        path: "/v1/queues/{queue}/dead",
        scope: Some(Scope::Operate),
        summary: "Queues dead tasks anew, or lists them no longer: those named, or up to 1000",
        query: &[],
        body: Some("DeadTasksChange"),
        answers: &[(200, "for how many it was done", Some("DeadTasksChanged"))],
        handler: Some(|| routing::post(discard_dead)),
    },
];

/// How many tasks one answer has, and how many queues one request may name.
const MAX_TASKS: u64 = 1_000;
const MAX_QUEUES: usize = 100;
/// The longest name of a worker, in characters.
const WORKER_NAME_CHARS: usize = 128;
/// How many seconds a worker waits for tasks by default, and at most.
const DEFAULT_WAIT_SECONDS: u64 = 20;
const MAX_WAIT_SECONDS: u64 = 60;
/// The longest lease, in seconds.
const MAX_LEASE_SECONDS: u64 = 24 * 60 * 60;
/// How many dead tasks one request may name.
const MAX_DEAD_TASKS: usize = 1_000;

const HOLD: &[&str] = &["worker", "limit", "leaseSeconds", "waitSeconds"];
const HOLD_SEVERAL: &[&str] = &["worker", "queues", "limit", "leaseSeconds", "waitSeconds"];

/// `POST /v1/queues/hold`
pub async fn hold_several(State(app): State<App>, mut body: Sent) -> Answer {
    let body = body.read(HOLD_SEVERAL).await?;
    let queues = match body.get("queues") {
        Some(Value::Array(queues)) => names(queues)?,
        _ => return Err(Problem::bad("`queues` must be a list of queues")),
    };
    hold(&app, &body, queues).await
}

/// `POST /v1/queues/{queue}/hold`
pub async fn hold_one(State(app): State<App>, Path(queue): Path<String>, mut body: Sent) -> Answer {
    let body = body.read(HOLD).await?;
    hold(&app, &body, vec![queue_name(&queue)?]).await
}

fn names(queues: &Array) -> Answer<Vec<Text>> {
    let mut names: Vec<Text> = Vec::new();
    for name in queues.values() {
        let name = name
            .as_str()
            .ok_or_else(|| Problem::bad("`queues` must be a list of names"))?;
        let name = queue_name(name)?;
        if names.contains(&name) {
            continue;
        }
        if names.len() == MAX_QUEUES {
            let detail = format!("at most {MAX_QUEUES} queues can be asked at once");
            return Err(Problem::bad(detail));
        }
        names.push(name);
    }
    match names.is_empty() {
        true => Err(Problem::bad("`queues` names no queue")),
        false => Ok(names),
    }
}

pub(super) fn queue_name(name: &str) -> Answer<Text> {
    if is_name(name) {
        return Ok(Text::from(name));
    }
    Err(Problem::bad(format!(
        "{} is no name of a queue: 1 to 128 letters, digits, `_` and `-`, a letter or `_` first",
        quoted(name)
    )))
}

async fn hold(app: &App, body: &Body, queues: Vec<Text>) -> Answer {
    let worker = body.text("worker")?.filter(|worker| !worker.is_empty());
    let worker = worker.ok_or_else(|| Problem::bad("`worker` is missing: who asks, in a word people understand"))?;
    if worker.chars().count() > WORKER_NAME_CHARS || worker.chars().any(char::is_control) {
        return Err(Problem::bad(format!(
            "`worker` must be at most {WORKER_NAME_CHARS} characters, none of them control"
        )));
    }
    let within = |key: &str, usual: Option<u64>, least: u64, most: u64| match body.number(key)?.or(usual) {
        Some(number) if !(least..=most).contains(&number) => Err(Problem::bad(format!(
            "`{key}` must be a whole number from {least} to {most}"
        ))),
        number => Ok(number),
    };
    let limit = within("limit", Some(1), 1, MAX_TASKS)?.unwrap_or(1);
    let lease = within("leaseSeconds", None, 1, MAX_LEASE_SECONDS)?;
    let patience = within("waitSeconds", Some(DEFAULT_WAIT_SECONDS), 0, MAX_WAIT_SECONDS)?.unwrap_or(0);
    // A request that does not wait needs no permit.
    let _permit = match patience {
        0 => None,
        _ => Some(app.node.poll_permit(queues.len())?),
    };
    let request = PollOptions {
        worker,
        queues,
        limit: usize::try_from(limit).unwrap_or(1),
        lease: lease.map(Millis::from_secs),
        patience: Duration::from_secs(patience),
    };
    let waiting = open_requests::waits();
    let held = app.node.hold(request).await;
    drop(waiting);
    let tasks = held?;
    let tasks = format!("{{\"tasks\":[{}]}}", tasks.join(","));
    app.answers.written(StatusCode::OK, tasks)
}

/// `GET /v1/queues`
pub async fn list(State(app): State<App>, Parameters(given): Parameters<Vec<(String, String)>>) -> Answer {
    let query = Query::of(given, &["cursor", "limit"])?;
    let limit = usize::try_from(query.number("limit", 1000, 1, 1000)?).unwrap_or(1000);
    let after = query.get("cursor").map(queue_name).transpose()?.unwrap_or_default();
    // One more than the page, to know whether there is another page.
    let mut shown = app.node.shown_queues(&after, limit + 1).await?;
    let more = shown.len() > limit;
    shown.truncate(limit);
    let next = shown
        .last()
        .filter(|_| more)
        .map(|last| Value::from(last.view.name.clone()));
    let items = shown.iter().map(|queue| shape(&app, queue).into()).collect();
    app.answers.value(StatusCode::OK, shapes::page(items, next)).await
}

/// `GET /v1/queues/{queue}`
pub async fn get(State(app): State<App>, Path(queue): Path<String>) -> Answer {
    let name = queue_name(&queue)?;
    let found = app.node.shown_queue(&name).await?;
    let found = found.ok_or_else(|| {
        let detail = format!("nothing is known of a queue `{name}`: it has no task, and nothing is set for it");
        Problem::missing("NoSuchQueue", detail)
    })?;
    let mut shape = shape(&app, &found);
    let minutes = app.node.queue_depths(&name).into_iter().map(|(begin, waiting)| {
        let members = [("time", begin.to_string().into()), ("waiting", Value::from(waiting))];
        let members = members.into_iter().map(|(key, value)| (Text::from(key), value));
        Value::from(members.collect::<Object>())
    });
    shape.insert("minutes".into(), minutes.collect::<Vec<_>>().into());
    app.answers.value(StatusCode::OK, shape.into()).await
}

/// `GET /v1/queues/hold`: the queue of that name.
async fn get_hold(state: State<App>) -> Answer {
    get(state, Path("hold".to_owned())).await
}

/// `PUT /v1/queues/hold`: the queue of that name.
async fn put_hold(state: State<App>, operator: Extension<Operator>, body: Sent) -> Answer {
    put(state, operator, Path("hold".to_owned()), body).await
}

/// `PUT /v1/queues/{queue}`
pub async fn put(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(queue): Path<String>,
    mut body: Sent,
) -> Answer {
    let name = queue_name(&queue)?;
    let body = body.read(&QueueSettings::MEMBERS).await?;
    let settings = QueueSettings::read(body.members())
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidQueue", error.to_string()))?;
    let kept = settings.clone();
    let kept_name = name.clone();
    super::aside(&app.node, move |node| node.set_queue(&kept_name, &kept, &operator)).await??;
    let mut shape = settings.write();
    shape.insert("name".into(), name.into());
    app.answers.value(StatusCode::OK, shape.into()).await
}

fn shape(app: &App, queue: &ShownQueue) -> Object {
    let ShownQueue { view, dead } = queue;
    let mut shape: Object = [
        ("name".into(), Value::from(view.name.clone())),
        ("waiting".into(), view.waiting.into()),
        ("held".into(), view.held.into()),
        ("dead".into(), (*dead).into()),
        ("workers".into(), (view.workers as u64).into()),
        ("busyWorkers".into(), (view.busy as u64).into()),
    ]
    .into_iter()
    .collect();
    let age = view.oldest.map(|since| app.node.now().since(since).as_secs());
    shape.insert("ageSeconds".into(), age.map_or(Value::Null, Value::from));
    for (name, value) in view.settings.write().iter() {
        shape.insert(name.clone(), value.clone());
    }
    shape
}

/// `GET /v1/queues/{queue}/dead`
pub async fn dead(
    State(app): State<App>,
    Path(queue): Path<String>,
    Parameters(given): Parameters<Vec<(String, String)>>,
) -> Answer {
    let name = queue_name(&queue)?;
    let query = Query::of(given, &["cursor", "limit"])?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let after = query.get("cursor").map(cursor).transpose()?;
    let tasks = dead_after(&app, name, after, limit).await?;
    let next = tasks.last().filter(|_| tasks.len() == limit).map(written_cursor);
    let shown = super::aside(&app.node, move |node| {
        let shapes = tasks
            .iter()
            .map(|task| Ok(dead_shape(task, node.store().record(&task.execution)?)));
        shapes.collect::<Result<Vec<Value>, StoreError>>()
    });
    let items = shown.await??;
    app.answers.value(StatusCode::OK, shapes::page(items, next)).await
}

pub(super) async fn dead_after(
    app: &App,
    queue: Text,
    after: Option<(Text, EventId)>,
    limit: usize,
) -> Answer<Vec<DeadTask>> {
    let tasks = super::aside(&app.node, move |node| {
        let after = after.as_ref().map(|(execution, call)| (execution.as_str(), *call));
        node.store().dead_tasks(&queue, after, limit)
    });
    Ok(tasks.await??)
}

fn cursor(text: &str) -> Answer<(Text, EventId)> {
    let read = text.rsplit_once('/');
    let read = read.and_then(|(execution, call)| Some((Text::from(execution), EventId(call.parse().ok()?))));
    read.ok_or_else(|| Problem::bad("`cursor` is not one of ours"))
}

fn written_cursor(task: &DeadTask) -> Value {
    format!("{}/{}", task.execution, task.call).into()
}

pub(super) fn dead_shape(task: &DeadTask, record: Option<ExecutionRecord>) -> Value {
    let mut shape: Object = [
        ("queue".into(), Value::from(task.queue.clone())),
        ("execution".into(), task.execution.clone().into()),
        ("call".into(), task.call.0.into()),
        ("step".into(), task.step.clone().into()),
        ("attempt".into(), task.attempt.into()),
        ("error".into(), task.error.clone().into()),
        ("cause".into(), task.cause.clone().into()),
        ("time".into(), task.time.to_string().into()),
    ]
    .into_iter()
    .collect();
    if let Some(record) = record {
        shape.insert("flow".into(), record.flow.into());
        shape.insert("name".into(), record.name.into());
    }
    shape.into()
}

/// `POST /v1/queues/{queue}/dead`
pub async fn discard_dead(
    State(app): State<App>,
    Extension(Caller(caller)): Extension<Caller>,
    Extension(operator): Extension<Operator>,
    Path(queue): Path<String>,
    mut body: Sent,
) -> Answer {
    let name = queue_name(&queue)?;
    let body = body.read(&["action", "tasks", "cursor", "by"]).await?;
    let after = body.text("cursor")?.map(|text| cursor(&text)).transpose()?;
    let wanted = body.get("tasks").map(wanted).transpose()?;
    let mut tasks = dead_after(&app, name, after, MAX_DEAD_TASKS).await?;
    let next = tasks
        .last()
        .filter(|_| tasks.len() == MAX_DEAD_TASKS)
        .map(written_cursor);
    if let Some(wanted) = &wanted {
        tasks.retain(|task| wanted.contains(&(task.execution.clone(), task.call)));
    }
    let outcome = match body.text("action")?.as_deref() {
        Some("requeue") => {
            // The name in a request counts only if no token is needed.
            let by = caller.or(body.text("by")?);
            app.node.requeue(&tasks, by.as_deref(), &operator).await?
        }
        Some("drop") => app.node.drop_dead(&tasks, &operator).await?,
        _ => return Err(Problem::bad("`action` must be `requeue` or `drop`")),
    };
    let shape: Object = [
        ("done".into(), Value::from(outcome.done)),
        ("notDone".into(), outcome.not_done.into()),
        ("next".into(), next.unwrap_or(Value::Null)),
    ]
    .into_iter()
    .collect();
    app.answers.value(StatusCode::OK, shape.into()).await
}

fn wanted(tasks: &Value) -> Answer<Vec<(Text, EventId)>> {
    let read = |task: &Value| {
        let task = task.as_object()?;
        let call = task.get("call")?.as_number()?.as_u64()?;
        Some((task.get("execution")?.as_text()?.clone(), EventId(call)))
    };
    let tasks = tasks.as_array().map(|tasks| tasks.values().iter().map(read).collect());
    let tasks: Option<Option<Vec<_>>> = tasks;
    tasks
        .flatten()
        .ok_or_else(|| Problem::bad("`tasks` must be a list of `{\"execution\", \"call\"}`"))
}
