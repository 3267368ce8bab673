//! A history, and a checkpoint of it, name the lowest version of the machine that reads them.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::history::{read_event, write_event};
use starbridge_machine::{
    CheckpointError, Decision, Event, EventKind, MACHINE_VERSION, Resolution, Signal, State, Status,
};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);

/// An execution whose only step waits for an operator.
fn waiting() -> (Arc<Flow>, State, Vec<Event>) {
    let flow = set_up::flow(
        r#"{"type": "task", "name": "t", "resourceArn": "http://x/", "catch": [{"errors": ["FnF.ALL"], "manual": true}]}"#,
    );
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut events = Vec::new();
    state.advance(&flow, set_up::start(), NOW, &mut events).unwrap();
    let failed = Signal::Failed {
        call: state.calls_in_flight().next().unwrap(),
        error: "E".to_owned(),
        cause: String::new(),
        retry_after: None,
        not_sent: false,
        holder: None,
    };
    state.advance(&flow, failed, NOW, &mut events).unwrap();
    assert_eq!(state.status(), Status::Manual);
    (flow, state, events)
}

fn resolve(flow: &Flow, state: &mut State, note: Option<&str>) -> Vec<Event> {
    let resolution = Resolution {
        decision: Decision::Retry,
        by: "alice".into(),
        note: note.map(Into::into),
    };
    let signal = Signal::Resolve {
        request: state.manual_requests().next().unwrap().event,
        resolution: Box::new(resolution),
    };
    let mut events = Vec::new();
    state.advance(flow, signal, NOW, &mut events).unwrap();
    events
}

fn head(checkpoint: &[u8]) -> serde_json::Value {
    serde_json::from_slice(checkpoint).unwrap()
}

#[test]
fn version_is_the_lowest_that_reads_it() {
    let (flow, mut state, mut events) = waiting();
    let written = write_event(&flow, &events[0]);
    let detail = written.get("detail").and_then(Value::as_object).unwrap();
    assert_eq!(detail.get("machine"), Some(&1_u32.into()));
    events.extend(resolve(&flow, &mut state.clone(), None));
    assert!(events.iter().all(|event| event.detail.needed_version() == 1));
    assert_eq!(head(&state.checkpoint(&flow))["machine"], 1);

    let noted = resolve(&flow, &mut state, Some("by phone"));
    assert_eq!((noted[0].detail.needed_version(), state.needed_version()), (2, 2));
    let checkpoint = state.checkpoint(&flow);
    assert_eq!(head(&checkpoint)["machine"], 2);
    let read = State::from_checkpoint(&flow, &checkpoint, Arc::default()).unwrap();
    assert_eq!(read.checkpoint(&flow), checkpoint);
}

#[test]
fn newer_version_is_refused_by_its_number() {
    let (flow, state, events) = waiting();
    let newer = MACHINE_VERSION + 1;
    let EventKind::ExecutionStarted(mut started) = events[0].detail.clone() else {
        panic!("{:?}", events[0]);
    };
    started.machine = newer;
    let first = Event {
        detail: EventKind::ExecutionStarted(started),
        ..events[0].clone()
    };
    let refused = read_event(&flow, &write_event(&flow, &first).into()).unwrap_err();
    assert!(refused.message.contains(&format!("needs version {newer}")), "{refused}");

    let mut checkpoint = head(&state.checkpoint(&flow));
    for version in [0, newer] {
        checkpoint["machine"] = version.into();
        let bytes = serde_json::to_vec(&checkpoint).unwrap();
        let refused = State::from_checkpoint(&flow, &bytes, Arc::default()).unwrap_err();
        assert!(matches!(refused, CheckpointError::Other(head) if head.machine == version));
    }
}

#[test]
fn unknown_event_is_refused_by_its_name() {
    let (flow, _, events) = waiting();
    let mut written = write_event(&flow, &events[1]);
    written.insert("type".into(), "ExecutionDreamt".into());
    written.insert("detail".into(), Object::new().into());
    let refused = read_event(&flow, &written.into()).unwrap_err();
    assert_eq!(refused.message, "there is no event type `ExecutionDreamt`");
}
