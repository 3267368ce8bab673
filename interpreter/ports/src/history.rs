//! Where histories are kept.

use starbridge_fdl::value::{Object, Text};
use starbridge_machine::EventId;

/// The events of one turn of one execution.
#[derive(Clone, Debug)]
pub struct Append {
    /// The execution.
    pub execution: Text,
    /// The number of the last event before these; another one there is a conflict.
    pub expected: EventId,
    /// The events in the form that is kept.
    pub events: Vec<Object>,
}

/// A history as it is kept.
#[derive(Clone, Debug, Default)]
pub struct StoredHistory {
    /// The latest checkpoint and the event it stands at.
    pub checkpoint: Option<(EventId, Vec<u8>)>,
    /// The events after the number asked for, in order.
    pub events: Vec<Object>,
}

/// Keeps histories. An append is all or nothing.
pub trait History: Send + Sync {
    /// Appends turns of several executions in one go: all of them durable when it returns, or none.
    fn append(&self, turns: &[Append]) -> Result<(), StoreError>;
    /// The events after `after`, and the latest checkpoint; nothing for an execution that is not there.
    fn load(&self, execution: &str, after: EventId) -> Result<Option<StoredHistory>, StoreError>;
    /// Keeps a checkpoint in place of an earlier one.
    fn keep_checkpoint(&self, execution: &str, at: EventId, checkpoint: Vec<u8>) -> Result<(), StoreError>;
}

/// What a store could not do, and what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Somebody else has appended: load again.
    Conflict,
    /// It can't be reached just now: nothing is known of what became of the append.
    Unavailable(String),
    /// What is kept can't be read: nobody may go on from it.
    Corrupt(String),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict => f.write_str("somebody else has appended to the history"),
            Self::Unavailable(why) => write!(f, "the store can't be reached: {why}"),
            Self::Corrupt(why) => write!(f, "the store can't be read: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}
