//! The port for reply queues: reports that arrive through a queue of another system instead of a request to us
//! (section "tasks").

use std::future::Future;
use std::pin::Pin;

/// The work of a reply source. Dropping it early loses nothing: messages arrive again.
pub type ReplyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ReplyError>> + Send + 'a>>;

/// A queue into which others put their reports. Messages arrive at least once.
pub trait ReplySource: Send + Sync {
    /// The name of the source for logs and metrics. It contains no secret.
    fn name(&self) -> &str;
    /// Waits for messages, and returns none after a while. Messages that are not passed to [`ReplySource::done`] or
    /// [`ReplySource::reject`] in time arrive again.
    fn receive(&self) -> ReplyFuture<'_, Vec<ReplyMessage>>;
    /// Deletes messages that are handled: what they report is durable, or can no longer change anything.
    fn done(&self, messages: Vec<ReplyMessage>) -> ReplyFuture<'_, ()>;
    /// Removes a message that can't be handled. It goes to the dead-letter queue with the reason, if there is one.
    fn reject(&self, message: ReplyMessage, reason: String) -> ReplyFuture<'_, ()>;
}

/// A message of a reply queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyMessage {
    /// The source's own handle for the message: a receipt handle, or the id of an entry.
    pub handle: String,
    /// `{"token", "output" | "error", "cause"? | "heartbeat": true}`, if the message is correct.
    pub body: String,
}

/// Why a reply source gave nothing, for people. The caller tries again after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyError(pub String);

impl std::fmt::Display for ReplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReplyError {}
