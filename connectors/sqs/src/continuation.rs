//! A queue of our own, in which short-lived processes leave messages for each other.

use crate::clients::{Clients, clients};
use crate::dead_letters::{DeadLetter, dead_letter};
use crate::queue::Queue;
use crate::{failure, lane};
use starbridge_aws::{Aws, ServiceError, ServiceErrorKind};
use starbridge_ports::{ContinuationQueue, Outcome, ReplyError, ReplyFuture};
use std::sync::Arc;
use std::time::Duration;

/// The longest delay of the service.
const LONGEST: Duration = Duration::from_secs(900);

/// Sends messages to a queue of Amazon SQS that we read ourselves. A clone is the same queue.
#[derive(Clone)]
pub struct SqsContinuationQueue {
    shared: Arc<Shared>,
}

struct Shared {
    clients: Clients,
    queue: Queue,
    dead_letters: Option<Queue>,
}

impl SqsContinuationQueue {
    /// A continuation queue: `queue` takes the messages, `dead_letters` those that can't be handled. Each is a name,
    /// a URL or an ARN.
    ///
    /// # Errors
    ///
    /// Which of the two is none of these.
    pub fn new(aws: Aws, queue: &str, dead_letters: Option<&str>) -> Result<Self, String> {
        let parse = |name: &str| {
            let queue = Queue::parse(name).map_err(|outcome| match outcome {
                Outcome::Failed { cause, .. } | Outcome::NotSent { cause, .. } => cause,
                _ => format!("`{name}` is no queue"),
            })?;
            match queue.is_fifo() {
                true => Err(format!("`{name}` keeps an order: messages can't be held back in it")),
                false => Ok(queue),
            }
        };
        Ok(Self {
            shared: Arc::new(Shared {
                clients: clients(aws),
                queue: parse(queue)?,
                dead_letters: dead_letters.map(parse).transpose()?,
            }),
        })
    }

    fn carry<'a, W>(&'a self, work: W) -> ReplyFuture<'a, ()>
    where
        W: Future<Output = Result<(), ServiceError>> + Send + 'static,
    {
        Box::pin(async move {
            let done = self.shared.clients.aws().run(work).await;
            done.and_then(|done| done).map_err(|fault| {
                let fault = failure::in_words_of_queues(fault);
                ReplyError(format!("{}: {}", self.shared.queue.shown(), fault.cause))
            })
        })
    }
}

impl ContinuationQueue for SqsContinuationQueue {
    fn put(&self, body: String, delay: Duration) -> ReplyFuture<'_, ()> {
        let shared = self.shared.clone();
        self.carry(async move { shared.put(body, delay).await })
    }

    fn dead_letter(&self, body: String, reason: String) -> ReplyFuture<'_, ()> {
        let shared = self.shared.clone();
        self.carry(async move { shared.dead_letter(&body, &reason).await })
    }
}

impl Shared {
    async fn put(&self, body: String, delay: Duration) -> Result<(), ServiceError> {
        let client = self.clients.of_region(self.queue.region.as_deref()).await?;
        let url = lane::queue_url(&client, &self.queue).await?;
        // A part of a second counts as a whole one, so that no message comes too early.
        let whole = delay.min(LONGEST).as_secs() + u64::from(delay.subsec_nanos() > 0);
        let seconds = i32::try_from(whole.min(LONGEST.as_secs())).unwrap_or_default();
        let request = client.send_message().queue_url(url).message_body(body);
        let sent = request.delay_seconds(seconds).send().await;
        sent.map(drop).map_err(|error| ServiceError::of(&error))
    }

    async fn dead_letter(&self, body: &str, reason: &str) -> Result<(), ServiceError> {
        let nowhere = || {
            ServiceError::new(
                ServiceErrorKind::Other("DeadLetters".to_owned()),
                "it has no dead-letter queue",
            )
        };
        let queue = self.dead_letters.as_ref().ok_or_else(nowhere)?;
        let client = self.clients.of_region(queue.region.as_deref()).await?;
        let url = lane::queue_url(&client, queue).await?;
        let letter = DeadLetter {
            source: &self.queue.name,
            body,
            reason,
        };
        dead_letter(&self.clients, queue, &url, letter).await
    }
}
