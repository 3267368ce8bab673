//! The forms of answers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::graph::DEFAULT_PRIORITY;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Status;
use starbridge_node::node::StoredExecution;
use starbridge_node::notify::failed_undo;
use starbridge_ports::{Broken, ExecutionRecord, KeptFlow, RecordedPause, RecordedWait, WaitingReason};
use starbridge_runtime::Snapshot;

/// An answer with JSON.
pub fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = (status, body.into()).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// `{"items": …, "next": …}`; `next` is null on the last page.
pub fn page(items: Vec<Value>, next: Option<Value>) -> Value {
    let mut page = Object::new();
    page.insert("items".into(), items.into());
    page.insert("next".into(), next.unwrap_or(Value::Null));
    page.into()
}

/// An execution whose parent is gone.
pub fn orphan(begun: &Snapshot) -> Value {
    let shape = execution(begun);
    let parent = shape.as_object().and_then(|shape| shape.get("parent")?.as_object());
    match (parent.cloned(), shape) {
        (Some(mut parent), Value::Object(mut shape)) => {
            parent.insert("deleted".into(), true.into());
            shape.insert("parent".into(), parent.into());
            shape.into()
        }
        (_, shape) => shape,
    }
}

/// The JSON of an execution with its data.
pub fn execution(begun: &Snapshot) -> Value {
    let mut shape = record(&begun.execution, &begun.record);
    shape.insert("input".into(), begun.input.clone());
    if let Some(output) = &begun.output {
        shape.insert("output".into(), output.clone());
    }
    shape.into()
}

/// A stored execution without its data.
pub fn without_data(kept: &StoredExecution) -> Object {
    let mut shape = record(&kept.execution, &kept.record);
    let parent = shape.get("parent").and_then(Value::as_object).cloned();
    if let Some(mut parent) = parent.filter(|_| kept.parent_deleted) {
        parent.insert("deleted".into(), true.into());
        shape.insert("parent".into(), parent.into());
    }
    shape
}

/// An execution without its data.
pub fn record(id: &str, record: &ExecutionRecord) -> Object {
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("id", id.into());
    set("name", record.name.clone().into());
    set("flow", record.flow.clone().into());
    set("version", record.version.into());
    set("status", record.status.as_str().into());
    if let Some(failure) = &record.failure {
        set("error", failure.error.clone().into());
        set("cause", failure.cause.clone().into());
        if !failure.step.is_empty() {
            set("step", failure.step.clone().into());
        }
    }
    if let Some(undo) = &record.rollback {
        set("rollback", failed_undo(undo));
    }
    set("startedTime", record.started.to_string().into());
    if let Some(ended) = record.ended {
        set("endedTime", ended.to_string().into());
    }
    if let Some(requested) = record.requested {
        set("requestedTime", requested.to_string().into());
    }
    set(
        "priority",
        u32::from(record.priority.unwrap_or(DEFAULT_PRIORITY)).into(),
    );
    if let Some(order) = record.order_time {
        set("orderTime", order.into());
    }
    if let Some(key) = &record.once_key {
        set("onceKey", key.clone().into());
    }
    if let Some(labels) = &record.labels {
        set("labels", labels.clone().into());
    }
    if let Some(reason) = reason_of(id, record) {
        set("waitingFor", reason);
    }
    if let Some(parent) = &record.parent {
        let parent: Object = [
            ("execution".into(), Value::from(parent.execution.clone())),
            ("event".into(), parent.event.0.into()),
        ]
        .into_iter()
        .collect();
        set("parent", parent.into());
    }
    if let Some(root) = &record.root {
        set("root", root.clone().into());
    }
    if let Some(forked) = &record.forked {
        let forked: Object = [
            ("execution".into(), Value::from(forked.execution.clone())),
            ("event".into(), forked.event.0.into()),
        ]
        .into_iter()
        .collect();
        set("forkedFrom", forked.into());
    }
    shape
}

/// Why an execution does not go on, according to its record.
pub fn reason_of(id: &str, record: &ExecutionRecord) -> Option<Value> {
    if let Some(broken) = &record.broken {
        return Some(waiting_for(id, broken));
    }
    match &record.paused {
        Some(paused) => Some(waiting_for_resume(id, paused)),
        None => waiting_before_start(id, record).or_else(|| waiting_asleep(id, record)),
    }
}

/// What a sleeping execution that has begun waits for.
fn waiting_asleep(id: &str, record: &ExecutionRecord) -> Option<Value> {
    let RecordedWait { reason, of } = record.waits.as_ref().filter(|_| !record.awake)?;
    let until = record.wake_at.map(|until| until.to_string()).unwrap_or_default();
    let (text, act) = match reason {
        WaitingReason::Manual => (
            format!("`{of}` waits for an operator's decision"),
            Some(format!("starbridge resolve {id} retry --step {of}")),
        ),
        WaitingReason::Queue => (
            format!("its task is in the queue `{of}`"),
            Some(format!("starbridge why {id}")),
        ),
        WaitingReason::Callback => (
            format!("`{of}` waits for a report with its task token"),
            Some(format!("starbridge report {id} --step {of} succeed")),
        ),
        WaitingReason::Child => (
            format!("its child {of} has not ended"),
            Some(format!("starbridge why {of}")),
        ),
        WaitingReason::Retry => (format!("`{of}` is tried again; it goes on at {until}"), None),
        WaitingReason::Poll => (format!("`{of}` calls again; it goes on at {until}"), None),
        WaitingReason::Timer => (format!("`{of}` waits; it goes on at {until}"), None),
        _ => return None,
    };
    let mut members = Object::new();
    let mut set = |key: &str, value: Value| drop(members.insert(key.into(), value));
    set("reason", reason.as_str().into());
    set("text", text.into());
    set("of", of.clone().into());
    if let Some(until) = record.wake_at {
        set("until", until.to_string().into());
    }
    set("act", act.map_or(Value::Null, Value::from));
    Some(members.into())
}

/// Why an execution is set aside, and what can be done.
fn waiting_for(id: &str, broken: &Broken) -> Value {
    let members = [
        ("reason", "broken".into()),
        ("text", broken.cause.clone().into()),
        ("since", broken.since.to_string().into()),
        ("act", format!("starbridge redrive {id}").into()),
    ];
    let members = members.into_iter().map(|(key, value)| (key.into(), value));
    members.collect::<Object>().into()
}

/// Who paused an execution, and how to resume it.
fn waiting_for_resume(id: &str, paused: &RecordedPause) -> Value {
    let by = match paused.by.as_str() {
        "" => "an operator".to_owned(),
        by => format!("`{by}`"),
    };
    let text = match paused.cause.as_str() {
        "" => format!("{by} paused it"),
        cause => format!("{by} paused it: {cause}"),
    };
    let members = [
        ("reason", WaitingReason::Paused.as_str().into()),
        ("text", text.into()),
        ("since", paused.since.to_string().into()),
        ("by", paused.by.clone().into()),
        ("cause", paused.cause.clone().into()),
        ("act", format!("starbridge resume {id}").into()),
    ];
    let members = members
        .into_iter()
        .map(|(key, value): (&str, Value)| (key.into(), value));
    members.collect::<Object>().into()
}

/// Why an execution has not begun, or a redriven one does not go on.
fn waiting_before_start(id: &str, record: &ExecutionRecord) -> Option<Value> {
    let (reason, text) = match record.status {
        Status::Delayed => (WaitingReason::StartTime, "its time to begin has not come"),
        Status::Blocked => (WaitingReason::Dependency, "executions it waits for have not ended"),
        Status::Queued => (WaitingReason::Admission, "whether it may run is not decided yet"),
        _ => return None,
    };
    let mut members = Object::new();
    let mut set = |key: &str, value: Value| drop(members.insert(key.into(), value));
    set("reason", reason.as_str().into());
    set("text", text.into());
    set("since", record.asked().to_string().into());
    if let Some(until) = record.wake_at {
        set("until", until.to_string().into());
    }
    set(
        "act",
        match reason {
            WaitingReason::StartTime => format!("starbridge order {id} --now").into(),
            WaitingReason::Dependency => format!("starbridge order {id} --no-after").into(),
            _ => Value::Null,
        },
    );
    Some(members.into())
}

/// A version of a flow, without its definition.
pub fn flow(kept: &KeptFlow) -> Value {
    let shape: Object = [
        ("name".into(), Value::from(kept.name.clone())),
        ("version".into(), kept.version.into()),
        ("hash".into(), kept.hash.clone().into()),
        ("createdTime".into(), kept.created.to_string().into()),
    ]
    .into_iter()
    .collect();
    shape.into()
}
