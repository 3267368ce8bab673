//! A pause holds back what follows from reports, not the reports.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Object;
use starbridge_machine::{
    Decision, Event, EventId, EventKind, Fork, Rejection, Resolution, Signal, State, Status, Timer,
};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);

struct Run {
    flow: Arc<Flow>,
    state: State,
    events: Vec<Event>,
}

impl Run {
    fn of(step: &str) -> Self {
        let mut run = Self {
            flow: set_up::flow(step),
            state: State::new("e", Arc::new(Limits::default())),
            events: Vec::new(),
        };
        run.give(0, set_up::start()).unwrap();
        run
    }

    /// Gives a signal so many seconds after the start.
    fn give(&mut self, second: u64, signal: Signal) -> Result<(), Rejection> {
        self.state.advance(&self.flow, signal, at(second), &mut self.events)?;
        let checkpoint = self.state.checkpoint(&self.flow);
        let restored = State::from_checkpoint(&self.flow, &checkpoint, Arc::default()).unwrap();
        assert_eq!(restored.checkpoint(&self.flow), checkpoint);
        self.state = restored;
        Ok(())
    }

    fn call(&self) -> EventId {
        self.state.calls_in_flight().next().unwrap()
    }
}

fn at(second: u64) -> Timestamp {
    NOW.plus(Millis(second * 1_000))
}

fn pause() -> Signal {
    Signal::Pause {
        by: Some("ann".to_owned()),
        cause: "why".to_owned(),
        with_parent: false,
    }
}

fn resume(with_parent: bool) -> Signal {
    Signal::Resume { by: None, with_parent }
}

fn failed(call: EventId) -> Signal {
    Signal::Failed {
        call,
        error: "E".to_owned(),
        cause: String::new(),
        retry_after: None,
        not_sent: false,
        holder: None,
    }
}

const CALL: &str = r#"{"type": "task", "name": "t", "resourceArn": "http://x/", "timeoutSeconds": 10,
    "retry": [{"errors": ["E"], "intervalSeconds": 5, "maxAttempts": 1}]}"#;

#[test]
fn pause_is_taken_once_and_by_what_runs() {
    let mut run = Run::of(CALL);
    assert_eq!(run.give(1, resume(false)), Err(Rejection::NotPaused));
    assert_eq!(run.state.needed_version(), 1);
    run.give(1, pause()).unwrap();
    assert_eq!(run.state.needed_version(), 2);
    let paused = run.state.paused().unwrap();
    assert_eq!(
        (paused.by.as_str(), paused.cause.as_str(), paused.since),
        ("ann", "why", at(1))
    );
    assert_eq!(run.give(2, pause()), Err(Rejection::AlreadyPaused));
    assert_eq!(run.give(2, resume(true)), Err(Rejection::NotPaused));
    assert_eq!(run.give(2, Signal::Continue), Err(Rejection::NothingToDo));
    run.give(3, resume(false)).unwrap();
    let stop = Signal::Stop {
        error: None,
        cause: String::new(),
        by: None,
        rollback: false,
        with_parent: false,
    };
    run.give(4, pause()).unwrap();
    run.give(5, stop).unwrap();
    assert_eq!((run.state.status(), run.state.paused()), (Status::Stopped, None));
    assert_eq!(run.give(6, pause()), Err(Rejection::Finished));
    assert_eq!(run.give(6, resume(false)), Err(Rejection::Finished));
}

#[test]
fn no_timer_is_shown_during_a_pause_and_deadlines_move() {
    let mut run = Run::of(CALL);
    let due = Timer {
        due: at(10),
        set_by: run.call(),
    };
    assert_eq!(run.state.next_wakeup(), Some(at(10)));
    run.give(4, pause()).unwrap();
    assert_eq!((run.state.next_wakeup(), run.state.due(at(99)).count()), (None, 0));
    assert_eq!(run.give(11, Signal::TimerDue(due)), Err(Rejection::Unknown));
    assert_eq!(
        run.give(11, Signal::HeartbeatMissed { call: run.call() }),
        Err(Rejection::Unknown)
    );
    run.give(34, resume(false)).unwrap();
    assert_eq!(run.state.next_wakeup(), Some(at(40)));
    let call = run.state.call_to_send(&run.flow, run.call()).unwrap();
    assert_eq!(call.timeout_at, Some(at(40)));
}

#[test]
fn point_in_time_stays() {
    let mut run = Run::of(CALL);
    run.give(1, failed(run.call())).unwrap();
    assert_eq!(run.state.next_wakeup(), Some(at(6)));
    run.give(2, pause()).unwrap();
    run.give(4, resume(false)).unwrap();
    assert_eq!(run.state.next_wakeup(), Some(at(6)));
    run.give(5, pause()).unwrap();
    run.give(50, resume(false)).unwrap();
    assert_eq!(run.state.due(at(50)).count(), 1);
}

#[test]
fn result_is_recorded_and_what_follows_waits() {
    let mut run = Run::of(CALL);
    run.give(1, pause()).unwrap();
    let before = run.events.len();
    let answer = Signal::Succeeded {
        call: run.call(),
        result: Object::new().into(),
        worker: None,
        held_time: None,
    };
    run.give(2, answer).unwrap();
    assert_eq!(run.events.len(), before + 1);
    assert!(!run.state.must_continue() && run.state.is_asleep(true));
    run.give(3, resume(false)).unwrap();
    assert_eq!(run.state.status(), Status::Succeeded);
}

#[test]
fn deadline_that_is_set_during_a_pause_counts_from_its_end() {
    let step = r#"{"type": "task", "name": "t", "resourceArn": "http://x/", "totalTimeoutSeconds": 20, "timeoutSeconds": 60,
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]}"#;
    let mut run = Run::of(step);
    run.give(1, failed(run.call())).unwrap();
    run.give(2, pause()).unwrap();
    let resolve = Signal::Resolve {
        request: run.state.manual_requests().next().unwrap().event,
        resolution: Box::new(Resolution {
            decision: Decision::Retry,
            by: "ann".into(),
            note: None,
        }),
    };
    run.give(7, resolve).unwrap();
    run.give(10, resume(false)).unwrap();
    assert_eq!(run.state.next_wakeup(), Some(at(30)));
}

#[test]
fn fork_of_what_is_paused_is_not_paused() {
    let mut run = Run::of(CALL);
    run.give(4, pause()).unwrap();
    let fork = Fork {
        of: "e".into(),
        event: run.state.last_event(),
        execution: "f".into(),
        name: "f".into(),
        version: None,
        by: None,
    };
    let forked = State::fork(&run.flow, &run.flow, &run.events, &fork, Arc::default(), at(100)).unwrap();
    assert_eq!(forked.state.paused(), None);
    assert_eq!(forked.state.next_wakeup(), Some(at(106)));
    let paused = |event: &Event| matches!(event.detail, EventKind::ExecutionPaused { .. });
    assert!(forked.turns.concat().iter().any(paused));
}
