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
    describe(state, describe_steps(flow, state).collect())
}

/// How many bytes of open steps' data a described state has. An input that a thousand iterations share counts in each of them.
const STATE_BYTES: usize = 16 << 20;
/// How many open steps a described state has.
const STATE_STEPS: usize = 20_000;

/// [`describe_state`] with a bounded size: where steps or their data are too many, `stepsLeftOut` says how many steps are not told.
pub fn describe_state_within_bounds(flow: &Flow, state: &State) -> Value {
    let mut bytes = 0;
    let fits = |step: &Value| {
        let fits = bytes < STATE_BYTES;
        let data = ["input", "local"].iter().filter_map(|member| step.get(member));
        bytes += data.map(Value::json_len).sum::<usize>();
        fits
    };
    let steps: Vec<Value> = describe_steps(flow, state).take(STATE_STEPS).take_while(fits).collect();
    let left_out = state.open_step_count() - steps.len();
    let described = describe(state, steps.into_iter().collect());
    match described {
        Value::Object(mut shape) if left_out > 0 => {
            shape.insert("stepsLeftOut".into(), (left_out as u64).into());
            shape.into()
        }
        described => described,
    }
}

/// The open steps of a state, outer before inner, each with its name, path, state, attempt, visit, input and local.
pub fn describe_steps(flow: &Flow, state: &State) -> impl Iterator<Item = Value> {
    state.each_open_step().map(|open| describe_step(flow, open))
}

fn describe(state: &State, steps: Array) -> Value {
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
