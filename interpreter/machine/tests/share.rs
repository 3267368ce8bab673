//! What an execution holds: released data does not count, and the count is the same after every way of loading.

mod set_up;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{Event, EventId, EventKind, Signal, State, Status};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);
const UNDOABLE: &str =
    r#"{"type": "task", "name": "t", "resourceArn": "http://x/", "rollback": {"resourceArn": "http://x/undo"}}"#;

struct Run {
    flow: Arc<Flow>,
    limits: Arc<Limits>,
    state: State,
    events: Vec<Event>,
}

impl Run {
    fn of(steps: &str, execution_bytes: usize) -> Self {
        let limits = Arc::new(Limits {
            execution_bytes,
            ..Limits::default()
        });
        let mut run = Self {
            flow: set_up::flow(steps),
            state: State::new("e", limits.clone()),
            limits,
            events: Vec::new(),
        };
        run.give(set_up::start());
        run
    }

    fn give(&mut self, signal: Signal) {
        self.state.advance(&self.flow, signal, NOW, &mut self.events).unwrap();
        while self.state.must_continue() {
            let next = Signal::Continue;
            self.state.advance(&self.flow, next, NOW, &mut self.events).unwrap();
        }
        self.assert_same_when_loaded();
    }

    /// A fold, and a load from a checkpoint, hold what the execution holds.
    fn assert_same_when_loaded(&mut self) {
        let held = self.state.held();
        let bytes = self.state.checkpoint(&self.flow);
        let mut loaded = State::from_checkpoint(&self.flow, &bytes, self.limits.clone()).unwrap();
        let mut folded = State::new("e", self.limits.clone());
        for event in &self.events {
            folded.apply(&self.flow, event);
        }
        assert_eq!((loaded.held(), folded.held()), (held, held));
    }

    fn calls(&self) -> Vec<EventId> {
        self.state.calls_in_flight().collect()
    }

    fn answer(&mut self, call: EventId, bytes: usize) {
        self.give(Signal::Succeeded {
            call,
            result: text_of(bytes),
            worker: None,
            held_time: None,
        });
    }

    fn failures(&self) -> Vec<&str> {
        let failures = self.events.iter().filter_map(|event| match &event.detail {
            EventKind::TaskFailed { failure, .. } => Some(failure.error.as_str()),
            _ => None,
        });
        failures.collect()
    }
}

fn text_of(bytes: usize) -> Value {
    let object: Object = [("text".into(), Value::from("x".repeat(bytes)))].into_iter().collect();
    object.into()
}

#[test]
fn data_that_was_replaced_is_released() {
    let again = r#"{"type": "choice", "name": "again", "choices": [{"condition": "true", "goto": "t"}]}"#;
    let task = r#"{"type": "task", "name": "t", "resourceArn": "http://x/"}"#;
    let mut run = Run::of(&format!("{task}, {again}"), 100_000);
    let call = run.calls()[0];
    run.answer(call, 20_000);
    let once = run.state.held();
    assert!((20_000..22_000).contains(&once), "{once}");
    for _ in 0..10 {
        let call = run.calls()[0];
        run.answer(call, 20_000);
        assert_eq!(run.state.held(), once);
    }
}

#[test]
fn what_could_be_undone_counts_with_its_own_input_until_it_is_undone() {
    let again = r#"{"type": "choice", "name": "again", "choices": [{"condition": "true", "goto": "t"}]}"#;
    let mut run = Run::of(&format!("{UNDOABLE}, {again}"), 1_000_000);
    let mut before = 0;
    for visit in 1..=5 {
        let call = run.calls()[0];
        run.answer(call, 10_000);
        let held = run.state.held();
        // The result, and the variables: first those of the list, then those that the task saw.
        assert!(held >= before + 20_000, "{visit}: {held} after {before}");
        before = held;
    }
    run.give(Signal::Stop {
        error: None,
        cause: String::new(),
        by: None,
        rollback: true,
        with_parent: false,
    });
    while !run.state.status().is_ended() {
        let call = run.calls()[0];
        run.answer(call, 0);
    }
    assert_eq!(run.state.status(), Status::Stopped);
    assert!(run.state.held() < 15_000, "{}", run.state.held());
}

#[test]
fn result_without_room_is_a_failure_also_while_nothing_else_runs() {
    let branch = format!(r#"{{"steps": [{UNDOABLE}]}}"#);
    let branches = [branch.as_str(); 4].join(", ").replace("\"t\"", "\"T\"");
    let branches = (0..4).fold(branches, |text, number| {
        text.replacen("\"T\"", &format!("\"t{number}\""), 1)
    });
    let parallel = format!(r#"{{"type": "parallel", "name": "all", "branches": [{branches}]}}"#);
    let mut run = Run::of(&parallel, 50_000);
    let by = || Some("ann".to_owned());
    run.give(Signal::Pause {
        by: by(),
        cause: String::new(),
        with_parent: false,
    });
    let calls = run.calls();
    for call in &calls {
        run.answer(*call, 40_000);
    }
    // The second one exceeds the limit, and the others are refused.
    assert_eq!(run.failures(), ["FnF.LimitExceeded"; 2]);
    run.give(Signal::Resume {
        by: by(),
        with_parent: false,
    });
    let mut undone = 0;
    while let [call, ..] = run.calls()[..] {
        run.answer(call, 60_000);
        undone += 1;
    }
    assert_eq!((run.state.status(), undone), (Status::Failed, 4));
    let failure = run.state.failure().unwrap();
    assert_eq!(failure.error, *"FnF.LimitExceeded");
    assert_eq!(
        failure.cause,
        *"the execution holds more than the limit of 50000 bytes of data"
    );
}
