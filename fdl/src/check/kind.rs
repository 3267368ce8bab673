//! The types of steps.

use crate::diagnostics::nearest_alone;

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

    /// The type that a wrong word means, and whether nothing else can be meant.
    pub(super) fn meant(word: &str) -> Option<(Self, bool)> {
        // A loop has more than one equivalent type.
        if word == "loop" {
            return None;
        }
        if let Some(near) = nearest_alone(word, Self::ALL.iter().map(|kind| kind.as_str())) {
            return Self::parse(near.word).map(|kind| (kind, near.alone));
        }
        let word = word.to_lowercase();
        let called = |names: &[&str]| names.contains(&word.as_str());
        let (kind, _) = ELSEWHERE.iter().find(|(_, names)| called(names))?;
        // Another language may use the word for something else.
        Some((*kind, false))
    }
}

/// Their names in other languages.
const ELSEWHERE: [(Kind, &[&str]); 8] = [
    (
        Kind::Task,
        &[
            "http", "call", "function", "action", "activity", "lambda", "simple", "run",
        ],
    ),
    (Kind::Pass, &["set", "assign", "noop", "set_variable"]),
    (Kind::Wait, &["sleep", "delay", "timer", "pause"]),
    (Kind::Choice, &["if", "switch", "decision", "condition", "branch"]),
    (Kind::Parallel, &["fork", "fork_join"]),
    (Kind::Foreach, &["map", "for", "each", "for_each", "iterate"]),
    (Kind::Succeed, &["end", "success", "done", "stop"]),
    (Kind::Fail, &["error", "throw", "raise", "terminate"]),
];
