//! Why an event can't be answered.

use lambda_runtime::Diagnostic;
use starbridge_flow::value::Value;
use starbridge_node::node::{NodeError, NotTaken};
use starbridge_ports::StoreError;

/// Why an event can't be answered: a stable name, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the failure.
    pub kind: String,
    /// The text for people.
    pub words: String,
}

impl Failure {
    /// A failure with this name and text.
    pub fn new(kind: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            words: words.into(),
        }
    }

    /// The failure for a problem that the API answers.
    pub(crate) fn of_problem(problem: &Value) -> Self {
        let text = |key: &str| problem.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut words = text("detail").to_owned();
        let found = problem.get("diagnostics").and_then(Value::as_array);
        for diagnostic in found.map(|found| found.values()).unwrap_or_default() {
            let text = |key: &str| diagnostic.get(key).and_then(Value::as_str).unwrap_or_default();
            let number = |key: &str| diagnostic.get(key).map(Value::to_json).unwrap_or_default();
            let place = format!("{}:{}", number("line"), number("column"));
            words.push_str(&format!(
                "\n{place}: {}[{}]: {}",
                text("severity"),
                text("code"),
                text("message")
            ));
            if !text("help").is_empty() {
                words.push_str(&format!(" (help: {})", text("help")));
            }
        }
        Self::new(text("code"), words)
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        Self {
            error_type: failure.kind,
            error_message: failure.words,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new("StoreFailed", error.to_string())
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Store(error) => error.into(),
            NodeError::System(words) => Self::new("SystemFailed", words),
        }
    }
}

impl From<NotTaken> for Failure {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Busy => Self::new("Busy", "too many requests wait already: try again later"),
            NotTaken::Stopping => Self::new("Stopping", "the interpreter came to its end in the middle of it"),
        }
    }
}
