//! The actions of a bulk job.

use crate::node::operator_signals as signals;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Resolution, ResolutionAction, Signal};

/// The action of a bulk job on each of its executions. The members are the arguments of the
/// request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum BulkAction {
    /// As `POST …/stop` does.
    Stop {
        /// The name of the error; `None`: the language's own name for a stop.
        error: Option<String>,
        /// Why, for people.
        #[serde(default)]
        cause: String,
        /// Whether what it did is undone.
        #[serde(default)]
        rollback: bool,
    },
    /// Continues it where it failed.
    Redrive {},
    /// Leaves out the undo that failed.
    Skip {
        /// Why, for people.
        #[serde(default)]
        cause: String,
    },
    /// Prevents anything new from beginning in it.
    Pause {
        /// Why, for people.
        #[serde(default)]
        cause: String,
    },
    /// Continues it after a pause.
    Resume {},
    /// Decides for the step that waits for an operator.
    Resolve {
        /// What is decided.
        #[serde(deserialize_with = "resolution_action")]
        action: ResolutionAction,
        /// The step, where several of an execution wait.
        step: Option<Text>,
        /// The output of a step that succeeds.
        output: Option<serde_json::Map<String, serde_json::Value>>,
        /// The error of a step that fails; `None`: its own.
        error: Option<Text>,
        /// The cause of that error.
        cause: Option<Text>,
        /// A note for the history.
        note: Option<Text>,
    },
    /// As `DELETE …` does: only what has ended.
    Delete {},
}

/// The members of a decision beside its action, and the action that each belongs to.
const DECISION_MEMBERS: [(&str, ResolutionAction); 3] = [
    ("output", ResolutionAction::Succeed),
    ("error", ResolutionAction::Fail),
    ("cause", ResolutionAction::Fail),
];

/// Checks that the members of a decision fit together; `given` says which are there.
///
/// # Errors
///
/// What is wrong, for people.
pub fn check_decision(action: ResolutionAction, given: impl Fn(&str) -> bool) -> Result<(), String> {
    for (member, with) in DECISION_MEMBERS {
        if given(member) && action != with {
            let with = with.as_str();
            return Err(format!(
                "`{member}` has a meaning only with the action `{with}`: leave it out"
            ));
        }
    }
    match given("cause") && !given("error") {
        true => Err("`cause` stands beside `error`: give the name of the error, too".to_owned()),
        false => Ok(()),
    }
}

/// Reads `retry`, `succeed` or `fail`.
fn resolution_action<'de, D: Deserializer<'de>>(from: D) -> Result<ResolutionAction, D::Error> {
    let word = String::deserialize(from)?;
    ResolutionAction::parse(&word).ok_or_else(|| D::Error::custom(BAD_RESOLUTION))
}

/// What is wrong with the action of a decision.
pub const BAD_RESOLUTION: &str = "`action` must be `retry`, `succeed` or `fail`";

/// How an action is asked for.
pub(super) enum Asked {
    /// By this signal.
    Signal(Signal),
    /// By this decision about the step of this name, or about the only one that waits.
    Decision(Option<Text>, Box<Resolution>),
    /// By deleting it.
    Deletion,
}

impl BulkAction {
    /// The words of all actions.
    pub const WORDS: [&str; 7] = ["stop", "redrive", "skip", "pause", "resume", "resolve", "delete"];

    /// Reads the action with this word and these arguments.
    ///
    /// # Errors
    ///
    /// What is wrong, for people.
    pub fn read(word: &str, arguments: &Object) -> Result<Self, String> {
        if !Self::WORDS.contains(&word) {
            return Err(format!("`action` must be one of {}", Self::WORDS.join(", ")));
        }
        let tagged: Object = [(Text::from(word), Value::from(arguments.clone()))]
            .into_iter()
            .collect();
        let action: Self = read_json(&tagged.into()).map_err(|error| format!("`arguments` of `{word}`: {error}"))?;
        action.check()?;
        Ok(action)
    }

    /// Whether the members of a decision fit together.
    fn check(&self) -> Result<(), String> {
        let Self::Resolve {
            action,
            output,
            error,
            cause,
            ..
        } = self
        else {
            return Ok(());
        };
        check_decision(*action, |member| match member {
            "output" => output.is_some(),
            "error" => error.is_some(),
            "cause" => cause.is_some(),
            _ => false,
        })
    }

    /// Whether it requires the right to delete executions.
    pub fn needs_admin(&self) -> bool {
        matches!(self, Self::Delete {})
    }

    /// The request for it in the name of an operator.
    pub(super) fn asked(&self, by: &Text) -> Asked {
        let caller = Some(by.to_string());
        match self {
            Self::Stop { error, cause, rollback } => {
                Asked::Signal(signals::stop(caller, error.clone(), cause.clone(), *rollback))
            }
            Self::Redrive {} => Asked::Signal(Signal::Redrive {
                by: caller,
                inputs: Vec::new(),
                definition: None,
            }),
            Self::Skip { cause } => Asked::Signal(signals::skip(by, cause.clone())),
            Self::Pause { cause } => Asked::Signal(signals::pause(by, cause.clone())),
            Self::Resume {} => Asked::Signal(signals::resume(by)),
            Self::Resolve {
                action,
                step,
                output,
                error,
                cause,
                note,
            } => {
                let output = output.as_ref().and_then(object_of).map(Value::from);
                let resolution = Resolution {
                    decision: signals::decision(*action, output, error.clone(), cause.clone()),
                    by: by.clone(),
                    note: note.clone(),
                };
                Asked::Decision(step.clone(), Box::new(resolution))
            }
            Self::Delete {} => Asked::Deletion,
        }
    }
}

fn object_of(json: &serde_json::Map<String, serde_json::Value>) -> Option<Object> {
    Value::from(&serde_json::Value::Object(json.clone()))
        .as_object()
        .cloned()
}

fn read_json<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    let json: serde_json::Value = serde_json::from_str(&value.to_json()).map_err(|error| error.to_string())?;
    serde_json::from_value(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn action_is_read_with_its_arguments() {
        let stop = BulkAction::read("stop", &object(r#"{"cause":"late","rollback":true}"#)).unwrap();
        let expected = BulkAction::Stop {
            error: None,
            cause: "late".into(),
            rollback: true,
        };
        assert_eq!(stop, expected);
        for word in BulkAction::WORDS.iter().filter(|word| **word != "resolve") {
            assert!(BulkAction::read(word, &Object::new()).is_ok(), "{word}");
        }
    }

    #[test]
    fn action_is_refused_with_what_is_wrong() {
        for (word, arguments, wrong) in [
            ("explode", "{}", "stop, redrive, skip, pause, resume, resolve, delete"),
            ("pause", r#"{"withParent":true}"#, "withParent"),
            ("resume", r#"{"cause":"x"}"#, "cause"),
            ("redrive", r#"{"cause":"x"}"#, "cause"),
            ("stop", r#"{"rollback":1}"#, "boolean"),
            ("resolve", "{}", "action"),
            ("resolve", r#"{"action":"retry","output":{}}"#, "`output`"),
            ("resolve", r#"{"action":"fail","cause":"x"}"#, "`error`"),
        ] {
            let error = BulkAction::read(word, &object(arguments)).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
