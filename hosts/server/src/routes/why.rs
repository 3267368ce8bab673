//! Why an execution is not moving: the reason that most needs a person, and all open reasons.

use super::queue_waits::{because, tell_place, tell_queue};
use super::route::Route;
use super::waiting::waiting_for;
use crate::App;
use crate::scope::Scope;
use crate::shapes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::graph::Flow;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{EventId, Status};
use starbridge_node::node::{Node, QueryError};
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::visits::{OpenWait, Row, Visits};
use starbridge_ports::{ExecutionRecord, WaitingReason};

/// The routes of reasons.
pub(super) const ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/v1/executions/{id}/why",
    scope: Some(Scope::Read),
    summary: "Why it does not go on: the reason that needs somebody first, and what each open step waits for",
    query: &[],
    body: None,
    answers: &[(200, "the reasons; none of one that has ended", Some("Why"))],
    handler: Some(|| get(why)),
}];

/// How many waits an answer has.
const TOLD: usize = 100;
/// How many visits of steps are looked at.
const VISITS: usize = 100_000;
/// How many levels of children are asked for their own reason.
const DEPTH: u32 = 8;

/// Reasons of steps; those that need a person come first.
const ORDER: [WaitingReason; 13] = [
    WaitingReason::Broken,
    WaitingReason::Manual,
    WaitingReason::Paused,
    WaitingReason::Queue,
    WaitingReason::Callback,
    WaitingReason::Child,
    WaitingReason::Retry,
    WaitingReason::Worker,
    WaitingReason::Poll,
    WaitingReason::Timer,
    WaitingReason::Call,
    WaitingReason::Capacity,
    WaitingReason::Running,
];

/// `GET /v1/executions/{id}/why`
async fn why(State(app): State<App>, Path(id): Path<String>) -> Answer {
    let node = app.node.clone();
    let make = move || {
        let record = node.store().record(&id)?.ok_or(QueryError::NoSuchExecution)?;
        let asked = Asked { node: &node };
        let told = asked.reasons(&id, &record, DEPTH)?;
        let mut shape = Object::new();
        shape.insert("execution".into(), id.into());
        shape.insert("status".into(), record.status.as_str().into());
        shape.insert("waitingFor".into(), told.primary());
        shape.insert("open".into(), (told.open as u64).into());
        shape.insert("waits".into(), told.waits.into());
        Ok::<Value, Problem>(shape.into())
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// The reason of an execution that most needs a person, according to its history; null if it has
/// ended.
pub(super) fn primary(node: &Node, id: &str, record: &ExecutionRecord) -> Answer<Value> {
    Ok(Asked { node }.reasons(id, record, DEPTH)?.primary())
}

/// The execution that is asked.
struct Asked<'a> {
    node: &'a Node,
}

/// Reasons; the first is the primary one.
#[derive(Default)]
struct Reasons {
    waits: Vec<Value>,
    /// How many there are, including those left out of the answer.
    open: usize,
}

impl Reasons {
    fn of(reason: Value) -> Self {
        Self {
            waits: vec![reason],
            open: 1,
        }
    }

    fn primary(&self) -> Value {
        self.waits.first().cloned().unwrap_or_default()
    }
}

impl Asked<'_> {
    fn reasons(&self, id: &str, record: &ExecutionRecord, depth: u32) -> Answer<Reasons> {
        if record.ended.is_some() || record.status.is_ended() {
            return Ok(Reasons::default());
        }
        let of_record = shapes::reason_of(id, record);
        match record.status {
            _ if record.broken.is_some() => Ok(of_record.map_or_else(Reasons::default, Reasons::of)),
            Status::Delayed => Ok(of_record.map_or_else(Reasons::default, Reasons::of)),
            Status::Queued | Status::Blocked => {
                let mut told = Reasons::of(waiting_for(self.node.store().as_ref(), id, record)?);
                if let Some(paused) = of_record.filter(|_| record.paused.is_some()) {
                    told.waits.insert(0, paused);
                    told.open += 1;
                }
                Ok(told)
            }
            _ => self.of_steps(id, record, of_record.filter(|_| record.paused.is_some()), depth),
        }
    }

    /// The reasons of an execution that has begun. `of_record` is the pause, if there is one.
    fn of_steps(&self, id: &str, record: &ExecutionRecord, of_record: Option<Value>, depth: u32) -> Answer<Reasons> {
        let mut visits = Visits::new(VISITS);
        self.node.each_event(id, |flow, event| {
            visits.see(flow, event);
            true
        })?;
        let (rows, _) = visits.into_rows(None);
        let flow = self.node.flow_of(id, record)?;
        let mut waits: Vec<OpenWait> = rows.iter().filter_map(Row::open_wait).collect();
        let task = |call: EventId| (Text::from(id), call);
        let tasks = waits.iter().filter(|wait| wait.reason == WaitingReason::Queue);
        let holders = self
            .node
            .holders(tasks.filter_map(|wait| wait.call).map(task).collect());
        for wait in &mut waits {
            if wait.call.is_some_and(|call| holders.contains_key(&task(call))) {
                wait.reason = WaitingReason::Worker;
            }
        }
        waits.sort_by_key(|wait| rank(wait.reason));
        let pause_at = waits
            .iter()
            .take_while(|wait| wait.reason == WaitingReason::Manual)
            .count();
        let mut told = Reasons {
            open: waits.len() + usize::from(of_record.is_some()),
            waits: Vec::new(),
        };
        for (number, wait) in waits.into_iter().take(TOLD).enumerate() {
            // Only the primary one is followed further: with the others, one request could read
            // without end.
            let depth = if number == 0 { depth } else { 0 };
            let holder = wait.call.and_then(|call| holders.get(&task(call)));
            let mut shape = common(&flow, &wait);
            match (wait.reason, holder) {
                (WaitingReason::Worker, Some((worker, held))) => {
                    set(&mut shape, "worker", worker.clone());
                    set(&mut shape, "heldTime", held.to_string());
                    let until = wait.call.and_then(|call| self.node.lease_until(task(call)));
                    if let Some(until) = until {
                        set(&mut shape, "leaseUntil", until.to_string());
                    }
                    let text = format!("the worker `{worker}` holds the task of `{}`", wait.step);
                    say(&mut shape, text, None);
                }
                (WaitingReason::Queue, _) => self.in_queue(id, &wait, &mut shape)?,
                (WaitingReason::Child, _) => self.child(&wait, depth, &mut shape)?,
                _ => of_step(id, &wait, &mut shape),
            }
            told.waits.push(shape.into());
        }
        if let Some(paused) = of_record {
            told.waits.insert(pause_at.min(told.waits.len()), paused);
            told.waits.truncate(TOLD);
        }
        if told.waits.is_empty() {
            let mut shape = Object::new();
            set(&mut shape, "reason", WaitingReason::Running.as_str());
            say(&mut shape, "it computes, or others have their turn".to_owned(), None);
            told = Reasons::of(shape.into());
        }
        Ok(told)
    }

    /// A task that no worker holds.
    fn in_queue(&self, id: &str, wait: &OpenWait, shape: &mut Object) -> Answer<()> {
        let name = wait.queue.clone().unwrap_or_default();
        let view = self.node.queue_now(&name);
        let because = because(id, &view);
        tell_queue(&view, &because, shape);
        let store = self.node.store().as_ref();
        if let Some((task, None)) = store.task_of(id, wait.call)? {
            tell_place(store, &task, shape)?;
        }
        let text = format!("the task of `{}` is in the queue `{name}`: {}", wait.step, because.text);
        say(shape, text, Some(because.act));
        Ok(())
    }

    /// A child, with its own reason.
    fn child(&self, wait: &OpenWait, depth: u32, shape: &mut Object) -> Answer<()> {
        let child = wait.child.clone().unwrap_or_default();
        let record = self.node.store().record(&child)?;
        let status = record.as_ref().map_or("notThere", |record| record.status.as_str());
        let reason = match (&record, depth) {
            (Some(record), 1..) => self.reasons(&child, record, depth - 1)?.primary(),
            _ => Value::Null,
        };
        set(shape, "execution", child.clone());
        set(shape, "childStatus", status);
        let own = reason.as_object();
        let act = own.and_then(|own| own.get("act")?.as_str().map(str::to_owned));
        let text = match own.and_then(|own| own.get("text")?.as_str()) {
            Some(why) => format!("its child {child} is {status}: {why}"),
            None => format!("its child {child} is {status}"),
        };
        shape.insert("waitingFor".into(), reason);
        say(shape, text, act.or_else(|| Some(format!("starbridge why {child}"))));
        Ok(())
    }
}

fn rank(reason: WaitingReason) -> usize {
    ORDER.iter().position(|other| *other == reason).unwrap_or(ORDER.len())
}

fn set(shape: &mut Object, key: &str, value: impl Into<Value>) {
    shape.insert(key.into(), value.into());
}

fn say(shape: &mut Object, text: String, act: Option<String>) {
    set(shape, "text", text);
    set(shape, "act", act.map_or(Value::Null, Value::from));
}

/// The common members of every open step.
fn common(flow: &Flow, wait: &OpenWait) -> Object {
    let mut shape = Object::new();
    set(&mut shape, "reason", wait.reason.as_str());
    set(&mut shape, "since", wait.since.to_string());
    set(&mut shape, "step", wait.step.clone());
    set(&mut shape, "path", write_path(flow, &wait.path));
    set(&mut shape, "event", wait.event.0);
    if let Some(request) = wait.request {
        set(&mut shape, "request", request.0);
    }
    set(&mut shape, "attempt", wait.attempt);
    if let Some(until) = wait.until {
        set(&mut shape, "until", until.to_string());
    }
    if let Some(timeout) = wait.timeout_at {
        set(&mut shape, "timeoutAt", timeout.to_string());
    }
    if let Some(resource) = &wait.resource {
        set(&mut shape, "resource", resource.clone());
    }
    if let Some(failure) = &wait.failure {
        set(&mut shape, "error", failure.error.clone());
        set(&mut shape, "cause", failure.cause.clone());
    }
    if wait.rollback {
        set(&mut shape, "rollback", true);
    }
    shape
}

/// A step that does not wait for another part of the server.
fn of_step(id: &str, wait: &OpenWait, shape: &mut Object) {
    let step = &wait.step;
    let until = wait.until.map(|until| until.to_string()).unwrap_or_default();
    let resource = wait.resource.clone().unwrap_or_default();
    let (text, act) = match wait.reason {
        WaitingReason::Manual => (
            format!("`{step}` waits for an operator's decision"),
            Some(format!(
                "starbridge resolve {id} retry --event {}",
                wait.request.unwrap_or(wait.event).0
            )),
        ),
        WaitingReason::Callback => (
            format!("`{step}` waits for a report with its task token; `{resource}` was called"),
            Some(format!("starbridge report {id} --event {} succeed", wait.event.0)),
        ),
        // Only time helps: a command that ends a healthy wait is no help.
        WaitingReason::Retry => (format!("`{step}` is tried again at {until}"), None),
        WaitingReason::Poll => (format!("`{step}` calls again at {until}"), None),
        WaitingReason::Timer => (format!("`{step}` waits until {until}"), None),
        _ => (format!("`{step}` waits for the answer of `{resource}`"), None),
    };
    say(shape, text, act);
}
