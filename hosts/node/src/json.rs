//! States and diagnostics as JSON, for people and scripts.

mod diagnosed;

pub use diagnosed::{DiagnosedFile, diagnosed};

use starbridge_flow::graph::Flow;
use starbridge_flow::value::{Array, Object, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{OpenStep, State};
use starbridge_ports::ExecutionRecord;

/// A state as JSON: its last event, the version of the machine that its history needs, its status, the flow's input
/// and local, and the open steps, outer before inner.
pub fn describe_state(flow: &Flow, state: &State) -> Value {
    let steps: Array = state
        .open_steps()
        .into_iter()
        .map(|open| describe_step(flow, open))
        .collect();
    object([
        ("event", state.last_event().0.into()),
        ("time", state.last_time().to_string().into()),
        ("machine", state.needed_version().into()),
        ("status", state.status().as_str().into()),
        ("input", state.flow_input()),
        ("local", state.flow_local()),
        ("steps", steps.into()),
    ])
}

/// An execution that waits to begin, as [`describe_state`] describes one that has begun.
pub fn describe_waiting(record: &ExecutionRecord, input: Value) -> Value {
    object([
        ("event", 0_u64.into()),
        ("time", record.asked().to_string().into()),
        // A history without events is read by every version.
        ("machine", 1_u64.into()),
        ("status", record.status.as_str().into()),
        ("input", input),
        ("local", Object::new().into()),
        ("steps", Vec::new().into()),
    ])
}

fn describe_step(flow: &Flow, open: OpenStep) -> Value {
    let name = flow.step(open.step).map(|step| step.name.clone()).unwrap_or_default();
    object([
        ("step", name.into()),
        ("path", write_path(flow, &open.path)),
        ("state", open.state.as_str().into()),
        ("attempt", open.attempt.into()),
        ("visit", open.visit.into()),
        ("input", open.input),
        ("local", open.list_local),
    ])
}

/// An object with these members.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().map(|(key, value)| (key.into(), value));
    members.collect::<Object>().into()
}
