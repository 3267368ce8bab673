//! Tasks of worker queues: their timeout begins when a worker takes them, and a missed heartbeat can lead to a retry.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::{read_turn, write_event, write_turn};
use starbridge_machine::{Event, EventId, EventKind, Holder, Signal, State, Status, TURN_BYTES};
use std::sync::Arc;

/// A run that writes down each turn, reads it again and replays it.
struct Run {
    flow: Arc<Flow>,
    state: State,
    replayed: State,
    now: Timestamp,
}

impl Run {
    fn new(steps: &str) -> Self {
        let limits = Arc::new(Limits::default());
        let mut run = Self {
            flow: set_up::flow(steps),
            state: State::new("e", limits.clone()),
            replayed: State::new("e", limits),
            now: Timestamp(0),
        };
        run.give(set_up::start());
        run
    }

    fn give(&mut self, signal: Signal) -> Vec<Event> {
        let mut events = Vec::new();
        self.state.advance(&self.flow, signal, self.now, &mut events).unwrap();
        let text = write_turn(&self.flow, &events);
        let read = read_turn(&self.flow, events[0].id, self.now, &text).unwrap();
        assert_eq!(read, events);
        let recorded = self.replayed.recorded_signal(&self.flow, &events).unwrap();
        let mut again = Vec::new();
        self.replayed
            .advance(&self.flow, recorded, self.now, &mut again)
            .unwrap();
        assert_eq!(again, events);
        let taken_up = State::from_checkpoint(&self.flow, &self.state.checkpoint(&self.flow), Arc::default()).unwrap();
        assert_eq!(taken_up.is_asleep(true), self.state.is_asleep(true));
        self.state = taken_up;
        events
    }

    fn call(&self) -> EventId {
        self.state.calls_in_flight().next().unwrap()
    }

    /// The worker misses its heartbeat, and the retry begins if there is one. Returns its delay.
    fn lose_lease(&mut self, redeliver: u32) -> Option<Millis> {
        let call = self.call();
        self.give(Signal::LeaseEnded {
            call,
            redeliver,
            holder: None,
        });
        let due = self.state.next_wakeup()?;
        let delay = due.since(self.now);
        self.now = due;
        let timer = self.state.due(self.now).next().unwrap();
        self.give(Signal::TimerDue(timer));
        Some(delay)
    }
}

fn task(more: &str) -> String {
    format!(r#"{{"type": "task", "name": "t", "resourceArn": "queue:q"{more}}}"#)
}

#[test]
fn redeliver_gives_as_many_retries_as_it_says() {
    let mut run = Run::new(&task(""));
    let first = run.call();
    assert_eq!(run.lose_lease(2), Some(Millis::ZERO));
    assert_eq!(run.lose_lease(2), Some(Millis::ZERO));
    assert_ne!(run.call(), first);
    assert_eq!(run.lose_lease(2), None);
    assert_eq!(run.state.status(), Status::Failed);
    assert_eq!(run.state.failure().unwrap().error, "FnF.HeartbeatTimeout");
}

#[test]
fn redeliver_gives_way_to_a_policy_that_names_the_error() {
    let retry = r#", "retry": [{"errors": ["FnF.HeartbeatTimeout"], "maxAttempts": 1, "intervalSeconds": 9}]"#;
    let mut run = Run::new(&task(retry));
    assert_eq!(run.lose_lease(100), Some(Millis(9_000)));
    assert_eq!(run.lose_lease(100), None);
    assert_eq!(run.state.status(), Status::Failed);
}

#[test]
fn redeliver_and_retry_policies_count_apart() {
    let retry = r#", "retry": [{"errors": ["Busy"], "maxAttempts": 1, "intervalSeconds": 5}]"#;
    let mut run = Run::new(&task(retry));
    assert_eq!(run.lose_lease(1), Some(Millis::ZERO));
    let busy = Signal::Failed {
        call: run.call(),
        error: "Busy".into(),
        cause: String::new(),
        retry_after: None,
        not_sent: false,
        holder: None,
    };
    run.give(busy);
    assert_eq!(run.state.next_wakeup().unwrap().since(run.now), Millis(5_000));
    run.now = run.state.next_wakeup().unwrap();
    let timer = run.state.due(run.now).next().unwrap();
    run.give(Signal::TimerDue(timer));
    assert_eq!(run.lose_lease(1), None);
}

#[test]
fn redeliver_is_only_for_a_lost_lease() {
    let mut run = Run::new(&task(""));
    run.lose_lease(3);
    let failed = Signal::Failed {
        call: run.call(),
        error: "Paper.Jam".into(),
        cause: String::new(),
        retry_after: None,
        not_sent: false,
        holder: None,
    };
    run.give(failed);
    assert_eq!(run.state.status(), Status::Failed);
}

#[test]
fn timeout_counts_from_when_a_worker_takes_the_task() {
    let mut run = Run::new(&task(r#", "timeoutSeconds": 5"#));
    let first = run.state.next_wakeup().unwrap();
    assert!(
        first > Timestamp(5_000),
        "the machine has no timer for it but the flow's own"
    );
    assert!(run.state.is_asleep(true));
    let call = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!((call.timeout_at, call.timeout), (None, Some(Millis(5_000))));
    let call = run.call();
    let events = run.give(Signal::TimedOut { call, holder: None });
    assert!(
        matches!(&events[0].detail, EventKind::TaskTimedOut { error, redeliver: None, holder: None } if error == "FnF.TaskTimeout")
    );
    assert_eq!(run.state.failure().unwrap().error, "FnF.TaskTimeout");
}

#[test]
fn redeliver_is_for_rollbacks_too() {
    let first = task(r#", "rollback": {"resourceArn": "queue:undo", "timeoutSeconds": 4}"#);
    let mut run = Run::new(&format!(
        r#"{first}, {{"type": "fail", "name": "no", "error": "Nope"}}"#
    ));
    let done = Signal::Succeeded {
        call: run.call(),
        result: Object::new().into(),
        worker: None,
        held_time: None,
    };
    run.give(done);
    assert!(run.state.is_asleep(true));
    let call = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!((call.rollback, call.timeout), (true, Some(Millis(4_000))));
    assert_eq!(run.lose_lease(1), Some(Millis::ZERO));
    assert_eq!(run.lose_lease(1), None);
    assert_eq!(run.state.status(), Status::RollbackFailed);
}

#[test]
fn a_poll_is_bounded_from_the_first_hold() {
    let poll = r#", "timeoutSeconds": 25, "poll": {"until": "$.done", "intervalSeconds": 10, "multiplier": 1}"#;
    let mut run = Run::new(&task(poll));
    let (mut calls, held) = (0, Timestamp(5_000));
    // Each worker answers two seconds after it took its task: never done.
    run.now = Timestamp(7_000);
    while run.state.status() == Status::Running {
        assert!(calls < 10, "it polls for ever");
        let call = run.state.calls_in_flight().next();
        if let Some(call) = call {
            calls += 1;
            let held_time = Some(Timestamp(run.now.0 - 2_000));
            run.give(Signal::Succeeded {
                call,
                result: serde_json::from_str("{\"done\": false}").unwrap(),
                worker: Some("w".into()),
                held_time,
            });
        }
        run.now = run.state.next_wakeup().unwrap();
        let timer = run.state.due(run.now).next().unwrap();
        run.give(Signal::TimerDue(timer));
    }
    assert_eq!(run.now, held.plus(Millis(25_000)));
    assert_eq!(calls, 3, "at 7 s, 17 s and 27 s");
    assert_eq!(run.state.failure().unwrap().error, "FnF.TaskTimeout");
}

/// Fails after a task whose rollback is a task of a queue with these fields. Returns the run at the undoing call.
fn undoing(fields: &str) -> Run {
    let mut run = Run::new(&format!(
        r#"{{"type": "task", "name": "a", "resourceArn": "queue:q", "priority": 3,
             "rollback": {{"resourceArn": "queue:undo"{fields}}}}},
           {{"type": "fail", "name": "no"}}"#
    ));
    let call = run.call();
    run.give(Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: None,
    });
    run
}

#[test]
fn rollback_in_a_queue_waits_as_its_fields_say() {
    let run = undoing(r#", "waitSeconds": 7, "heartbeatSeconds": 8, "priority": 9, "poll": {"until": "$.done"}"#);
    let call = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!((call.wait, call.heartbeat), (Some(Millis(7_000)), Some(Millis(8_000))));
    assert_eq!((call.priority, call.polling, call.rollback), (9, true, true));
}

#[test]
fn rollback_in_a_queue_without_fields_has_the_priority_of_its_task() {
    let run = undoing("");
    let call = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!((call.wait, call.heartbeat, call.priority), (None, None, 3));
}

#[test]
fn rollback_that_no_worker_takes_in_time_fails() {
    let mut run = undoing(r#", "waitSeconds": 7"#);
    let call = run.call();
    run.give(Signal::TimedOut { call, holder: None });
    assert_eq!(run.state.status(), Status::RollbackFailed);
    // The state was written down and read: a skip finds the task that is not to be listed any more.
    assert_eq!(run.state.failed_undo_calls(), [call]);
}

#[test]
fn rollback_that_polls_sleeps_and_calls_again() {
    let mut run = undoing(r#", "poll": {"until": "$.done", "intervalSeconds": 5}, "timeoutSeconds": 9"#);
    let call = run.call();
    run.give(Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: Some(Timestamp(0)),
    });
    assert_eq!(run.state.next_wakeup(), Some(Timestamp(5_000)));
    run.now = Timestamp(5_000);
    let timer = run.state.due(run.now).next().unwrap();
    run.give(Signal::TimerDue(timer));
    let again = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!(again.timeout_at, Some(Timestamp(9_000)));
    assert!(again.call > call);
}

#[test]
fn numbers_of_the_input_stand_where_they_differ_from_the_definition() {
    let mut run = Run::new(
        r#"{"type": "pass", "name": "p", "outputMappings": [{"target": "urgent", "source": 9},
              {"target": "wait", "source": 60}, {"target": "beat", "source": 4}]},
           {"type": "task", "name": "t", "resourceArn": "queue:q", "priority": "$.urgent", "waitSeconds": "$.wait",
            "heartbeatSeconds": "$.beat", "timeoutSeconds": 7}"#,
    );
    let call = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!(
        (call.priority, call.wait, call.heartbeat, call.timeout),
        (9, Some(Millis(60_000)), Some(Millis(4_000)), Some(Millis(7_000)))
    );
    let call = run.call();
    let events = run.give(Signal::TimedOut { call, holder: None });
    assert!(matches!(&events[0].detail, EventKind::TaskTimedOut { .. }));
}

#[test]
fn history_names_the_worker_whose_task_failed() {
    let holder = Holder {
        worker: "w-7".into(),
        held_time: Timestamp(1_000),
    };
    let held = |call, known: bool| {
        let holder = known.then(|| Box::new(holder.clone()));
        let error = "Paper.Jam".to_owned();
        [
            Signal::Failed {
                call,
                error,
                cause: String::new(),
                retry_after: None,
                not_sent: false,
                holder: holder.clone(),
            },
            Signal::TimedOut {
                call,
                holder: holder.clone(),
            },
            Signal::LeaseEnded {
                call,
                redeliver: 0,
                holder,
            },
        ]
    };
    for number in 0..3 {
        for known in [true, false] {
            let mut run = Run::new(&task(""));
            let call = run.call();
            let events = run.give(held(call, known)[number].clone());
            let detail = write_event(&run.flow, &events[0]).get("detail").unwrap().to_json();
            let (worker, since) = (r#""worker":"w-7""#, r#""heldTime":"1970-01-01T00:00:01.000Z""#);
            assert_eq!(
                (detail.contains(worker), detail.contains(since)),
                (known, known),
                "{detail}"
            );
            assert_eq!(events[0].detail.needed_version(), if known { 2 } else { 1 });
        }
    }
}

/// Events of each turn until no pure work is left.
fn turns(state: &mut State, flow: &Flow, start: Signal) -> Vec<Vec<Event>> {
    let mut turns = Vec::new();
    let mut next = Some(start);
    while let Some(signal) = next {
        let mut events = Vec::new();
        state.advance(flow, signal, Timestamp(0), &mut events).unwrap();
        turns.push(events);
        next = state.must_continue().then_some(Signal::Continue);
    }
    turns
}

fn scheduled(events: &[Event]) -> usize {
    let is_call = |event: &&Event| matches!(event.detail, EventKind::TaskScheduled(_));
    events.iter().filter(is_call).count()
}

fn foreach_over(items: u32, bytes: usize) -> (Arc<Flow>, Signal) {
    let flow = set_up::flow(&format!(
        r#"{{"type": "foreach", "name": "each", "iterationMapping": {{"collection": "$.items", "item": "n"}}, "steps": [{}]}}"#,
        task("")
    ));
    let Signal::Start(mut start) = set_up::start() else {
        unreachable!("it is a start");
    };
    let items: Vec<Value> = (0..items).map(Value::from).collect();
    let text = Text::from("x".repeat(bytes));
    start.input = [("items".into(), items.into()), ("text".into(), text.into())]
        .into_iter()
        .collect();
    (flow, Signal::Start(start))
}

#[test]
fn turn_is_cut_by_the_bytes_of_the_messages_it_leads_to() {
    let bytes = 50_000;
    let (flow, start) = foreach_over(100, bytes);
    let mut state = State::new("e", Arc::new(Limits::default()));
    let turns = turns(&mut state, &flow, start);
    let calls: Vec<usize> = turns.iter().map(|turn| scheduled(turn)).collect();
    assert_eq!(calls.iter().sum::<usize>(), 100);
    // The last call of a turn may pass the bound.
    let most = TURN_BYTES / bytes + 1;
    assert!(calls.iter().all(|calls| *calls <= most), "{calls:?}");
    assert!(turns.len() <= 100, "{calls:?}");
    // Small messages are not cut apart.
    let (flow, start) = foreach_over(100, 0);
    let mut state = State::new("e", Arc::new(Limits::default()));
    assert_eq!(self::turns(&mut state, &flow, start).len(), 1);
}

#[test]
fn turn_that_was_cut_at_other_bounds_replays_as_it_was_recorded() {
    let (flow, start) = foreach_over(20, 50_000);
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut whole = Vec::new();
    state
        .advance_at_most(&flow, start.clone(), Timestamp(0), usize::MAX, &mut whole)
        .unwrap();
    assert!(!state.must_continue() && scheduled(&whole) == 20);
    let mut again = Vec::new();
    let mut state = State::new("e", Arc::new(Limits::default()));
    state
        .advance_at_most(&flow, start, Timestamp(0), whole.len(), &mut again)
        .unwrap();
    assert_eq!(again, whole);
}
