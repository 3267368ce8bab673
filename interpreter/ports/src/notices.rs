//! The port for notices: status changes of executions that were not delivered to their targets yet.

use crate::error::StoreError;
use crate::shards::ShardSet;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;

/// A notice for a target. It is stored with the turn it is about, and kept until it is delivered.
/// It is complete, because the execution may be deleted before that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptNotice {
    /// The name of the target.
    pub target: Text,
    /// The number of the event it is about.
    pub event: EventId,
    /// The time of that event. The notice is due from then on.
    pub time: Timestamp,
    /// The message, as JSON.
    pub text: String,
}

/// The next notice of an execution for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextNotice {
    /// The id of the execution.
    pub execution: Text,
    /// The number of the event it is about.
    pub event: EventId,
    /// When to deliver it.
    pub due: Timestamp,
    /// How often delivery failed.
    pub failures: u32,
    /// The message, as JSON.
    pub text: String,
}

/// A change to a notice after an attempt to deliver it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeChange {
    /// The name of the target.
    pub target: Text,
    /// The id of the execution.
    pub execution: Text,
    /// The number of the event it is about.
    pub event: EventId,
    /// When to try the delivery again, and how often it failed; `None` to delete the notice.
    pub again: Option<(Timestamp, u32)>,
}

/// The notices that appends have left. For each execution and target, the one with the lowest event is the next; the
/// one after it becomes the next when it is deleted.
pub trait Notices: Send + Sync {
    /// The next notices of executions of these shards for a target, due or not, at most `limit`: the earliest first, and those
    /// due at the same time in the order of their executions.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError>;

    /// Applies changes to notices, all or, on an error, none. A notice that is gone is skipped.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError>;

    /// Deletes at most `limit` notices for a target, in the order of executions and events. Returns how many.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError>;

    /// How many notices are stored for each target.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError>;
}
