//! Messages to ourselves: what a process that comes to its end leaves for the next one, now or later.

use crate::replies::ReplyFuture;
use std::time::Duration;

/// Where such messages are put. They come at least once, in no order.
pub trait ContinuationQueue: Send + Sync {
    /// Puts a message there, to come after that time at the earliest. One that waits longer than can be said comes when that is
    /// over: whoever takes it puts it there once more.
    fn put(&self, body: String, delay: Duration) -> ReplyFuture<'_, ()>;
    /// Puts a message nobody can deal with where people look for those, with the reason.
    fn dead_letter(&self, body: String, reason: String) -> ReplyFuture<'_, ()>;
}
