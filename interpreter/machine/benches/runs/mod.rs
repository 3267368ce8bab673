//! Flows to measure, and executions of them.

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Event, EventId, Signal, StartRecord, StartTerms, State, Status};
use std::sync::Arc;

/// 2024-01-01T00:00:00Z, in milliseconds.
const BEGINNING: Timestamp = Timestamp(1_704_067_200_000);

/// A flow and the input of its executions.
pub struct Run {
    pub flow: Arc<Flow>,
    pub limits: Arc<Limits>,
    pub input: Value,
}

/// An execution that runs or has ended.
pub struct Execution {
    pub state: State,
    pub events: Vec<Event>,
    /// Whether all events are kept, or only those of the current turn, as a host does.
    kept: bool,
}

impl Run {
    /// A run of the definition with these steps.
    pub fn new(steps: &str, input: Object) -> Self {
        let text = format!(r#"{{"version":"v1","type":"flow","steps":{steps}}}"#);
        let checked = starbridge_fdl::check(&Source::new("flow.json", text), &Limits::default());
        let flow = checked
            .flow
            .unwrap_or_else(|| panic!("the flow has errors: {:?}", checked.diagnostics));
        Self {
            flow,
            limits: Arc::default(),
            input: input.into(),
        }
    }

    /// A run of this many `pass` steps, one after the other.
    pub fn passes(steps: usize, input: Object) -> Self {
        let steps: Vec<String> = (0..steps)
            .map(|n| format!(r#"{{"type":"pass","name":"p{n}"}}"#))
            .collect();
        Self::new(&format!("[{}]", steps.join(",")), input)
    }

    /// A run of this many rounds of a `pass` and a `choice` that leads back to it.
    pub fn rounds(rounds: usize) -> Self {
        let steps = format!(
            r#"[{{"type":"pass","name":"count","outputMappings":[{{"target":"n","source":"$context.step.visit"}}]}},
                {{"type":"choice","name":"again","choices":[{{"condition":"$.n < {rounds}","goto":"count"}}]}}]"#
        );
        Self::new(&steps, Object::new())
    }

    /// A `foreach` with one `pass`, over this many items.
    pub fn wide(items: usize) -> Self {
        let steps = r#"[{"type":"foreach","name":"each","iterationMapping":{"collection":"$.items","item":"item"},
            "steps":[{"type":"pass","name":"p"}]}]"#;
        let items: Vec<Value> = (0..items).map(|n| Value::from(n as u64)).collect();
        Self::new(steps, object([("items", items.into())]))
    }

    /// A `foreach` with one task, over this many items. The tasks are never answered.
    pub fn calls(items: usize) -> Self {
        let steps = r#"[{"type":"foreach","name":"each","concurrency":100000,
            "iterationMapping":{"collection":"$.items","item":"item"},
            "steps":[{"type":"task","name":"t","resourceArn":"queue:work"}]}]"#;
        let items: Vec<Value> = (0..items).map(|n| Value::from(n as u64)).collect();
        Self::new(steps, object([("items", items.into())]))
    }

    /// An execution before its first event.
    pub fn fresh(&self) -> Execution {
        Execution {
            state: State::new("execution", self.limits.clone()),
            events: Vec::new(),
            kept: false,
        }
    }

    /// Starts an execution and runs it until no pure work is left.
    pub fn start(&self, mut execution: Execution) -> Execution {
        let mut signal = self.signal();
        loop {
            if !execution.kept {
                execution.events.clear();
            }
            let taken = execution
                .state
                .advance(&self.flow, signal, BEGINNING, &mut execution.events);
            assert_eq!(taken, Ok(()));
            if !execution.state.must_continue() {
                return execution;
            }
            signal = Signal::Continue;
        }
    }

    /// An execution that has ended, with all its events. The flow must have no task.
    pub fn complete(&self) -> Execution {
        let mut execution = self.fresh();
        execution.kept = true;
        let execution = self.start(execution);
        assert_eq!(
            execution.state.status(),
            Status::Succeeded,
            "{:?}",
            execution.state.failure()
        );
        execution
    }

    /// Folds a history.
    pub fn fold(&self, events: &[Event]) -> State {
        let mut state = State::new("execution", self.limits.clone());
        for event in events {
            state.apply(&self.flow, event);
        }
        assert_eq!(state.broken_at(), None);
        state
    }

    fn signal(&self) -> Signal {
        Signal::Start(Box::new(StartRecord {
            flow: Text::from("flow"),
            version: 1,
            definition_hash: Text::default(),
            machine: 0,
            name: Text::from("execution"),
            input: self.input.clone(),
            seed: 1,
            labels: None,
            parent: None,
            tokens: Vec::new(),
            terms: StartTerms::default(),
        }))
    }
}

impl Execution {
    /// The size of the stored history, in bytes.
    pub fn history_bytes(&self, flow: &Flow) -> usize {
        self.events
            .iter()
            .map(|event| starbridge_machine::history::write_event(flow, event).json_len())
            .sum()
    }

    /// Answers every call in flight with `{}`, in their order, and goes on.
    pub fn answer_all(&mut self, run: &Run) {
        let calls: Vec<EventId> = self.state.calls_in_flight().collect();
        for call in calls {
            self.events.clear();
            let signal = Signal::Succeeded {
                call,
                result: Object::new().into(),
                worker: None,
                held_time: None,
            };
            let taken = self.state.advance(&run.flow, signal, BEGINNING, &mut self.events);
            assert_eq!(taken, Ok(()));
        }
    }
}

/// An object of these members.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Object {
    members
        .into_iter()
        .map(|(key, value)| (Text::from(key), value))
        .collect()
}

/// An object of about this many bytes, with few members.
pub fn data(bytes: usize) -> Object {
    let part = "x".repeat(bytes / 4);
    object([
        ("order", part.as_str().into()),
        ("customer", part.as_str().into()),
        ("address", object([("street", part.as_str().into())]).into()),
        ("notes", part.as_str().into()),
    ])
}

/// An object of this many members.
pub fn keys(count: usize) -> Object {
    (0..count)
        .map(|n| (Text::from(format!("key{n}")), Value::from(n as u64)))
        .collect()
}
