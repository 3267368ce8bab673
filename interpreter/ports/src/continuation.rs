//! The port for messages to ourselves: a process that ends leaves them for a later one.

use crate::replies::ReplyFuture;
use std::time::Duration;

/// A queue for such messages. They arrive at least once, in no particular order.
pub trait ContinuationQueue: Send + Sync {
    /// Sends a message that arrives after `delay` at the earliest. If the queue can't delay it that
    /// long, it arrives earlier, and the receiver sends it again.
    fn put(&self, body: String, delay: Duration) -> ReplyFuture<'_, ()>;
    /// Sends a message that can't be handled to the dead-letter queue, with the reason.
    fn dead_letter(&self, body: String, reason: String) -> ReplyFuture<'_, ()>;
}
