//! What comes from outside with a failure (section "errors"): its name, and how long to wait.
//!
//! A name that begins with `FnF.` is the interpreter's own word, on which retries, rollbacks and operators rely: nobody else
//! can say it. And nobody can put an execution to sleep for as long as they like.

use starbridge_flow::limits::RETRY_AFTER_SECONDS;
use std::borrow::Cow;

/// What the interpreter's own names begin with.
const OWN: &str = "FnF.";

/// Who names an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A function, in its answer.
    Function,
    /// A local program, in what it printed.
    Program,
    /// A worker, in its report on a task of a queue.
    Worker,
    /// Whoever reports a call by its token.
    Callback,
    /// Somebody who stops an execution.
    Operator,
}

impl Origin {
    /// What stands before a name that may not be used as it is.
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

/// The name an error from outside is kept under: as it was given, without white space around it, but
/// `Function.FnF.LimitExceeded` for one of the interpreter's, and `Function.Unnamed` for none.
pub fn outside_name(origin: Origin, name: &str) -> Cow<'_, str> {
    let prefix = origin.prefix();
    match name.trim() {
        "" => Cow::Owned(format!("{prefix}.Unnamed")),
        own if own.starts_with(OWN) => Cow::Owned(format!("{prefix}.{own}")),
        other => Cow::Borrowed(other),
    }
}

/// The seconds somebody asks to wait, as far as that is heeded.
pub fn outside_wait(seconds: u64) -> u64 {
    seconds.min(RETRY_AFTER_SECONDS)
}

/// The same from text; nothing where it is no whole number, however long one.
pub fn outside_wait_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that make no number are too many of them.
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
