//! What an acknowledged send means: acceptance for a task that waits for a callback, no result yet for one that
//! polls.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{EventId, Signal, State, Status};
use std::sync::Arc;

fn started(task: &str) -> (Arc<Flow>, State) {
    let flow = set_up::flow(&format!(
        r#"{{"type": "task", "name": "t", "resourceArn": "http://x/", {task}}}"#
    ));
    let mut state = State::new("e", Arc::new(Limits::default()));
    state
        .advance(&flow, set_up::start(), Timestamp(0), &mut Vec::new())
        .unwrap();
    (flow, state)
}

fn accepted(flow: &Flow, state: &mut State) -> EventId {
    let call = state.calls_in_flight().next().unwrap();
    let receipt: Object = [("status".into(), Value::from(202u32))].into_iter().collect();
    let signal = Signal::Submitted {
        call,
        receipt: Some(receipt.into()),
        execution: None,
        version: None,
    };
    state.advance(flow, signal, Timestamp(1), &mut Vec::new()).unwrap();
    call
}

#[test]
fn status_202_leaves_a_callback_waiting() {
    let (flow, mut state) = started(r#""pattern": "waitForCallback""#);
    let call = accepted(&flow, &mut state);
    assert!(state.is_in_flight(call));
    assert_eq!(state.status(), Status::Running);
}

#[test]
fn status_202_makes_a_poll_ask_again() {
    let (flow, mut state) = started(r#""poll": {"intervalSeconds": 5}"#);
    let call = accepted(&flow, &mut state);
    assert!(!state.is_in_flight(call));
    assert_eq!(state.next_wakeup(), Some(Timestamp(5001)));
}
