//! Changes of executions' statuses that others are still to be told of.

use crate::error::StoreError;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;

/// Something to tell a target, kept with the turn it is about, until it is told. It says all there is to say: the execution
/// may be cleared away before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptNotice {
    /// The target's name.
    pub target: Text,
    /// The event it is about.
    pub event: EventId,
    /// When that was; it is due from then on.
    pub time: Timestamp,
    /// The message, as JSON.
    pub text: String,
}

/// A notice that is next of its execution for its target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextNotice {
    /// The execution.
    pub execution: Text,
    /// The event it is about.
    pub event: EventId,
    /// From when on it is to be told.
    pub due: Timestamp,
    /// How often it could not be told.
    pub failures: u32,
    /// The message, as JSON.
    pub text: String,
}

/// What became of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeChange {
    /// The target's name.
    pub target: Text,
    /// The execution.
    pub execution: Text,
    /// The event it is about.
    pub event: EventId,
    /// When it is to be told after all, and how often it could not be; nothing, if it is kept no longer.
    pub again: Option<(Timestamp, u32)>,
}

/// Notices that appends have left. Of those of one execution for one target that of the lowest event is the next: only when it
/// is kept no longer is it the turn of the one after.
pub trait Notices: Send + Sync {
    /// What a target is to be told next, what is due first before the rest, due yet or not, at most so many; what is due at one
    /// time in the order of executions.
    fn next_notices(&self, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError>;
    /// Takes down what became of notices, all of it or, on an error, nothing. What is kept no longer is passed over.
    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError>;
    /// Keeps notices for a target no longer, at most so many at a time, in the order of executions and events. Answers
    /// how many those were.
    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError>;
    /// How many notices are kept for each target.
    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError>;
}
