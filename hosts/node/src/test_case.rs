//! An execution that ended, as a test file: what its tasks answered, and what came of it (docs/language/testing.md).

use crate::export::ExportedHistory;
use crate::replay::fold;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{Child, Event, EventId, EventKind, Failure, StartRecord, State, Status};
use std::collections::BTreeMap;

/// Why an execution is no test case, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotATest(pub String);

impl std::fmt::Display for NotATest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NotATest {}

fn no<T>(why: &str) -> Result<T, NotATest> {
    Err(NotATest(why.to_owned()))
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Object {
    let members = members.into_iter().filter(|(_, value)| *value != Value::Null);
    members.map(|(key, value)| (key.into(), value)).collect()
}

/// Seconds as a number with milliseconds.
fn seconds(from: Timestamp, to: Timestamp) -> Value {
    let millis = to.since(from).0;
    match millis % 1_000 {
        0 => Value::from(millis / 1_000),
        _ => serde_json::Number::from_f64(millis as f64 / 1_000.0).map_or(Value::Null, Value::Number),
    }
}

/// A test file as text, for people.
pub fn pretty(test: &Value) -> String {
    serde_json::to_string_pretty(test).unwrap_or_default() + "\n"
}

/// A call whose answer has not been found yet, or the answer.
struct Call {
    key: String,
    iterations: Vec<u32>,
    sent: Timestamp,
    answer: Object,
}

/// What is collected from a history.
#[derive(Default)]
struct Collected {
    calls: BTreeMap<EventId, Call>,
    /// The order in which steps were entered and undone; not where several lists ran at once.
    steps: Vec<Value>,
    rollbacks: Vec<Value>,
    at_once: bool,
    pause: Option<(Timestamp, Object)>,
    stop: Option<(Timestamp, Object)>,
}

fn failed(failure: &Failure) -> Object {
    object([
        ("error", failure.error.clone().into()),
        ("cause", failure.cause.clone().into()),
    ])
}

/// The execution as a test file with one case. Its flow is in the file.
///
/// # Errors
///
/// [`NotATest`] if it has not ended, or if somebody did something with it that a test file can't say.
pub fn test_file(history: &ExportedHistory) -> Result<Value, NotATest> {
    let Some(Event {
        detail: EventKind::ExecutionStarted(started),
        time: begun,
        ..
    }) = history.events.first()
    else {
        return no("its history does not begin with a start: a fork goes on from another execution");
    };
    if !started.tokens.is_empty() {
        return no("its input has task tokens, which a test file can't have");
    }
    let mut collected = Collected::default();
    for event in &history.events {
        collected.see(history, event)?;
    }
    let Ok(state) = fold(history, None) else {
        return no("its history can't be folded");
    };
    let mut expect = expected(&state)?;
    if !collected.at_once {
        expect.insert("steps".into(), std::mem::take(&mut collected.steps).into());
        expect.insert("rollbacks".into(), std::mem::take(&mut collected.rollbacks).into());
    }
    let case = collected.case(started, *begun, expect);
    Ok(object([
        ("flow", history.flow.definition.clone()),
        ("cases", vec![Value::from(case)].into()),
    ])
    .into())
}

/// How the execution ended.
fn expected(state: &State) -> Result<Object, NotATest> {
    let status = state.status();
    if !status.is_ended() {
        return no("it has not ended");
    }
    let mut expect = object([("status", status.as_str().into())]);
    match (status, state.output(), state.failure()) {
        (Status::Succeeded, Some(output), _) => drop(expect.insert("output".into(), output.clone())),
        (Status::RolledBack, ..) => return no("it was stopped after it had succeeded, which a test file can't say"),
        (_, _, Some(failure)) => {
            expect.insert("error".into(), failure.error.clone().into());
            expect.insert("cause".into(), failure.cause.clone().into());
        }
        _ => {}
    }
    Ok(expect)
}

impl Collected {
    fn see(&mut self, history: &ExportedHistory, event: &Event) -> Result<(), NotATest> {
        let step = event.step.and_then(|step| history.flow.step(step));
        let name = || step.map(|step| step.name.clone()).unwrap_or_default();
        match &event.detail {
            EventKind::StepEntered { .. } => self.steps.push(name().into()),
            EventKind::RollbackStarted { .. } => self.rollbacks.push(name().into()),
            EventKind::BranchEntered { .. } | EventKind::IterationEntered { .. } => self.at_once = true,
            EventKind::TaskScheduled(_) => {
                let suffix = if event.rollback { ".rollback" } else { "" };
                let path = event.path.items().iter();
                let iterations = path.filter_map(|item| match item.child {
                    Child::Iteration(number) => Some(number),
                    Child::Branch(_) | Child::Arm(_) => None,
                });
                let call = Call {
                    key: format!("{}{suffix}", name()),
                    iterations: iterations.collect(),
                    sent: event.time,
                    answer: object([("never", true.into())]),
                };
                self.calls.insert(event.id, call);
            }
            EventKind::TaskSucceeded { result, .. } => {
                let mut answer = Object::new();
                answer.insert("result".into(), result.clone());
                self.answer(event, answer);
            }
            EventKind::TaskFailed {
                failure, retry_after, ..
            } => {
                let mut answer = failed(failure);
                if let Some(seconds) = retry_after {
                    answer.insert("retryAfterSeconds".into(), seconds.0.into());
                }
                self.answer(event, answer);
            }
            EventKind::TaskSubmitFailed { failure, .. } => self.answer(event, failed(failure)),
            _ => return self.see_of_execution(event),
        }
        Ok(())
    }

    /// Events of the execution itself, and what operators did.
    fn see_of_execution(&mut self, event: &Event) -> Result<(), NotATest> {
        match &event.detail {
            EventKind::ManualRequested(_) | EventKind::ManualResolved(_) => {
                return no("an operator decided for one of its steps, which a test file can't say");
            }
            EventKind::ExecutionRedriven { .. } => return no("it was redriven, which a test file can't say"),
            EventKind::ExecutionForked { .. } => return no("it is a fork of another execution"),
            EventKind::RollbackSkipped { .. } => {
                return no("one of its undos was skipped, which a test file can't say");
            }
            EventKind::ExecutionPaused { with_parent: true, .. } => return no("it was paused with its parent"),
            EventKind::ExecutionPaused { cause, .. } => {
                if self.pause.is_some() {
                    return no("it was paused more than once, which a test file can't say");
                }
                self.pause = Some((event.time, object([("cause", cause.clone().into())])));
            }
            EventKind::ExecutionResumed { .. } => {
                if let Some((from, pause)) = &mut self.pause {
                    pause.insert("forSeconds".into(), seconds(*from, event.time));
                }
            }
            EventKind::ExecutionStopped { failure, .. } => {
                let mut stop = failed(failure);
                if event.rollback {
                    stop.insert("rollback".into(), true.into());
                }
                self.stop = Some((event.time, stop));
            }
            _ => {}
        }
        Ok(())
    }

    fn answer(&mut self, event: &Event, answer: Object) {
        if let Some(call) = self.calls.get_mut(&event.caused_by) {
            call.answer = answer;
            let delay = seconds(call.sent, event.time);
            if delay != Value::from(0_u64) {
                call.answer.insert("delaySeconds".into(), delay);
            }
        }
    }
    /// The answers by step. Where iterations of a foreach got other answers, each has its own.
    fn mocks(self) -> Object {
        let mut steps: BTreeMap<String, BTreeMap<Vec<u32>, Vec<Value>>> = BTreeMap::new();
        for call in self.calls.into_values() {
            let answers = steps.entry(call.key).or_default().entry(call.iterations).or_default();
            answers.push(call.answer.into());
        }
        let mut mocks = Object::new();
        for (key, iterations) in steps {
            let mut all = iterations.values();
            let first = all.next().cloned().unwrap_or_default();
            if all.all(|answers| *answers == first) {
                mocks.insert(key.into(), first.into());
                continue;
            }
            for (numbers, answers) in iterations {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                mocks.insert(format!("{key}[{}]", numbers.join(",")).into(), answers.into());
            }
        }
        mocks
    }

    fn case(mut self, started: &StartRecord, begun: Timestamp, expect: Object) -> Object {
        let at = |(time, mut act): (Timestamp, Object)| {
            act.insert("atSeconds".into(), seconds(begun, time));
            Value::from(act)
        };
        let name = format!("{} {}", started.flow, started.name);
        let pause = self.pause.take().map(at).unwrap_or_default();
        let stop = self.stop.take().map(at).unwrap_or_default();
        object([
            ("name", name.into()),
            ("input", started.input.clone()),
            ("startTime", begun.to_string().into()),
            ("executionName", started.name.clone().into()),
            ("labels", started.labels.clone().map(Value::from).unwrap_or_default()),
            ("mocks", self.mocks().into()),
            ("pause", pause),
            ("stop", stop),
            ("expect", expect.into()),
        ])
    }
}
