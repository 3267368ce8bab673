//! Test files: cases, the answers of their resources, and the expectations
//! (docs/language/testing.md).

use super::numbers::{days, maybe_seconds, maybe_whole_seconds, seconds};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use starbridge_flow::graph::{FaultKind, FaultNames};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Seconds;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{EventId, Signal};
use std::collections::BTreeMap;

/// A file of `starbridge test`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a test file: an object")]
pub struct TestFile {
    /// The schema for editors. It is ignored.
    #[serde(rename = "$schema", default)]
    pub schema: Option<String>,
    /// The flow under test.
    pub flow: FlowSource,
    /// The flows of children, by name.
    #[serde(default)]
    pub flows: BTreeMap<String, FlowSource>,
    /// Limits that differ from the defaults.
    #[serde(default)]
    pub limits: LimitsGiven,
    /// The cases of the file.
    pub cases: Vec<Case>,
}

/// A flow: the path of its file, relative to the test file's folder, or the definition itself.
#[derive(Clone, Debug)]
pub enum FlowSource {
    /// The path of a file.
    Path(String),
    /// Written in the test file.
    Definition(Object),
}

impl<'de> Deserialize<'de> for FlowSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathOrDefinition;
        impl<'de> Visitor<'de> for PathOrDefinition {
            type Value = FlowSource;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a flow: the path of its file, or the definition itself, an object")
            }

            fn visit_str<E: serde::de::Error>(self, path: &str) -> Result<FlowSource, E> {
                Ok(FlowSource::Path(path.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FlowSource, A::Error> {
                Object::deserialize(MapAccessDeserializer::new(map)).map(FlowSource::Definition)
            }
        }
        deserializer.deserialize_any(PathOrDefinition)
    }
}

/// Limits under the names that the configuration uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "limits: an object")]
pub struct LimitsGiven {
    step_data_bytes: Option<usize>,
    collection_bytes: Option<usize>,
    history_events: Option<u64>,
    execution_bytes: Option<usize>,
    step_visits: Option<u32>,
    #[serde(default, deserialize_with = "days")]
    wait_days: Option<u64>,
    foreach_items: Option<usize>,
    child_depth: Option<u32>,
    evaluation_steps: Option<usize>,
}

/// A run with mocks, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a case: an object")]
pub struct Case {
    /// What the case shows.
    pub name: String,
    /// The section of the language that it is about, for readers.
    #[serde(default)]
    pub rule: Option<String>,
    /// The input of the execution.
    #[serde(default = "Value::empty_object", deserialize_with = "object")]
    pub input: Value,
    /// When the execution starts; by default 2024-01-01T00:00:00Z.
    #[serde(default)]
    pub start_time: Option<starbridge_flow::time::Timestamp>,
    /// Labels of the execution.
    #[serde(default)]
    pub labels: Option<Object>,
    /// It is in the context of the execution.
    #[serde(default)]
    pub execution_name: Option<String>,
    /// The answers of resources, by step.
    #[serde(default)]
    pub mocks: BTreeMap<String, Vec<Mock>>,
    /// Set if an operator stops the execution.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// Set if an operator pauses the execution.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// The expectations for the execution.
    #[serde(default)]
    pub expect: Expect,
}

/// One answer of a resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "an answer of a resource: an object"
)]
pub struct Mock {
    /// The result, if it succeeds.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Value>,
    /// The name of the error, if it fails.
    #[serde(default)]
    pub error: Option<String>,
    /// The cause of that error.
    #[serde(default)]
    pub cause: String,
    /// Whether it never answers.
    #[serde(default)]
    pub never: bool,
    /// How many seconds it takes to answer.
    #[serde(default, deserialize_with = "seconds")]
    pub delay_seconds: f64,
    /// How many seconds a failure asks to wait (`Retry-After`).
    #[serde(default, deserialize_with = "maybe_whole_seconds")]
    pub retry_after_seconds: Option<u64>,
}

impl Mock {
    /// The signal of this answer for its call, in a language with these names.
    pub fn into_signal(self, call: EventId, names: &FaultNames) -> Signal {
        match (self.result, self.error) {
            (Some(result), _) => Signal::Succeeded {
                call,
                result,
                worker: None,
                held_time: None,
            },
            (None, error) => {
                let error = error.unwrap_or_default();
                Signal::Failed {
                    call,
                    // A mock may also stand for the interpreter: with this name it reports that
                    // nothing was sent.
                    not_sent: names.kind(&error) == FaultKind::Resource,
                    error,
                    cause: self.cause,
                    retry_after: self.retry_after_seconds.map(Seconds),
                    holder: None,
                }
            }
        }
    }
}

/// Reads a member that may be absent. `null` is a result too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An operator's pause.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a pause: an object")]
pub struct Pause {
    /// How many seconds after the start.
    #[serde(deserialize_with = "seconds")]
    pub at_seconds: f64,
    /// How many seconds later the operator resumes the execution, if at all.
    #[serde(default, deserialize_with = "maybe_seconds")]
    pub for_seconds: Option<f64>,
    /// The cause of the pause.
    #[serde(default)]
    pub cause: String,
}

impl Pause {
    /// The operator's acts, each with the seconds after the start.
    pub fn acts(&self) -> Vec<(f64, Signal)> {
        let by = || Some("operator".to_owned());
        let pause = Signal::Pause {
            by: by(),
            cause: self.cause.clone(),
            with_parent: false,
        };
        let resume = Signal::Resume {
            by: by(),
            with_parent: false,
        };
        let resume = self.for_seconds.map(|seconds| (self.at_seconds + seconds, resume));
        [(self.at_seconds, pause)].into_iter().chain(resume).collect()
    }
}

/// An operator's stop.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a stop: an object")]
pub struct Stop {
    /// How many seconds after the start.
    #[serde(deserialize_with = "seconds")]
    pub at_seconds: f64,
    /// The name of the error.
    #[serde(default)]
    pub error: Option<String>,
    /// The cause of the stop.
    #[serde(default)]
    pub cause: String,
    /// Whether the effects are undone.
    #[serde(default)]
    pub rollback: bool,
}

impl Stop {
    /// The operator's signal.
    pub fn signal(&self) -> Signal {
        Signal::Stop {
            error: self.error.clone(),
            cause: self.cause.clone(),
            by: None,
            rollback: self.rollback,
            with_parent: false,
        }
    }
}

/// The expectations. A member that is left out is not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "what is expected: an object"
)]
pub struct Expect {
    /// The status at the end; `Refused` if nothing starts.
    pub status: Option<String>,
    /// The output of the execution.
    pub output: Option<Value>,
    /// The name of the error.
    pub error: Option<String>,
    /// The cause of the error.
    pub cause: Option<String>,
    /// The steps in the order in which they are entered.
    pub steps: Option<Vec<String>>,
    /// The tasks that are undone, in order, including one whose rollback failed.
    pub rollbacks: Option<Vec<String>>,
    /// The types of all events, in order.
    pub events: Option<Vec<String>>,
    /// The virtual time from start to end, in seconds.
    #[serde(default, deserialize_with = "maybe_seconds")]
    pub elapsed_seconds: Option<f64>,
}

/// Test files are about FDL, whose documents are objects.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Object::deserialize(deserializer).map(Value::from)
}

/// Why a text is not a test file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFileError {
    /// The error.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

impl std::fmt::Display for TestFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TestFileError {}

impl TestFile {
    /// Reads a test file.
    ///
    /// # Errors
    ///
    /// [`TestFileError`] if the text is not JSON or has an unknown or wrong member.
    pub fn parse(text: &str) -> Result<Self, TestFileError> {
        let file: Self = serde_json::from_str(text).map_err(|error| {
            let text = error.to_string();
            let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
            TestFileError {
                message,
                line: error.line(),
                column: error.column(),
            }
        })?;
        for case in &file.cases {
            for (step, answers) in &case.mocks {
                let shapeless = |mock: &Mock| {
                    usize::from(mock.result.is_some()) + usize::from(mock.error.is_some()) + usize::from(mock.never)
                        != 1
                };
                if answers.is_empty() || answers.iter().any(shapeless) {
                    return Err(TestFileError {
                        message: format!(
                            "case `{}`: each answer of `{step}` is one of `result`, `error` and `never`",
                            case.name
                        ),
                        line: 1,
                        column: 1,
                    });
                }
            }
        }
        Ok(file)
    }
}

impl LimitsGiven {
    /// These limits applied over those of the configuration.
    #[expect(clippy::needless_pass_by_value, reason = "callers have made them for this")]
    pub fn over(&self, limits: Limits) -> Limits {
        Limits {
            step_data_bytes: self.step_data_bytes.unwrap_or(limits.step_data_bytes),
            collection_bytes: self.collection_bytes.unwrap_or(limits.collection_bytes),
            history_events: self.history_events.unwrap_or(limits.history_events),
            execution_bytes: self.execution_bytes.unwrap_or(limits.execution_bytes),
            step_visits: self.step_visits.unwrap_or(limits.step_visits),
            wait_days: self.wait_days.unwrap_or(limits.wait_days),
            foreach_items: self.foreach_items.unwrap_or(limits.foreach_items),
            child_depth: self.child_depth.unwrap_or(limits.child_depth),
            evaluation_steps: self.evaluation_steps.unwrap_or(limits.evaluation_steps),
            ..limits
        }
    }
}
