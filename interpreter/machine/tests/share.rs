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
        Self::with(steps, execution_bytes, Value::empty_object())
    }

    fn with(steps: &str, execution_bytes: usize, input: Value) -> Self {
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
        run.give(start_with(input));
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

fn start_with(input: Value) -> Signal {
    let Signal::Start(mut start) = set_up::start() else {
        unreachable!()
    };
    start.input = input;
    Signal::Start(start)
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

#[test]
fn what_is_made_for_a_call_counts_until_the_call_is_over() {
    let steps = r#"{"type": "foreach", "name": "each",
        "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "task", "name": "t", "resourceArn": "http://x/",
            "serviceParams": {"body": {"a": "$.text", "b": "$.text"}}}]}"#;
    let input = format!(
        r#"{{"items": [1, 2, 3, 4, 5, 6, 7, 8], "text": "{}"}}"#,
        "x".repeat(10_000)
    );
    let input: Value = serde_json::from_str(&input).unwrap();
    let mut run = Run::with(steps, 1_000_000, input.clone());
    let calls = run.calls();
    assert_eq!(calls.len(), 8);
    let held = run.state.held();
    assert!((170_000..190_000).contains(&held), "{held}");
    run.answer(calls[0], 10);
    let released = held - run.state.held();
    assert!((19_000..21_000).contains(&released), "{released}");
    // The fifth message exceeds the limit, and no further call begins.
    let run = Run::with(steps, 100_000, input);
    let scheduled = run.events.iter();
    let scheduled = scheduled.filter(|event| matches!(event.detail, EventKind::TaskScheduled(_)));
    assert_eq!(scheduled.count(), 5);
    assert_eq!(run.state.failure().unwrap().error, *"FnF.LimitExceeded");
}

#[test]
fn what_is_made_for_one_call_is_bounded() {
    for (call, cause) in [
        (
            r#""resourceArn": "http://x/", "serviceParams": {"body": ["$.text", "$.text"]}"#,
            "the call's `serviceParams` have 3016 bytes, more than the limit of 3000",
        ),
        (
            r#""resourceArn": "http://x/{$input.text}{$input.text}""#,
            "the call's resource has 3009 bytes, more than the limit of 2000",
        ),
    ] {
        let limits = Arc::new(Limits {
            collection_bytes: 3_000,
            step_data_bytes: 2_000,
            ..Limits::default()
        });
        let flow = set_up::flow(&format!(r#"{{"type": "task", "name": "t", {call}}}"#));
        let mut state = State::new("e", limits);
        let input = serde_json::from_str(&format!(r#"{{"text": "{}"}}"#, "x".repeat(1_500))).unwrap();
        state.advance(&flow, start_with(input), NOW, &mut Vec::new()).unwrap();
        let failure = state.failure().unwrap();
        assert_eq!(
            (failure.error.as_str(), failure.cause.as_str()),
            ("FnF.PayloadTooLarge", cause)
        );
    }
}

#[test]
fn each_task_in_a_queue_counts_with_the_copy_that_it_has() {
    let each = r#"{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "concurrency": 50, "steps": [{"type": "task", "name": "t", "resourceArn": "queue:q"}]}"#;
    let mut input = Object::new();
    input.insert("text".into(), "x".repeat(20_000).into());
    input.insert("items".into(), (0..50_u64).map(Value::from).collect::<Vec<_>>().into());
    let run = Run::with(each, 300_000, input.clone().into());
    let failed = run.events.iter().filter_map(|event| match &event.detail {
        EventKind::StepFailed { failure, .. } => Some(failure.error.as_str()),
        _ => None,
    });
    let failed: Vec<&str> = failed.collect();
    assert!(failed.contains(&"FnF.LimitExceeded"), "{failed:?}");
    assert_eq!(run.state.status(), Status::Failed);
    // With room for all of them it runs; what is over is released.
    let mut run = Run::with(each, 2_000_000, input.into());
    assert_eq!(run.calls().len(), 50);
    let all = run.state.held();
    assert!((1_000_000..1_200_000).contains(&all), "{all}");
    for call in run.calls().into_iter().take(49) {
        run.answer(call, 10);
    }
    let left = run.state.held();
    assert!(left < 100_000, "{left}");
}
