//! Queues of Amazon SQS: sending messages as calls of flows, and reading the replies that others put into a queue.
//!
//! [`SqsConnector`] sends, [`SqsReplies`] reads replies, and [`SqsContinuationQueue`] is the queue
//! in which the Lambda host leaves messages for itself. A message is checked before it is sent: a
//! batch has messages of several flows, and one that the service would refuse must not fail the
//! others. Concurrent calls share requests (`lane`).
//!
//! A host registers the connector under the word before the colon of its resources:
//!
//! ```
//! use starbridge_aws::{Aws, AwsSettings};
//! use starbridge_connector_sqs::SqsConnector;
//! use starbridge_ports::Connector;
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! let sqs = SqsConnector::new(Aws::new(AwsSettings::default())); // sends nothing yet
//! let mut connectors: BTreeMap<&str, Arc<dyn Connector>> = BTreeMap::new();
//! connectors.insert("sqs", Arc::new(sqs));
//! assert!(connectors["sqs"].sent_members().names().contains("`MessageBody`"));
//! ```
#![warn(clippy::missing_errors_doc)]

mod clients;
mod continuation;
mod dead_letters;
mod failure;
mod lane;
mod message;
mod params;
mod queue;
mod replies;

pub use continuation::SqsContinuationQueue;
pub use replies::{ReplyQueue, SqsReplies};

use clients::{Clients, clients};
use lane::{Lane, Receipt};
use queue::Queue;
use starbridge_aws::{Aws, ServiceError};
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, ResourceFamily, SentMembers};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Sends messages to queues: the connector for `sqs:NAME`, and `sqs:` with a queue's URL or ARN. A clone shares
/// everything.
#[derive(Clone)]
pub struct SqsConnector {
    clients: Arc<Clients>,
    lanes: Arc<Mutex<BTreeMap<Queue, Arc<Lane>>>>,
}

impl SqsConnector {
    /// A connector that reaches AWS through `aws`. Nothing is sent before the first call.
    pub fn new(aws: Aws) -> Self {
        Self {
            clients: Arc::new(clients(aws)),
            lanes: Arc::default(),
        }
    }

    fn lane(&self, queue: &Queue) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get(queue) {
            Some(lane) => lane.clone(),
            None => {
                let lane = Arc::new(Lane::new(self.clients.clone(), queue.clone()));
                lanes.insert(queue.clone(), lane.clone());
                lane
            }
        }
    }

    async fn send(&self, request: Request) -> Result<Value, Outcome> {
        let queue = Queue::parse(&request.target)?;
        let message = message::compose(&request, &queue)?;
        match self.lane(&queue).send(message).await {
            Ok(receipt) => Ok(result(receipt, request.via)),
            Err(fault) => Err(outcome(fault, &queue)),
        }
    }
}

impl Connector for SqsConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(async move {
            match self.send(request).await {
                Ok(result) => Outcome::Result(result),
                Err(failed) => failed,
            }
        })
    }

    fn sent_members(&self) -> SentMembers {
        SentMembers {
            known: &params::KNOWN,
            sent: &["MessageBody", "MessageAttributes"],
        }
    }
}

fn outcome(fault: ServiceError, queue: &Queue) -> Outcome {
    failure::in_words_of_queues(fault).outcome("SQS", &queue.shown())
}

/// The result of a call whose message was accepted, with the member names of the family for which the flow was
/// written.
fn result(receipt: Receipt, via: ResourceFamily) -> Value {
    let mut result = Object::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            result.insert(name.into(), value.into());
        }
    };
    put("MessageId", Some(receipt.id));
    if via == ResourceFamily::MessageService {
        put("RequestId", receipt.request);
        put("MessageBodyMD5", Some(receipt.md5));
    } else {
        put("MD5OfMessageBody", Some(receipt.md5));
        put("SequenceNumber", receipt.sequence);
    }
    result.into()
}
