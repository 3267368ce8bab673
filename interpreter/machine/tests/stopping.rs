//! Who may stop an execution: one that has Succeeded is undone for its parent only.

mod set_up;

use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Object;
use starbridge_machine::{Event, EventKind, Rejection, Signal, State, Status};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);
const UNDOABLE: &str =
    r#"{"type": "task", "name": "t", "resourceArn": "http://x/", "rollback": {"resourceArn": "http://x/undo"}}"#;

fn stop(rollback: bool, with_parent: bool) -> Signal {
    Signal::Stop {
        error: Some("E".to_owned()),
        cause: "why".to_owned(),
        by: Some("ann".to_owned()),
        rollback,
        with_parent,
    }
}

#[test]
fn success_is_undone_for_the_parent_only() {
    let flow = set_up::flow(UNDOABLE);
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut events: Vec<Event> = Vec::new();
    let mut give = |state: &mut State, signal| state.advance(&flow, signal, NOW, &mut events);
    give(&mut state, set_up::start()).unwrap();
    let call = state.calls_in_flight().next().unwrap();
    let succeeded = Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: None,
    };
    give(&mut state, succeeded).unwrap();
    assert_eq!(state.status(), Status::Succeeded);
    for (rollback, with_parent) in [(true, false), (false, false), (false, true)] {
        let taken = give(&mut state, stop(rollback, with_parent));
        assert_eq!(taken, Err(Rejection::Finished), "{rollback} {with_parent}");
        assert_eq!(state.status(), Status::Succeeded);
    }
    let before = state.clone();
    give(&mut state, stop(true, true)).unwrap();
    assert_eq!(state.status(), Status::RollingBack);
    // A stop in a history is replayed, whoever asked for it.
    let at = events
        .iter()
        .position(|event| matches!(event.detail, EventKind::ExecutionStopped { .. }))
        .unwrap();
    let turn = &events[at..];
    let signal = before.recorded_signal(&flow, turn).unwrap();
    let (mut again, mut written) = (before, Vec::new());
    again.advance(&flow, signal, NOW, &mut written).unwrap();
    assert_eq!((written.as_slice(), again.status()), (turn, Status::RollingBack));
}
