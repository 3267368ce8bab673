//! What goes wrong in a rehearsal.

/// What goes wrong on the way, for tests of the runtime itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruption {
    /// The process dies.
    pub crash: Option<Crash>,
    /// It dies again.
    pub again: Option<Crash>,
    /// Every signal comes twice.
    pub everything_twice: bool,
}

/// When a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// At which of its operations, from 1 since it was started.
    pub at: usize,
    /// Where in it.
    pub moment: Moment,
}

/// A moment of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the append: it never was.
    BeforeAppend,
    /// The append is durable, but its answer is lost.
    AnswerLost,
    /// The append is known to be durable, and nothing of what follows from it has left.
    AfterAppend,
    /// Before the call is handed to its connector.
    BeforeDispatch,
    /// After that.
    AfterDispatch,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::BeforeAppend,
        Self::AnswerLost,
        Self::AfterAppend,
        Self::BeforeDispatch,
        Self::AfterDispatch,
    ];

    /// Whether it is one of an append.
    pub fn is_of_append(self) -> bool {
        matches!(self, Self::BeforeAppend | Self::AnswerLost | Self::AfterAppend)
    }
}
