//! Interruptions of a simulation.

/// The faults during a simulation, for tests of the runtime itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruption {
    /// The process crashes.
    pub crash: Option<Crash>,
    /// The process crashes a second time.
    pub again: Option<Crash>,
    /// Every signal comes twice.
    pub everything_twice: bool,
}

/// When a process crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The number of the operation, from 1 at the start of the process.
    pub at: usize,
    /// The moment of that operation.
    pub moment: Moment,
}

/// A moment of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the append, which is lost.
    BeforeAppend,
    /// After the append, before its answer is known.
    AnswerLost,
    /// After the append is known to be durable, before any call or answer that follows from it
    /// leaves.
    AfterAppend,
    /// Before the call is handed to its connector.
    BeforeDispatch,
    /// After the call is handed to its connector.
    AfterDispatch,
}

impl Moment {
    /// All moments.
    pub const ALL: [Self; 5] = [
        Self::BeforeAppend,
        Self::AnswerLost,
        Self::AfterAppend,
        Self::BeforeDispatch,
        Self::AfterDispatch,
    ];

    /// Whether it is a moment of an append.
    pub fn is_of_append(self) -> bool {
        matches!(self, Self::BeforeAppend | Self::AnswerLost | Self::AfterAppend)
    }
}
