//! A second front end: a miniature of Amazon States Language compiles to the same graph and runs on the same machine.
//! The front end is in `states_language`; this file runs it.

#[path = "second_front_end/states_language.rs"]
mod states_language;

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Event, EventId, Signal, StartRecord, StartTerms, State, Status, history};
use std::sync::Arc;

const ORDER: &str = r#"{
    "StartAt": "Prepare",
    "States": {
        "Charge": {"Type": "Task", "Resource": "arn:aws:lambda:pay", "TimeoutSeconds": 10, "Next": "Settle",
            "Parameters": {"amount.$": "$.total", "currency": "EUR"},
            "Retry": [{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 2, "MaxAttempts": 2}]},
        "Decide": {"Type": "Choice", "Default": "Refuse",
            "Choices": [{"Variable": "$.kind", "StringEquals": "paid", "Next": "Charge"},
                {"Variable": "$.kind", "StringEquals": "free", "Next": "Done"}]},
        "Done": {"Type": "Succeed"},
        "Prepare": {"Type": "Pass", "Parameters": {"kind.$": "$.order.kind", "total.$": "$.order.total"}, "Next": "Decide"},
        "Receipt": {"Type": "Pass", "Result": {"thanks": true}, "End": true},
        "Refuse": {"Type": "Fail", "Error": "Order.Unknown", "Cause": "no such kind"},
        "Settle": {"Type": "Wait", "Seconds": 30, "Next": "Receipt"}
    }
}"#;

/// What a resource answers: a result, an error, or nothing.
enum Answer {
    Result(Value),
    Error(&'static str),
    Never,
}

/// Runs a definition in virtual time, and folds the history at each event.
struct Run {
    flow: Flow,
    state: State,
    events: Vec<Event>,
    now: Timestamp,
    answers: std::vec::IntoIter<Answer>,
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

impl Run {
    fn new(definition: &str, input: &str, answers: Vec<Answer>) -> Self {
        let mut run = Self {
            flow: states_language::compile(definition),
            state: State::new("execution", Arc::default()),
            events: Vec::new(),
            now: Timestamp(0),
            answers: answers.into_iter(),
        };
        run.give(Signal::Start(Box::new(StartRecord {
            flow: Text::from("order"),
            version: 1,
            definition_hash: Text::default(),
            machine: 0,
            name: Text::from("execution"),
            input: json(input),
            seed: 1,
            labels: None,
            parent: None,
            tokens: Vec::new(),
            terms: StartTerms::default(),
        })));
        while !run.state.status().is_ended() {
            run.next();
        }
        run.folds();
        run
    }

    fn give(&mut self, signal: Signal) {
        let before = self.state.last_event();
        let taken = self.state.advance(&self.flow, signal, self.now, &mut self.events);
        assert_eq!(taken, Ok(()));
        let calls: Vec<EventId> = self
            .state
            .calls_to_send_after(&self.flow, before)
            .map(|call| call.call)
            .collect();
        for call in calls {
            match self.answers.next().unwrap_or(Answer::Never) {
                Answer::Result(result) => self.give(Signal::Succeeded {
                    call,
                    result,
                    worker: None,
                    held_time: None,
                }),
                Answer::Error(error) => self.give(Signal::Failed {
                    call,
                    error: error.to_owned(),
                    cause: String::new(),
                    retry_after: None,
                    not_sent: false,
                    holder: None,
                }),
                Answer::Never => {}
            }
        }
    }

    fn next(&mut self) {
        self.now = self.state.next_wakeup().expect("something to wait for");
        let timer = self.state.due(self.now).next().expect("a timer that is due");
        self.give(Signal::TimerDue(timer));
    }

    /// Checks that the history leads to the same state from its beginning and from the checkpoint at each event.
    fn folds(&self) {
        let mut folded = State::new("execution", Arc::default());
        for (index, event) in self.events.iter().enumerate() {
            let written = history::write_event(&self.flow, event).into();
            assert_eq!(history::read_event(&self.flow, &written), Ok(event.clone()));
            folded.apply(&self.flow, event);
            let checkpoint = folded.checkpoint(&self.flow);
            let mut restored = State::from_checkpoint(&self.flow, &checkpoint, Arc::<Limits>::default()).unwrap();
            for event in self.events.iter().skip(index + 1) {
                restored.apply(&self.flow, event);
            }
            assert_eq!(restored.open_steps(), self.state.open_steps());
            assert_eq!(
                text(&restored.checkpoint(&self.flow)),
                text(&self.state.checkpoint(&self.flow))
            );
            assert_eq!(
                data_at(&folded),
                data_at(&State::from_checkpoint(&self.flow, &checkpoint, Arc::default()).unwrap())
            );
        }
        assert_eq!(
            text(&folded.checkpoint(&self.flow)),
            text(&self.state.checkpoint(&self.flow))
        );
    }

    fn error(&self) -> (&str, &str) {
        let failure = self.state.failure().unwrap();
        (failure.error.as_str(), failure.cause.as_str())
    }

    fn of_type(&self, wanted: &str) -> usize {
        let types = self.events.iter().map(|event| history::type_name(&event.detail));
        types.filter(|found| *found == wanted).count()
    }

    fn steps(&self) -> Vec<String> {
        let entered = self
            .events
            .iter()
            .filter(|event| history::type_name(&event.detail) == "StepEntered");
        entered
            .map(|event| self.flow.step(event.step.unwrap()).unwrap().name.to_string())
            .collect()
    }
}

/// The data that the state shows and that no checkpoint has in full.
fn data_at(state: &State) -> (Value, Value) {
    (state.flow_input(), state.flow_local())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn output_of_a_state_is_the_input_of_the_next() {
    let answer = Answer::Result(json(r#"{"receipt": "r1"}"#));
    let run = Run::new(
        ORDER,
        r#"{"order": {"kind": "paid", "total": 7}, "id": 1}"#,
        vec![answer],
    );
    assert_eq!(run.state.status(), Status::Succeeded, "{:?}", run.state.failure());
    assert_eq!(run.state.output(), Some(&json(r#"{"thanks": true}"#)));
    assert_eq!(run.steps(), ["Prepare", "Decide", "Charge", "Settle", "Receipt"]);
    assert_eq!(run.now, Timestamp(30_000));
    let inputs: Vec<String> = run.events.iter().filter_map(input_of).collect();
    assert_eq!(
        inputs,
        [r#"{"kind":"paid","total":7}"#, r#"{"amount":7,"currency":"EUR"}"#]
    );
}

fn input_of(event: &Event) -> Option<String> {
    match &event.detail {
        starbridge_machine::EventKind::StepStarted { input, .. } => Some(input.as_ref()?.to_json()),
        _ => None,
    }
}

#[test]
fn input_is_passed_through_where_nothing_changes_it() {
    let run = Run::new(ORDER, r#"{"order": {"kind": "free", "total": 0}}"#, Vec::new());
    assert_eq!(run.state.output(), Some(&json(r#"{"kind": "free", "total": 0}"#)));
    assert_eq!(run.steps(), ["Prepare", "Decide", "Done"]);
}

#[test]
fn output_that_is_empty_is_an_empty_input() {
    let definition = r#"{"StartAt": "A", "States": {
        "A": {"Type": "Pass", "Result": {}, "Next": "B"},
        "B": {"Type": "Wait", "Seconds": 1, "Next": "C"},
        "C": {"Type": "Succeed"}}}"#;
    let run = Run::new(definition, r#"{"a": 1}"#, Vec::new());
    assert_eq!(run.state.output(), Some(&Value::empty_object()));
}

#[test]
fn retry_for_timeouts_is_for_their_kind() {
    let input = r#"{"order": {"kind": "paid", "total": 7}}"#;
    let answers = vec![Answer::Never, Answer::Never, Answer::Result(json("{}"))];
    let run = Run::new(ORDER, input, answers);
    assert_eq!(run.state.status(), Status::Succeeded, "{:?}", run.state.failure());
    assert_eq!(run.of_type("RetryScheduled"), 2);
    assert_eq!(run.now, Timestamp(1000 * (10 + 2 + 10 + 4 + 30)));
    let run = Run::new(ORDER, input, vec![Answer::Error("Card.Refused")]);
    assert_eq!((run.error().0, run.of_type("RetryScheduled")), ("Card.Refused", 0));
}

#[test]
fn faults_have_the_names_of_this_language() {
    let run = Run::new(ORDER, r#"{"order": {"kind": "paid", "total": 7}}"#, Vec::new());
    assert_eq!((run.state.status(), run.error().0), (Status::Failed, "States.Timeout"));
    assert_eq!(run.now, Timestamp(1000 * (10 + 2 + 10 + 4 + 10)));
    let run = Run::new(ORDER, r#"{"order": {"kind": "gift", "total": 7}}"#, Vec::new());
    assert_eq!(run.error(), ("Order.Unknown", "no such kind"));
    let run = Run::new(ORDER, r#"{"order": {"kind": "paid"}}"#, Vec::new());
    assert_eq!(
        run.error(),
        ("States.ParameterPathFailure", "nothing at `$.order.total`")
    );
}

/// A document is any JSON value in this language, also in a checkpoint at each event.
#[test]
fn documents_may_be_any_json_value() {
    let definition = r#"{"StartAt": "Count", "States": {
        "Count": {"Type": "Task", "Resource": "arn:aws:lambda:count", "TimeoutSeconds": 9, "Next": "Settle"},
        "Settle": {"Type": "Wait", "Seconds": 1, "Next": "End"},
        "End": {"Type": "Succeed"}}}"#;
    for document in ["[1,[2]]", "7", "\"text\"", "true", "null", "[null]", "[]", "{}"] {
        let run = Run::new(definition, document, vec![Answer::Result(json(document))]);
        assert_eq!(run.state.status(), Status::Succeeded, "{:?}", run.state.failure());
        assert_eq!(run.state.output(), Some(&json(document)));
        assert_eq!(data_at(&run.state), (json(document), json(document)));
        let constant = definition.replace(
            r#""Type": "Succeed""#,
            &format!(r#""Type": "Pass", "Result": {document}, "End": true"#),
        );
        let run = Run::new(&constant, "[3]", vec![Answer::Result(json("4"))]);
        assert_eq!(run.state.output(), Some(&json(document)));
    }
}
