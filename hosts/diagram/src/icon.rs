//! The icons of steps and statuses.

use super::status::Status;
use starbridge_flow::graph::StepKind;

/// An icon: for a kind of step, or for a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Icon {
    Task,
    Pass,
    Wait,
    Choice,
    Parallel,
    Foreach,
    Succeed,
    Fail,
    State(Status),
}

impl Icon {
    /// The icon of a kind of step.
    pub(super) fn of(kind: &StepKind) -> Self {
        match kind {
            StepKind::Task(_) => Self::Task,
            StepKind::Pass => Self::Pass,
            StepKind::Wait(_) => Self::Wait,
            StepKind::Choice(_) => Self::Choice,
            StepKind::Parallel(_) => Self::Parallel,
            StepKind::Foreach(_) => Self::Foreach,
            StepKind::Succeed => Self::Succeed,
            StepKind::Fail(_) => Self::Fail,
        }
    }

    /// The word of the language for the kind of step, or the word for the status.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Pass => "pass",
            Self::Wait => "wait",
            Self::Choice => "choice",
            Self::Parallel => "parallel",
            Self::Foreach => "foreach",
            Self::Succeed => "succeed",
            Self::Fail => "fail",
            Self::State(status) => status.as_str(),
        }
    }

    /// SVG path data in a square of 14 by 14, to be stroked.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Task => "M2 3h10v8h-10zM5.5 5.2l3.6 1.8l-3.6 1.8z",
            Self::Pass => "M1 7h8M7 4l3 3l-3 3M12.5 3v8",
            Self::Wait => "M7 1.5a5.5 5.5 0 1 1 -.01 0zM7 3.8v3.4l2.4 1.6",
            Self::Choice => "M7 1l6 6l-6 6l-6 -6z",
            Self::Parallel => "M3 2v10M7 2v10M11 2v10",
            Self::Foreach => "M12 7a5 5 0 1 1 -1.7 -3.8M10.8 .6v3h-3",
            Self::Succeed => "M7 1a6 6 0 1 1 -.01 0zM4 7.2l2.2 2.2l4 -4.4",
            Self::Fail => "M4.5 1h5l3.5 3.5v5l-3.5 3.5h-5l-3.5 -3.5v-5zM5 5l4 4M9 5l-4 4",
            Self::State(status) => match status {
                Status::NotReached => "M3 7h2M9 7h2",
                Status::Running => "M4 2l8 5l-8 5z",
                Status::Waiting => "M4.5 2.5v9M9.5 2.5v9",
                Status::Succeeded => "M2 7.5l3.5 3.5l6.5 -8",
                Status::Failed => "M3 3l8 8M11 3l-8 8",
                Status::Caught => "M3 13v-12h8l-2.5 3l2.5 3h-8",
                Status::Cancelled => "M7 1.5a5.5 5.5 0 1 1 -.01 0zM3.2 10.8l7.6 -7.6",
                Status::Undoing | Status::RolledBack => "M3 1v4h4M3.2 5a5 5 0 1 1 -.6 4",
                Status::UndoFailed => "M3 1v4h4M3.2 5a5 5 0 1 1 -.6 4M6 6l3.5 3.5M9.5 6l-3.5 3.5",
            },
        }
    }

    /// A character, for pictures made of text.
    pub(super) fn character(self) -> char {
        match self {
            Self::Task => '▣',
            Self::Pass => '⇥',
            Self::Wait => '◷',
            Self::Choice => '◇',
            Self::Parallel => '⫴',
            Self::Foreach => '⟳',
            Self::Succeed => '◉',
            Self::Fail => '⊗',
            Self::State(status) => match status {
                Status::NotReached => '–',
                Status::Running => '▶',
                Status::Waiting => '⏸',
                Status::Succeeded => '✓',
                Status::Failed => '✗',
                Status::Caught => '⚑',
                Status::Cancelled => '⊘',
                Status::Undoing | Status::RolledBack => '↺',
                Status::UndoFailed => '‼',
            },
        }
    }
}
