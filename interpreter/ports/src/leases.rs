//! Executions that several processes could run, of which each is given to one at a time.

use crate::error::StoreError;
use crate::message::Message;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;

/// What is known of who works on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The call.
    pub call: EventId,
    /// When it was heard of last.
    pub seen: Timestamp,
    /// The end of silence for which somebody will come and look.
    pub told: Option<Timestamp>,
}

/// What a store does beyond the rest where processes come and go and nobody owns all of it.
///
/// [`crate::History::load`] takes an execution for whoever loads it, until its lease ends; one that somebody else has is
/// [`StoreError::Held`]. An append that starts an execution takes it too, and one whose record says that the execution sleeps or
/// has ended gives it back, unless there is mail its holder has not seen. What a holder appends after its lease was taken over
/// is refused as a conflict.
pub trait ExecutionLeases: Send + Sync {
    /// Until when what is taken from now on is held: when the process that takes it is gone at the latest.
    fn hold_until(&self, until: Timestamp);
    /// Gives an execution back. Answers whether it is free: it is not where there is mail its holder has not seen. One that is
    /// not held here is free already.
    fn release(&self, execution: &str) -> Result<bool, StoreError>;
    /// Messages to an execution that are not dealt with, in the order they were sent. Its holder has seen them now.
    fn mail(&self, execution: &str) -> Result<Vec<Message>, StoreError>;
    /// Leaves a message for whoever has an execution now; one that is there already stays as it is. Answers whether anybody
    /// has it: if not, nothing was left, and the execution can be taken.
    fn leave(&self, message: &Message) -> Result<bool, StoreError>;
    /// What is known of those who work on calls of an execution.
    fn beats(&self, execution: &str) -> Result<Vec<Beat>, StoreError>;
    /// Takes down that somebody who works on a call was heard of, unless a later time is known; and, where that is said, until
    /// when silence has been taken care of.
    fn beat(&self, execution: &str, beat: &Beat) -> Result<(), StoreError>;
    /// Executions that should be gone on with and that nobody has at that time: they were awake when their lease ended, or
    /// were to be woken before. The earliest first, at most so many.
    fn stranded(&self, before: Timestamp, limit: usize) -> Result<Vec<Text>, StoreError>;
}
