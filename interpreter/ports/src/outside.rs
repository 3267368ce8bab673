//! Errors from outside (section "errors"): their names, and how long they ask to wait.
//!
//! Names that begin with `FnF.` belong to the interpreter: retries, rollbacks and operators rely on them, so nothing
//! from outside may use one. And nothing from outside may make an execution wait for an unlimited time.

use starbridge_flow::limits::RETRY_AFTER_SECONDS;
use std::borrow::Cow;

/// The prefix of the interpreter's own error names.
const OWN: &str = "FnF.";

/// Where an error name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The answer of a function.
    Function,
    /// The output of a local program.
    Program,
    /// A worker's report on a task of a queue.
    Worker,
    /// A report with a task token.
    Callback,
    /// The operator who stops an execution.
    Operator,
}

impl Origin {
    /// The prefix of a name that can't be used unchanged.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Function => "Function",
            Self::Program => "Program",
            Self::Worker => "Worker",
            Self::Callback => "Callback",
            Self::Operator => "Operator",
        }
    }
}

/// The name under which an error from outside is stored. It is unchanged except for white space around it, but a name
/// of the interpreter's gets a prefix (`Function.FnF.LimitExceeded`), and an empty name becomes `Function.Unnamed`.
pub fn outside_name(origin: Origin, name: &str) -> Cow<'_, str> {
    let prefix = origin.prefix();
    match name.trim() {
        "" => Cow::Owned(format!("{prefix}.Unnamed")),
        own if own.starts_with(OWN) => Cow::Owned(format!("{prefix}.{own}")),
        other => Cow::Borrowed(other),
    }
}

/// How many of the requested seconds are really waited.
pub fn outside_wait(seconds: u64) -> u64 {
    seconds.min(RETRY_AFTER_SECONDS)
}

/// Reads requested seconds from text, with the same limit; `None` if the text is not a whole number of any length.
pub fn outside_wait_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that do not fit a number are too many seconds.
    digits.then(|| outside_wait(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_speaks_as_the_interpreter() {
        for (origin, given, kept) in [
            (Origin::Function, "FnF.LimitExceeded", "Function.FnF.LimitExceeded"),
            (Origin::Worker, " \tFnF.Stopped\n", "Worker.FnF.Stopped"),
            (Origin::Program, "FnF.", "Program.FnF."),
            (Origin::Operator, "FnF.ALL", "Operator.FnF.ALL"),
            (Origin::Callback, "", "Callback.Unnamed"),
            (Origin::Callback, "  ", "Callback.Unnamed"),
        ] {
            assert_eq!(outside_name(origin, given), kept, "{given:?}");
        }
    }

    #[test]
    fn a_wait_is_a_day_at_most() {
        for (text, seconds) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("86400", Some(86_400)),
            ("86401", Some(86_400)),
            ("40000000", Some(86_400)),
            ("99999999999999999999", Some(86_400)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("+1", None),
            ("soon", None),
        ] {
            assert_eq!(outside_wait_of(text), seconds, "{text}");
        }
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "Payment.Refused",
            "HTTP.503",
            "fnf.ExecutionAlreadyExists",
            "FnF",
            "My.FnF.Name",
        ] {
            assert_eq!(outside_name(Origin::Function, name), name);
        }
        let once = outside_name(Origin::Program, "FnF.X").into_owned();
        assert_eq!(
            outside_name(Origin::Worker, &once),
            "Program.FnF.X",
            "said once, by whoever said it first"
        );
    }
}
