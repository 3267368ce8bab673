//! Exit codes, which scripts rely on.

use std::process::ExitCode;

/// Why the program ends with an exit code other than 0. The message has been printed by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The flow ended unsuccessfully, or a check found something.
    Found,
    /// Bad usage, an unreadable file, a bad definition or input.
    Bad,
    /// An operational fault: the program could not do its work.
    Fault,
    /// The user interrupted the program.
    Interrupted,
}

impl Exit {
    /// The word for it if an error has no code of its own.
    pub fn word(self) -> &'static str {
        match self {
            Self::Found => "Unsuccessful",
            Self::Bad => "BadUsage",
            Self::Fault => "Fault",
            Self::Interrupted => "Interrupted",
        }
    }

    /// The exit code of an outcome.
    pub fn code(outcome: Result<(), Self>) -> ExitCode {
        ExitCode::from(match outcome {
            Ok(()) => 0,
            Err(Self::Found) => 1,
            Err(Self::Bad) => 2,
            Err(Self::Fault) => 3,
            Err(Self::Interrupted) => 130,
        })
    }
}
