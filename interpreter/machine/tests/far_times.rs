//! Times too far away to be written: the wait, what is said about it and what is read back are the same.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::{Millis, Seconds, Timestamp};
use starbridge_flow::value::{Object, Value};
use starbridge_machine::history::{read_event, read_turn, write_event, write_turn};
use starbridge_machine::{Event, EventId, EventKind, Signal, State, Status};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);

fn started(more: &str) -> (Arc<Flow>, State) {
    let flow = set_up::flow(&format!(
        r#"{{"type": "task", "name": "t", "resourceArn": "http://x/", {more}}}"#
    ));
    let mut state = State::new("e", Arc::new(Limits::default()));
    give(&flow, &mut state, set_up::start(), NOW);
    (flow, state)
}

/// Gives a signal; returns the events as they are read back.
fn give(flow: &Flow, state: &mut State, signal: Signal, now: Timestamp) -> Vec<Event> {
    let mut events = Vec::new();
    state.advance(flow, signal, now, &mut events).unwrap();
    let read = read_turn(flow, events[0].id, now, &write_turn(flow, &events)).unwrap();
    assert_eq!(read, events);
    events
}

fn call(state: &State) -> EventId {
    state.calls_in_flight().next().unwrap()
}

fn fire(flow: &Flow, state: &mut State, due: Timestamp) {
    let timer = state.due(due).find(|timer| timer.due == due).unwrap();
    give(flow, state, Signal::TimerDue(timer), due);
}

#[test]
fn retry_is_due_when_its_delay_says() {
    let (flow, mut state) = started(r#""retry": [{"errors": ["Busy"], "maxIntervalSeconds": 5}]"#);
    let signal = Signal::Failed {
        call: call(&state),
        error: "Busy".to_owned(),
        cause: String::new(),
        retry_after: Some(Seconds(u64::MAX)),
        not_sent: false,
        holder: None,
    };
    let events = give(&flow, &mut state, signal, NOW);
    let Some(EventKind::RetryScheduled { due, delay, .. }) = events.last().map(|event| &event.detail) else {
        panic!("no retry: {events:?}");
    };
    assert_eq!((*due, *delay), (Timestamp::END, Timestamp::END.since(NOW)));
    fire(&flow, &mut state, Timestamp::END);
    assert_eq!(state.calls_in_flight().count(), 1, "it is tried again");
}

#[test]
fn poll_asks_again_at_the_end_of_time() {
    let (flow, mut state) = started(r#""poll": {"intervalSeconds": 5}"#);
    let receipt: Object = [
        ("status".into(), Value::from(202u32)),
        ("retryAfter".into(), Value::from(u64::MAX)),
    ]
    .into_iter()
    .collect();
    let signal = Signal::Submitted {
        call: call(&state),
        receipt: Some(receipt.into()),
        execution: None,
        version: None,
    };
    let events = give(&flow, &mut state, signal, NOW);
    let due = events.iter().find_map(|event| match &event.detail {
        EventKind::PollScheduled { due, .. } => Some(*due),
        _ => None,
    });
    assert_eq!(due, Some(Timestamp::END));
    fire(&flow, &mut state, Timestamp::END);
    assert_eq!((state.calls_in_flight().count(), state.status()), (1, Status::Running));
}

/// Histories that were kept before such times had a bound stay readable and are written unchanged.
#[test]
fn retry_delay_without_bound_of_an_old_history_is_read() {
    let (flow, _) = started(r#""retry": [{"errors": ["Busy"]}]"#);
    let kept = r#"{"id":7,"causedBy":6,"time":"2024-01-01T00:00:00.000Z","step":"t","path":[],"type":"RetryScheduled","detail":{"policy":0,"attempt":2,"delayMs":18446744073709551615,"due":"1970-01-01T00:00:00.000Z"}}"#;
    let kept: Value = serde_json::from_str(kept).unwrap();
    let event = read_event(&flow, &kept).unwrap();
    assert!(matches!(
        event.detail,
        EventKind::RetryScheduled {
            delay: Millis::MAX,
            due: Timestamp(0),
            ..
        }
    ));
    assert_eq!(Value::from(write_event(&flow, &event)).to_json(), kept.to_json());
}
