//! A stand-in for SQS, a connector to it, and a second client to inspect it.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, QueueAttributeName};
use starbridge_aws::{Aws, AwsSettings};
use starbridge_connector_sqs::SqsConnector;
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Pattern};
use starbridge_flow::value::Value;
use starbridge_ports::{CallIds, Connector, Outcome, Request, ResourceFamily, Secret};
use starbridge_services::{Kind, Service};
use std::collections::HashMap;
use std::future::Future;

pub struct Stand {
    pub kind: Kind,
    pub service: Service,
    pub connector: SqsConnector,
    /// The test's own client, so that its requests do not count as the connector's.
    looking: Aws,
}

/// A client for a stand-in.
pub fn way(endpoint: &str) -> Aws {
    Aws::new(AwsSettings {
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(("test".to_owned(), Secret::new("test"))),
    })
}

impl Stand {
    pub fn start(kind: Kind) -> Self {
        let service = Service::start(kind);
        Self {
            kind,
            connector: SqsConnector::new(way(&service.url())),
            looking: way(&service.url()),
            service,
        }
    }

    /// Asks the service itself.
    pub async fn ask<T, W>(&self, region: Option<&'static str>, question: impl FnOnce(Client) -> W) -> T
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let looking = self.looking.clone();
        let config = looking.config(region);
        let client = Client::new(&config.await.unwrap());
        self.looking.run(question(client)).await.unwrap()
    }

    pub async fn make(&self, name: &'static str, attributes: &[(QueueAttributeName, &str)]) -> String {
        self.make_in(None, name, attributes).await
    }

    /// Creates a queue and returns its URL.
    pub async fn make_in(
        &self,
        region: Option<&'static str>,
        name: &'static str,
        attributes: &[(QueueAttributeName, &str)],
    ) -> String {
        let mut all: HashMap<_, _> = attributes
            .iter()
            .map(|(name, value)| (name.clone(), (*value).to_owned()))
            .collect();
        if name.ends_with(".fifo") {
            all.insert(QueueAttributeName::FifoQueue, "true".to_owned());
        }
        let all = (!all.is_empty()).then_some(all);
        self.ask(region, move |client| async move {
            let made = client.create_queue().queue_name(name).set_attributes(all).send().await;
            made.unwrap().queue_url.unwrap()
        })
        .await
    }

    /// Takes this many messages out of a queue, in the order in which they come.
    pub async fn take(&self, url: &str, count: usize) -> Vec<Message> {
        let url = url.to_owned();
        self.ask(None, move |client| async move {
            let mut taken = Vec::new();
            // A queue may give fewer messages than it has. One that gives none for a second has none.
            loop {
                let asked = client
                    .receive_message()
                    .queue_url(&url)
                    .max_number_of_messages(10)
                    .wait_time_seconds(1)
                    .message_attribute_names("All");
                let messages = asked.send().await.unwrap().messages.unwrap_or_default();
                if messages.is_empty() {
                    return taken;
                }
                for message in messages {
                    let handle = message.receipt_handle.clone().unwrap();
                    let deleted = client.delete_message().queue_url(&url).receipt_handle(handle);
                    deleted.send().await.unwrap();
                    taken.push(message);
                }
                if taken.len() >= count {
                    return taken;
                }
            }
        })
        .await
    }

    /// How many messages are visible, hidden and delayed.
    pub async fn counts(&self, url: &str) -> [usize; 3] {
        let url = url.to_owned();
        let attributes = self
            .ask(None, move |client| async move {
                let asked = client.get_queue_attributes().queue_url(url);
                let asked = asked.attribute_names(QueueAttributeName::All).send().await;
                asked.unwrap().attributes.unwrap()
            })
            .await;
        [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ]
        .map(|name| attributes.get(&name).and_then(|count| count.parse().ok()).unwrap())
    }

    pub async fn call(&self, request: Request) -> Outcome {
        self.connector.call(request).await
    }
}

pub fn request(target: &str, call: u32, input: &str) -> Request {
    let input: Value = serde_json::from_str(input).unwrap();
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input,
        params: None,
        keys: CallIds {
            idempotency: format!("exec/{call}"),
            step_visit: "exec/2".to_owned(),
            execution: "exec".to_owned(),
            flow: "flow".to_owned(),
            step: "ship it".to_owned(),
            traceparent: Some("00-1-2-01".to_owned()),
        },
        attempt: 2,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1 << 20,
    }
}

pub fn with_params(mut request: Request, params: &str) -> Request {
    request.params = Some(serde_json::from_str(params).unwrap());
    request
}

/// The result of a call that must succeed.
pub fn result(outcome: Outcome) -> serde_json::Value {
    match outcome {
        Outcome::Result(result) => serde_json::from_str(&result.to_json()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Error and cause of a call that must fail.
pub fn failure(outcome: Outcome) -> (String, String) {
    match outcome {
        Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause),
        Outcome::Failed { error, cause, .. } => {
            assert_ne!(error, FaultKind::Resource, "who names it so was not called: {cause}");
            (FAULT_NAMES.name(&error).to_string(), cause)
        }
        other => panic!("{other:?}"),
    }
}
