//! Messages to one queue.
//!
//! Concurrent calls share requests without waiting for each other: a message is sent at once while fewer than
//! [`MAX_SENDERS`] requests are in flight. Otherwise it waits until one of them is over, and is sent with up to nine
//! others that wait. There is no timer.

use crate::clients::Clients;
use crate::failure::{self, NO_QUEUE};
use crate::message::{Attribute, Content, MESSAGE_BYTES, Message};
use crate::queue::Queue;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use starbridge_aws::{RequestId, ServiceError, ServiceErrorKind};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How many requests are in flight at most.
const MAX_SENDERS: usize = 8;
/// How many messages one request has at most.
const BATCH: usize = 10;

/// The service's answer for an accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub id: String,
    pub md5: String,
    pub sequence: Option<String>,
    pub request: Option<String>,
}

/// Sends messages to one queue.
pub(crate) struct Lane {
    clients: Arc<Clients>,
    queue: Queue,
    waiting: Mutex<Waiting>,
    /// The queue's URL, once it is known.
    url: tokio::sync::Mutex<Option<String>>,
}

#[derive(Default)]
struct Waiting {
    entries: VecDeque<Entry>,
    senders: usize,
    /// Groups with a message in flight. Their next message waits, because it might overtake.
    groups: BTreeSet<String>,
}

struct Entry {
    message: Message,
    bytes: usize,
    answer: oneshot::Sender<Result<Receipt, ServiceError>>,
}

/// The messages of one request, each with its waiting caller.
struct Batch {
    entries: Vec<SendMessageBatchRequestEntry>,
    answers: Vec<Option<oneshot::Sender<Result<Receipt, ServiceError>>>>,
    groups: Vec<String>,
}

impl Lane {
    pub(crate) fn new(clients: Arc<Clients>, queue: Queue) -> Self {
        let url = tokio::sync::Mutex::new(queue.url.clone());
        Self {
            clients,
            queue,
            waiting: Mutex::default(),
            url,
        }
    }

    /// Sends a message. If the future is dropped, the message is not sent, unless it is in flight already.
    pub(crate) async fn send(self: &Arc<Self>, message: Message) -> Result<Receipt, ServiceError> {
        let (answer, answered) = oneshot::channel();
        let bytes = message.bytes();
        let another = {
            let mut waiting = self.waiting();
            waiting.entries.push_back(Entry { message, bytes, answer });
            let another = waiting.senders < MAX_SENDERS;
            waiting.senders += usize::from(another);
            another
        };
        if another {
            let lane = self.clone();
            let begun = self.clients.aws().spawn(async move { lane.work().await });
            begun.inspect_err(|_| self.waiting().senders -= 1)?;
        }
        let given_up = || ServiceError::new(ServiceErrorKind::ConnectionFailed, "the sending was given up");
        answered.await.unwrap_or_else(|_| Err(given_up()))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends as long as there are messages. A sender that finds none is counted as gone under the same lock, so no
    /// message is left behind.
    async fn work(self: Arc<Self>) {
        loop {
            let taken = self.waiting().take(self.queue.is_fifo());
            let Some(batch) = taken else { return };
            let (groups, lane) = (batch.groups.clone(), self.clone());
            // In a task of its own: if it panics, its messages stay unanswered and the lane stays open.
            let sent = tokio::spawn(async move { lane.deliver(batch).await }).await;
            drop(sent);
            let mut waiting = self.waiting();
            for group in groups {
                waiting.groups.remove(&group);
            }
        }
    }

    async fn deliver(&self, mut batch: Batch) {
        let entries = std::mem::take(&mut batch.entries);
        match self.request(entries.clone()).await {
            Ok(output) => batch.complete(&output),
            // The service took none of them because of one that it does not name: send each separately.
            Err(fault) if entries.len() > 1 && is_about_one(&fault) => {
                for (index, entry) in entries.into_iter().enumerate() {
                    match self.request(vec![entry]).await {
                        Ok(output) => batch.complete(&output),
                        Err(fault) => batch.answer(index, Err(fault)),
                    }
                }
            }
            Err(fault) => {
                for index in 0..entries.len() {
                    batch.answer(index, Err(fault.clone()));
                }
            }
        }
    }

    async fn request(
        &self,
        entries: Vec<SendMessageBatchRequestEntry>,
    ) -> Result<SendMessageBatchOutput, ServiceError> {
        let client = self.clients.of_region(self.queue.region.as_deref()).await?;
        let url = self.url(&client).await?;
        let request = client.send_message_batch().queue_url(url).set_entries(Some(entries));
        let sent = request.send().await.map_err(|error| ServiceError::of(&error));
        if sent.as_ref().is_err_and(failure::is_no_queue) {
            // It may be created again, with another URL.
            self.url.lock().await.clone_from(&self.queue.url);
        }
        sent
    }

    async fn url(&self, client: &Client) -> Result<String, ServiceError> {
        let mut url = self.url.lock().await;
        if let Some(url) = &*url {
            return Ok(url.clone());
        }
        let found = queue_url(client, &self.queue).await?;
        *url = Some(found.clone());
        Ok(found)
    }
}

/// Asks for a queue's URL.
pub(crate) async fn queue_url(client: &Client, queue: &Queue) -> Result<String, ServiceError> {
    if let Some(url) = &queue.url {
        return Ok(url.clone());
    }
    let asked = client
        .get_queue_url()
        .queue_name(&queue.name)
        .set_queue_owner_aws_account_id(queue.account.clone());
    let answer = asked.send().await.map_err(|error| ServiceError::of(&error))?;
    let url = answer.queue_url.filter(|url| !url.is_empty());
    url.ok_or_else(|| ServiceError::of_code(NO_QUEUE, ""))
}

/// Whether a single message may be the reason for the refusal of a batch, rather than the queue,
/// credentials or load.
fn is_about_one(fault: &ServiceError) -> bool {
    fault.refused && matches!(fault.kind, ServiceErrorKind::Other(_)) && !failure::is_no_queue(fault)
}

impl Waiting {
    /// Takes the next messages that may be sent together. A sender that finds none is counted as gone.
    fn take(&mut self, in_order: bool) -> Option<Batch> {
        let mut batch = Batch {
            entries: Vec::new(),
            answers: Vec::new(),
            groups: Vec::new(),
        };
        let (mut at, mut bytes) = (0, 0);
        while batch.entries.len() < BATCH
            && let Some(entry) = self.entries.get(at)
        {
            let group = entry.message.group.as_ref().filter(|_| in_order);
            if entry.answer.is_closed() {
                self.entries.remove(at);
            } else if group.is_some_and(|group| self.groups.contains(group)) {
                at += 1;
            } else if bytes + entry.bytes > MESSAGE_BYTES && !batch.entries.is_empty() {
                break;
            } else if let Some(entry) = self.entries.remove(at) {
                bytes += entry.bytes;
                batch.add(entry, in_order);
            }
        }
        if batch.entries.is_empty() {
            self.senders -= 1;
            return None;
        }
        self.groups.extend(batch.groups.iter().cloned());
        Some(batch)
    }
}

impl Batch {
    fn add(&mut self, entry: Entry, in_order: bool) {
        if let Some(group) = entry.message.group.as_ref().filter(|_| in_order) {
            self.groups.push(group.clone());
        }
        match written(entry.message, self.entries.len()) {
            Ok(message) => {
                self.entries.push(message);
                self.answers.push(Some(entry.answer));
            }
            // The caller may have gone.
            Err(fault) => drop(entry.answer.send(Err(fault))),
        }
    }

    fn answer(&mut self, index: usize, said: Result<Receipt, ServiceError>) {
        if let Some(answer) = self.answers.get_mut(index).and_then(Option::take) {
            // The caller may have gone.
            let _ = answer.send(said);
        }
    }

    /// Answers each caller with the service's answer for its message.
    fn complete(&mut self, output: &SendMessageBatchOutput) {
        let request = output.request_id().map(str::to_owned);
        for entry in output.successful() {
            let receipt = Receipt {
                id: entry.message_id().to_owned(),
                md5: entry.md5_of_message_body().to_owned(),
                sequence: entry.sequence_number().map(str::to_owned),
                request: request.clone(),
            };
            self.answer(entry.id().parse().unwrap_or(usize::MAX), Ok(receipt));
        }
        for entry in output.failed() {
            let fault = ServiceError::of_code(entry.code(), entry.message().unwrap_or_default());
            self.answer(entry.id().parse().unwrap_or(usize::MAX), Err(fault));
        }
    }
}

fn written(message: Message, index: usize) -> Result<SendMessageBatchRequestEntry, ServiceError> {
    let mut entry = SendMessageBatchRequestEntry::builder()
        .id(index.to_string())
        .message_body(message.body)
        .set_delay_seconds(message.delay)
        .set_message_group_id(message.group)
        .set_message_deduplication_id(message.deduplication);
    for attribute in message.attributes {
        entry = entry.message_attributes(attribute.name.clone(), value(attribute)?);
    }
    entry.build().map_err(|error| incomplete(&error))
}

pub(crate) fn value(attribute: Attribute) -> Result<MessageAttributeValue, ServiceError> {
    let value = MessageAttributeValue::builder().data_type(attribute.data_type);
    let value = match attribute.content {
        Content::Text(text) => value.string_value(text),
        Content::Bytes(bytes) => value.binary_value(Blob::new(bytes)),
    };
    value.build().map_err(|error| incomplete(&error))
}

/// The fault for a request with a missing part. Composed messages have all parts, so it should never occur.
pub(crate) fn incomplete(error: &aws_sdk_sqs::error::BuildError) -> ServiceError {
    ServiceError::new(ServiceErrorKind::Other("InvalidRequest".to_owned()), error.to_string())
}
