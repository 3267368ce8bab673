//! The port for leases of executions, for stores that several processes share. Only one process at
//! a time may run an execution.

use crate::error::StoreError;
use crate::message::Message;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;

/// The last heartbeat on a call, from its worker or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The number of the call's `TaskScheduled` event.
    pub call: EventId,
    /// When the last heartbeat came.
    pub seen: Timestamp,
    /// The deadline of the next heartbeat for which a check is already arranged; `None` if none is.
    pub told: Option<Timestamp>,
}

/// The additional duties of a store whose processes come and go, so that none of them owns all of
/// it.
///
/// [`crate::History::load`] takes the lease of an execution until the time of [`ExecutionLeases::hold_until`]. If
/// another process has it, the answer is [`StoreError::Held`]. An append that starts an execution takes the lease
/// too. An append whose record says that the execution is asleep or has ended gives the lease back, unless there are
/// messages that its holder has not seen. After another process has taken over a lease, what the former holder
/// appends is refused as a conflict.
pub trait ExecutionLeases: Send + Sync {
    /// Sets the end of leases taken from now on: a time at which this process has certainly ended.
    fn hold_until(&self, until: Timestamp);

    /// Gives the lease of an execution back. Returns whether the execution is free. It is not free
    /// if there are messages that its holder has not seen. It is free if this process has no lease
    /// of it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn release(&self, execution: &str) -> Result<bool, StoreError>;

    /// The messages to an execution that are not handled, in the order in which they were sent. From then on its
    /// holder has seen them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn messages_for(&self, execution: &str) -> Result<Vec<Message>, StoreError>;

    /// Leaves a message for the holder of an execution. One that is there already stays unchanged. Returns whether
    /// there is a holder: if not, no message was left, and the execution can be loaded.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn leave_message(&self, message: &Message) -> Result<bool, StoreError>;

    /// The last heartbeats on calls of an execution.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn heartbeats(&self, execution: &str) -> Result<Vec<Heartbeat>, StoreError>;

    /// Records a heartbeat on a call, unless a later one is recorded, and the deadline for which a check is arranged,
    /// if it is given.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn heartbeat(&self, execution: &str, beat: &Heartbeat) -> Result<(), StoreError>;

    /// Executions that should go on and have no holder at this time: they were awake when their
    /// lease ended, or had to be woken before this time. The earliest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn stranded(&self, before: Timestamp, limit: usize) -> Result<Vec<Text>, StoreError>;
}
