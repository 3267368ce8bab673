//! The types of steps.

/// A type of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Task,
    Pass,
    Wait,
    Choice,
    Parallel,
    Foreach,
    Succeed,
    Fail,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Task,
        Self::Pass,
        Self::Wait,
        Self::Choice,
        Self::Parallel,
        Self::Foreach,
        Self::Succeed,
        Self::Fail,
    ];

    /// The word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Pass => "pass",
            Self::Wait => "wait",
            Self::Choice => "choice",
            Self::Parallel => "parallel",
            Self::Foreach => "foreach",
            Self::Succeed => "succeed",
            Self::Fail => "fail",
        }
    }

    /// The type a word means.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
