//! Reports from reply queues: each is handled like a report over HTTP, and acknowledged only when
//! it is durable.

use super::{Node, NotTaken};
use crate::http::report_body::largest_report;
use crate::problem::{INVALID_TOKEN, SET_ASIDE};
use starbridge_ports::{Backoff, ReplyMessage, ReplySource};
use starbridge_runtime::{Reply, read_entry};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// The pauses after failures of a source.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
/// How long messages wait if an owner has no room for them.
const BUSY: Duration = Duration::from_millis(200);

impl Node {
    /// Takes reports from a source until the node ends.
    pub async fn keep_replies(self: Arc<Self>, source: Arc<dyn ReplySource>) {
        let mut failures = BACKOFF.failures();
        loop {
            match source.receive().await {
                Ok(messages) => {
                    failures.reset();
                    if self.take_replies(source.as_ref(), messages).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(source = source.name(), %error, "no replies can be taken");
                    tokio::time::sleep(failures.next_pause()).await;
                }
            }
        }
    }

    /// Handles messages in their order. A message that can't be handled now arrives again. An error
    /// means that the node is stopping.
    async fn take_replies(&self, source: &dyn ReplySource, messages: Vec<ReplyMessage>) -> Result<(), NotTaken> {
        let mut under_way = Vec::new();
        for message in messages {
            let outcome = match self.hand_in_reply(&message).await {
                Ok(outcome) => outcome,
                // The rest waits too, so that each execution gets its reports in order.
                Err(NotTaken::Busy) => {
                    tokio::time::sleep(BUSY).await;
                    break;
                }
                Err(NotTaken::Stopping) => return Err(NotTaken::Stopping),
            };
            under_way.push((message, outcome));
        }
        let mut done = Vec::new();
        for (message, outcome) in under_way {
            match Self::verdict(outcome).await {
                ReplyOutcome::Done => done.push(message),
                ReplyOutcome::Bad(reason) => self.reject(source, message, reason).await,
                ReplyOutcome::Again => {}
            }
        }
        self.counters.replies.fetch_add(done.len() as u64, Ordering::Relaxed);
        if !done.is_empty()
            && let Err(error) = source.done(done).await
        {
            tracing::warn!(source = source.name(), %error, "replies that were taken will come again");
        }
        Ok(())
    }

    async fn hand_in_reply(&self, message: &ReplyMessage) -> Result<Outcome, NotTaken> {
        let (bytes, most) = (message.body.len(), largest_report(&self.limits));
        if bytes > most {
            return Ok(Err(format!("it has {bytes} bytes, and a report may have {most}")));
        }
        let read = serde_json::from_str(&message.body).map_err(|error| format!("it is no JSON: {error}"));
        match read.and_then(|entry| read_entry(&entry)) {
            Err(reason) => Ok(Err(reason)),
            Ok((token, report)) => match self.verify(&token) {
                Ok(call) => self.report(call, report).await.map(Ok),
                Err(_) => Ok(Err(INVALID_TOKEN.to_owned())),
            },
        }
    }

    async fn verdict(outcome: Outcome) -> ReplyOutcome {
        match outcome {
            Err(reason) => ReplyOutcome::Bad(reason),
            Ok(answer) => match answer.await {
                // A message that comes twice or too late changes nothing.
                Ok(Reply::Taken | Reply::AlreadyCompleted | Reply::TimedOut) => ReplyOutcome::Done,
                Ok(Reply::InvalidToken | Reply::NoSuchExecution | Reply::NotEnded | Reply::Rejected(_)) => {
                    ReplyOutcome::Bad(INVALID_TOKEN.to_owned())
                }
                // It goes to the dead-letter queue, from which it can be sent again.
                Ok(Reply::SetAside) => ReplyOutcome::Bad(SET_ASIDE.to_owned()),
                Ok(Reply::Left) => ReplyOutcome::Done,
                Ok(Reply::Held | Reply::NoRoom) | Err(_) => ReplyOutcome::Again,
            },
        }
    }

    async fn reject(&self, source: &dyn ReplySource, message: ReplyMessage, reason: String) {
        tracing::warn!(source = source.name(), reason, "a reply can't be dealt with");
        self.counters.replies_rejected.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = source.reject(message, reason).await {
            tracing::warn!(source = source.name(), %error, "a reply that can't be dealt with will come again");
        }
    }
}

/// The receiver for the result of a report, or the error in the message.
type Outcome = Result<oneshot::Receiver<Reply>, String>;

enum ReplyOutcome {
    /// It was taken, or can't change anything any more.
    Done,
    /// It can never be handled.
    Bad(String),
    /// It should arrive again.
    Again,
}
