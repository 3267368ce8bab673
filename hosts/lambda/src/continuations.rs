//! Continuations: messages to later invocations that an execution has to go on, now or at a time.

use crate::Failure;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_ports::ContinuationQueue;
use starbridge_runtime::SuspendedExecution;
use std::sync::Arc;
use std::time::Duration;

/// The queue that the function itself reads.
#[derive(Clone)]
pub(crate) struct Continuations {
    queue: Arc<dyn ContinuationQueue>,
    /// Whether messages that can't be handled have a dead-letter queue here.
    pub(crate) has_dead_letters: bool,
}

/// A message that an execution has to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continuation {
    /// The id of the execution.
    pub(crate) execution: Text,
    /// The earliest time.
    pub(crate) at: Timestamp,
}

impl Continuations {
    pub(crate) fn through(queue: &str, dead_letters: &str) -> Result<Self, String> {
        let letters = Some(dead_letters).filter(|queue| !queue.is_empty());
        Ok(Self {
            queue: starbridge_node::aws::continuation_queue(queue, letters)?,
            has_dead_letters: letters.is_some(),
        })
    }

    /// Sends the continuations of an execution, if it has to go on.
    pub(crate) async fn send_all(&self, rest: &SuspendedExecution, now: Timestamp) -> Result<(), Failure> {
        for at in rest.resume_at.iter().copied() {
            let execution = rest.execution.clone();
            self.put(&Continuation { execution, at }, now).await?;
        }
        Ok(())
    }

    /// Sends a continuation. One that is far off arrives sooner and is sent again.
    pub(crate) async fn put(&self, continuation: &Continuation, now: Timestamp) -> Result<(), Failure> {
        let delay = Duration::from(continuation.at.since(now));
        self.put_text(continuation.to_text(), delay).await
    }

    /// Sends a message that has to arrive again.
    pub(crate) async fn put_text(&self, body: String, delay: Duration) -> Result<(), Failure> {
        let put = self.queue.put(body, delay).await;
        put.map_err(|error| Failure::new("QueueFailed", error.to_string()))
    }

    /// Sends a message that can't be handled to the dead-letter queue, with the reason.
    pub(crate) async fn dead_letter(&self, body: String, reason: String) -> Result<(), Failure> {
        let moved = self.queue.dead_letter(body, reason).await;
        moved.map_err(|error| Failure::new("QueueFailed", error.to_string()))
    }
}

impl Continuation {
    fn to_text(&self) -> String {
        let members = [
            ("execution".into(), Value::from(self.execution.clone())),
            ("at".into(), self.at.to_string().into()),
        ];
        let inner: Object = members.into_iter().collect();
        let outer: Object = [("continue".into(), Value::from(inner))].into_iter().collect();
        Value::from(outer).to_json()
    }

    /// Reads a continuation; `None` if the message is of another kind.
    pub(crate) fn read(message: &Object) -> Option<Self> {
        let inner = message.get("continue")?.as_object()?;
        let at = inner.get("at").and_then(Value::as_str).and_then(Timestamp::parse);
        Some(Self {
            execution: inner.get("execution")?.as_text()?.clone(),
            at: at.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_is_read_as_it_was_written() {
        let written = Continuation {
            execution: "0190b3e4-8c1d-7abc-9def-0123456789ab".into(),
            at: Timestamp(1_700_000_000_123),
        };
        let message: Object = serde_json::from_str(&written.to_text()).unwrap();
        assert_eq!(Continuation::read(&message), Some(written));
        assert_eq!(Continuation::read(&Object::new()), None);
    }
}
