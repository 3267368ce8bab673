//! A queue into which others put their reports (section "tasks").

use crate::clients::{Clients, clients};
use crate::dead_letters::{DeadLetter, dead_letter, dead_letter_fault};
use crate::failure;
use crate::lane::{self, incomplete};
use crate::queue::Queue;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, QueueAttributeName};
use starbridge_aws::{Aws, ServiceError};
use starbridge_ports::{Outcome, ReplyError, ReplyFuture, ReplyMessage, ReplySource};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long the service is asked to wait for a message, in seconds.
const WAIT_SECONDS: i32 = 20;
/// How long that request may take.
const WAIT: Duration = Duration::from_secs(30);
/// For how many seconds a message is hidden from others.
const VISIBILITY_SECONDS: i32 = 60;
/// For how many seconds a message that can't be handled is hidden, if there is no dead-letter
/// queue. The service allows twelve hours from when the message was received.
const KEPT_BACK_SECONDS: i32 = 11 * 3600;
/// How many messages one request has at most.
const BATCH: usize = 10;

/// The queues of a reply source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyQueue {
    /// The name, URL or ARN of the queue.
    pub queue: String,
    /// The queue for messages that can't be handled; if `None`, the one of the queue's own redrive policy.
    pub dead_letters: Option<String>,
}

/// Replies from a queue of Amazon SQS. A clone is the same source.
#[derive(Clone)]
pub struct SqsReplies {
    name: String,
    shared: Arc<Shared>,
}

struct Shared {
    clients: Clients,
    queue: Queue,
    dead_letters: Option<Queue>,
    /// What is known about the queue.
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    queue: Option<String>,
    dead_letters: Option<DeadLetters>,
}

#[derive(Clone)]
enum DeadLetters {
    /// There is no dead-letter queue.
    Nowhere,
    In(Queue, String),
}

impl SqsReplies {
    /// A source that reads this queue.
    ///
    /// # Errors
    ///
    /// Which of the names is not a queue.
    pub fn new(aws: Aws, of: &ReplyQueue) -> Result<Self, String> {
        let parse = |name: &str| {
            Queue::parse(name).map_err(|outcome| match outcome {
                Outcome::Failed { cause, .. } | Outcome::NotSent { cause, .. } => cause,
                _ => format!("`{name}` is no queue"),
            })
        };
        let queue = parse(&of.queue)?;
        Ok(Self {
            name: format!("sqs:{}", queue.name),
            shared: Arc::new(Shared {
                clients: clients(aws),
                queue,
                dead_letters: of.dead_letters.as_deref().map(parse).transpose()?,
                found: Mutex::default(),
            }),
        })
    }

    /// Runs work on the thread for AWS.
    fn carry<'a, T, W>(&'a self, work: impl FnOnce(Arc<Shared>) -> W) -> ReplyFuture<'a, T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let work = work(self.shared.clone());
        Box::pin(async move {
            let done = self.shared.clients.aws().run(work).await;
            done.and_then(|done| done).map_err(|fault| {
                let fault = failure::in_words_of_queues(fault);
                ReplyError(format!("{}: {}", self.shared.queue.shown(), fault.cause))
            })
        })
    }
}

impl ReplySource for SqsReplies {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&self) -> ReplyFuture<'_, Vec<ReplyMessage>> {
        self.carry(|shared| async move { shared.receive().await })
    }

    fn done(&self, messages: Vec<ReplyMessage>) -> ReplyFuture<'_, ()> {
        self.carry(|shared| async move { shared.delete(&messages).await })
    }

    fn reject(&self, message: ReplyMessage, reason: String) -> ReplyFuture<'_, ()> {
        self.carry(|shared| async move { shared.reject(message, &reason).await })
    }
}

impl Shared {
    async fn client(&self) -> Result<Client, ServiceError> {
        self.clients.of_region(self.queue.region.as_deref()).await
    }

    async fn url(&self, client: &Client) -> Result<String, ServiceError> {
        let mut found = self.found.lock().await;
        if let Some(url) = &found.queue {
            return Ok(url.clone());
        }
        let url = lane::queue_url(client, &self.queue).await?;
        found.queue = Some(url.clone());
        Ok(url)
    }

    /// Passes on the fault of a request about the queue. If the queue does not exist any more, the
    /// stored knowledge about it is dropped.
    async fn forgetting(&self, fault: ServiceError) -> ServiceError {
        if failure::is_no_queue(&fault) {
            *self.found.lock().await = Found::default();
        }
        fault
    }

    async fn receive(&self) -> Result<Vec<ReplyMessage>, ServiceError> {
        let client = self.client().await?;
        let url = self.url(&client).await?;
        let limits = aws_sdk_sqs::config::timeout::TimeoutConfig::builder()
            .operation_attempt_timeout(WAIT)
            .operation_timeout(WAIT)
            .build();
        let asked = client
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(i32::try_from(BATCH).unwrap_or(1))
            .wait_time_seconds(WAIT_SECONDS)
            .visibility_timeout(VISIBILITY_SECONDS)
            .customize()
            .config_override(aws_sdk_sqs::config::Builder::default().timeout_config(limits));
        let answer = match asked.send().await {
            Ok(answer) => answer,
            Err(error) => return Err(self.forgetting(ServiceError::of(&error)).await),
        };
        let messages = answer.messages.unwrap_or_default().into_iter();
        Ok(messages
            .filter_map(|message| {
                Some(ReplyMessage {
                    handle: message.receipt_handle?,
                    body: message.body.unwrap_or_default(),
                })
            })
            .collect())
    }

    /// Deletes messages. It is not an error if one is already gone.
    async fn delete(&self, messages: &[ReplyMessage]) -> Result<(), ServiceError> {
        let client = self.client().await?;
        let url = self.url(&client).await?;
        for some in messages.chunks(BATCH) {
            let entry = |(index, message): (usize, &ReplyMessage)| {
                DeleteMessageBatchRequestEntry::builder()
                    .id(index.to_string())
                    .receipt_handle(&message.handle)
                    .build()
            };
            let entries: Result<Vec<_>, _> = some.iter().enumerate().map(entry).collect();
            let entries = entries.map_err(|error| incomplete(&error))?;
            let request = client.delete_message_batch().queue_url(&url).set_entries(Some(entries));
            let answer = match request.send().await {
                Ok(answer) => answer,
                Err(error) => return Err(self.forgetting(ServiceError::of(&error)).await),
            };
            for failed in answer.failed() {
                let fault = ServiceError::of_code(failed.code(), failed.message().unwrap_or_default());
                if !is_gone(&fault) {
                    return Err(fault);
                }
            }
        }
        Ok(())
    }

    async fn reject(&self, message: ReplyMessage, reason: &str) -> Result<(), ServiceError> {
        let client = self.client().await?;
        match self.dead_letters(&client).await? {
            DeadLetters::In(queue, url) => {
                let letter = DeadLetter {
                    source: &self.queue.name,
                    body: &message.body,
                    reason,
                };
                let moved = dead_letter(&self.clients, &queue, &url, letter).await;
                if let Err(fault) = moved {
                    return Err(self.forgetting(fault).await);
                }
                self.delete(&[message]).await
            }
            DeadLetters::Nowhere => {
                let source = self.queue.shown();
                tracing::warn!(
                    "{source} has no dead-letter queue: a reply that can't be dealt with stays in it ({reason})"
                );
                let url = self.url(&client).await?;
                let request = client.change_message_visibility().queue_url(url);
                let request = request.receipt_handle(message.handle);
                let kept_back = request.visibility_timeout(KEPT_BACK_SECONDS).send().await;
                kept_back.map(drop).map_err(|error| ServiceError::of(&error))
            }
        }
    }

    /// The queue for messages that can't be handled.
    async fn dead_letters(&self, client: &Client) -> Result<DeadLetters, ServiceError> {
        if let Some(known) = &self.found.lock().await.dead_letters {
            return Ok(known.clone());
        }
        let queue = match &self.dead_letters {
            Some(queue) => Some(queue.clone()),
            None => self.redriven_to(client).await?,
        };
        // The queue may get a policy at any time.
        let Some(queue) = queue else {
            return Ok(DeadLetters::Nowhere);
        };
        let client = self.clients.of_region(queue.region.as_deref()).await?;
        let url = lane::queue_url(&client, &queue).await;
        let url = url.map_err(|fault| dead_letter_fault(&queue, fault))?;
        let found = DeadLetters::In(queue, url);
        self.found.lock().await.dead_letters = Some(found.clone());
        Ok(found)
    }

    /// The dead-letter queue of the queue's own redrive policy.
    async fn redriven_to(&self, client: &Client) -> Result<Option<Queue>, ServiceError> {
        let url = self.url(client).await?;
        let asked = client.get_queue_attributes().queue_url(url);
        let asked = asked.attribute_names(QueueAttributeName::RedrivePolicy);
        let answer = asked.send().await.map_err(|error| ServiceError::of(&error))?;
        let attributes = answer.attributes.unwrap_or_default();
        let policy = attributes.get(&QueueAttributeName::RedrivePolicy);
        let policy = policy.and_then(|policy| serde_json::from_str::<serde_json::Value>(policy).ok());
        let arn = policy
            .as_ref()
            .and_then(|policy| policy.get("deadLetterTargetArn")?.as_str());
        Ok(arn.and_then(|arn| Queue::parse(arn).ok()))
    }
}

/// Whether a message to delete is gone or hidden for another receiver by now. It then comes again
/// or has been handled.
fn is_gone(fault: &ServiceError) -> bool {
    match fault.kind.name() {
        "ReceiptHandleIsInvalid" => true,
        "InvalidParameterValue" => fault.cause.contains("ReceiptHandle"),
        _ => false,
    }
}
