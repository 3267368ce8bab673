//! Reports that come through a queue of somebody else's instead of a request to us (section "tasks", reply queues).

use std::future::Future;
use std::pin::Pin;

/// Something a source of replies will have done. Dropping it before it is done loses nothing: messages come again.
pub type ReplyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ReplyError>> + Send + 'a>>;

/// A queue in which others put what they report. Messages come at least once.
pub trait ReplySource: Send + Sync {
    /// What it is called where people look: in logs and metrics. It names no secret.
    fn name(&self) -> &str;
    /// Waits for messages, and comes back with none after a while. Who is not told [`ReplySource::done`] or
    /// [`ReplySource::reject`] in time gets them again.
    fn receive(&self) -> ReplyFuture<'_, Vec<ReplyMessage>>;
    /// These messages are dealt with: what they report is durable, or can change nothing any more.
    fn done(&self, messages: Vec<ReplyMessage>) -> ReplyFuture<'_, ()>;
    /// This message can't be dealt with: it goes to the dead-letter queue with the reason, where there is one, and does not
    /// come again.
    fn reject(&self, message: ReplyMessage, reason: String) -> ReplyFuture<'_, ()>;
}

/// A message of a reply queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyMessage {
    /// What the source knows it by: a receipt handle, an entry's id.
    pub handle: String,
    /// `{"token", "output" | "error", "cause"? | "heartbeat": true}`, if it is as it should be.
    pub body: String,
}

/// Why a source of replies gave nothing, in words for people. Whoever asks tries again after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyError(pub String);

impl std::fmt::Display for ReplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReplyError {}
