//! Executions that waited to begin: what their first event says, and those that end before their first step.

mod set_up;

use set_up::{flow, start};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_machine::history::{read_event, read_turn, write_event, write_turn};
use starbridge_machine::{
    EndBeforeStart, Event, EventId, EventKind, Fork, Signal, StartRecord, State, Status, Waited, WaitedFor, WaitedKey,
    turn_length,
};
use std::sync::Arc;

fn waited() -> Box<StartRecord> {
    let Signal::Start(mut started) = start() else {
        panic!("no start");
    };
    started.terms.once_key = Some("a key".into());
    started.terms.priority = Some(9);
    started.terms.order_time = Some(-7);
    started.terms.waited = Some(Waited {
        after: vec![
            WaitedFor {
                flow: Some("other".into()),
                execution: "first".into(),
                any_end: false,
            },
            WaitedFor {
                flow: None,
                execution: "an-id".into(),
                any_end: true,
            },
        ],
        keys: vec![WaitedKey {
            pool: "f".into(),
            key: "c-1".into(),
        }],
        requested_time: Timestamp(1_000),
        start_at: Some(Timestamp(5_000)),
    });
    started
}

fn stopped() -> EndBeforeStart {
    EndBeforeStart::Stopped {
        error: None,
        cause: "it is late".to_owned(),
        by: Some("ann".to_owned()),
        rollback: true,
    }
}

fn late() -> EndBeforeStart {
    EndBeforeStart::Failed {
        error: "FnF.StartDeadlineExceeded".to_owned(),
        cause: "too late".to_owned(),
    }
}

const STEPS: &str = r#"{"type": "task", "name": "t", "resourceArn": "queue:q"}"#;

fn declined(end: EndBeforeStart) -> (State, Vec<Event>) {
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut events = Vec::new();
    let signal = Signal::Decline { start: waited(), end };
    state
        .advance(&flow(STEPS), signal, Timestamp(2_000), &mut events)
        .unwrap();
    (state, events)
}

#[test]
fn declined_start_has_two_events_and_does_nothing() {
    for (end, status, error) in [
        (stopped(), Status::Stopped, "FnF.Stopped"),
        (late(), Status::Failed, "FnF.StartDeadlineExceeded"),
    ] {
        let (state, events) = declined(end);
        assert_eq!(state.status(), status);
        assert_eq!(state.failure().unwrap().error, error);
        assert_eq!(events.len(), 2);
        assert!(matches!(events[0].detail, EventKind::ExecutionStarted(_)));
        assert_eq!(state.next_wakeup(), None);
        assert!(!state.must_continue());
    }
}

#[test]
fn declined_start_is_replayed_as_one_turn() {
    let flow = flow(STEPS);
    for end in [stopped(), late()] {
        let (_, events) = declined(end.clone());
        assert_eq!(turn_length(&events), 2);
        let state = State::new("e", Arc::new(Limits::default()));
        let mut again = state.clone();
        let signal = state.recorded_signal(&flow, &events).unwrap();
        assert!(matches!(signal, Signal::Decline { .. }));
        let mut came = Vec::new();
        again.advance(&flow, signal, events[0].time, &mut came).unwrap();
        assert_eq!(came, events);
    }
}

#[test]
fn declined_start_can_be_redriven() {
    let flow = flow(STEPS);
    for end in [stopped(), late()] {
        let (mut state, _) = declined(end);
        let mut events = Vec::new();
        state
            .advance(
                &flow,
                Signal::Redrive {
                    by: None,
                    inputs: Vec::new(),
                    definition: None,
                },
                Timestamp(3_000),
                &mut events,
            )
            .unwrap();
        assert_eq!(state.status(), Status::Running);
        assert_eq!(state.calls_to_send_after(&flow, EventId(0)).count(), 1);
    }
}

#[test]
fn first_event_says_what_was_waited_for_in_both_forms() {
    let flow = flow(STEPS);
    let (_, events) = declined(stopped());
    let EventKind::ExecutionStarted(started) = &events[0].detail else {
        panic!("{events:?}");
    };
    assert_eq!((started.machine, started.terms.clone()), (2, waited().terms));
    let written = write_event(&flow, &events[0]);
    let detail = written.get("detail").unwrap().as_object().unwrap();
    assert_eq!(
        detail.get("waited").unwrap().to_json(),
        r#"{"requestedTime":"1970-01-01T00:00:01.000Z","startAt":"1970-01-01T00:00:05.000Z","after":[{"flow":"other","execution":"first"},{"execution":"an-id","when":"ended"}],"keys":[{"pool":"f","key":"c-1"}]}"#
    );
    assert_eq!(read_event(&flow, &written.into()).unwrap(), events[0]);
    let turn = write_turn(&flow, &events);
    assert_eq!(read_turn(&flow, EventId(1), events[0].time, &turn).unwrap(), events);
}

#[test]
fn priority_of_the_start_is_that_of_tasks_without_one() {
    let own = r#"{"type": "task", "name": "t", "resourceArn": "queue:q", "priority": 2}"#;
    for (steps, given, expected) in [(STEPS, Some(9), 9), (STEPS, None, 5), (own, Some(9), 2), (own, None, 2)] {
        let flow = flow(steps);
        let mut started = waited();
        started.terms.priority = given;
        let mut state = State::new("e", Arc::new(Limits::default()));
        let mut events = Vec::new();
        state
            .advance(&flow, Signal::Start(started), Timestamp(2_000), &mut events)
            .unwrap();
        let calls: Vec<_> = state.calls_to_send_after(&flow, EventId(0)).collect();
        assert_eq!(calls.iter().map(|call| call.priority).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn fork_has_not_the_key_of_the_old_execution() {
    let flow = flow(STEPS);
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut events = Vec::new();
    state
        .advance(&flow, Signal::Start(waited()), Timestamp(2_000), &mut events)
        .unwrap();
    let fork = Fork {
        by: None,
        of: "e".into(),
        event: EventId(2),
        execution: "f".into(),
        name: "f".into(),
        version: None,
    };
    let forked = State::fork(
        &flow,
        &flow,
        &events,
        &fork,
        Arc::new(Limits::default()),
        Timestamp(3_000),
    )
    .unwrap();
    let terms = &forked.state.started().unwrap().terms;
    assert_eq!((terms.once_key.clone(), terms.priority), (None, Some(9)));
}
