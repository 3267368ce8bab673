//! Answers that SQS gives but no stand-in does, and the grouping of messages into requests.

use serde_json::{Value, json};
use starbridge_aws::{Aws, AwsSettings};
use starbridge_connector_sqs::SqsConnector;
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Pattern};
use starbridge_flow::time::Seconds;
use starbridge_ports::{CallIds, Connector, Outcome, Request, ResourceFamily, Secret};
use starbridge_services::{Answering, Heard, Said};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;

fn connector(endpoint: &str) -> SqsConnector {
    SqsConnector::new(Aws::new(AwsSettings {
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(("AKIATEST".to_owned(), Secret::new("not-to-be-seen"))),
    }))
}

fn request(target: &str, body: &str) -> Request {
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input: starbridge_flow::value::Value::empty_object(),
        params: Some(serde_json::from_value(json!({"MessageBody": body})).unwrap()),
        keys: CallIds {
            idempotency: format!("exec/{body}"),
            execution: "exec".to_owned(),
            ..CallIds::default()
        },
        attempt: 1,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1 << 20,
    }
}

fn said(status: u16, body: &Value) -> Said {
    let kind = ("Content-Type", "application/x-amz-json-1.0".to_owned());
    Said::Answer(status, vec![kind], body.to_string())
}

/// The messages of a send request. The queue's URL is already known.
fn entries(heard: &Heard) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&heard.body).unwrap();
    body["Entries"].as_array().unwrap().clone()
}

fn bodies(entries: &[Value]) -> Vec<String> {
    let body = |entry: &Value| entry["MessageBody"].as_str().unwrap().to_owned();
    entries.iter().map(body).collect()
}

fn taken(entry: &Value) -> Value {
    json!({"Id": entry["Id"], "MessageId": entry["MessageBody"], "MD5OfMessageBody": "md5"})
}

fn all_taken(heard: &Heard) -> Said {
    let taken: Vec<Value> = entries(heard).iter().map(taken).collect();
    said(200, &json!({"Successful": taken, "Failed": []}))
}

/// With its URL, no request for it is needed.
const QUEUE: &str = "sqs:https://host/1/orders";
const FIFO: &str = "sqs:https://host/1/orders.fifo";

async fn outcome(answer: impl Fn(&Heard) -> Said + Send + Sync + 'static) -> Outcome {
    let server = Answering::start(answer).unwrap();
    connector(&server.url()).call(request(QUEUE, "x")).await
}

#[tokio::test]
async fn refusals_have_names_and_causes() {
    for (status, code, message, error, cause) in [
        (
            403,
            "com.amazon.coral.service#UnrecognizedClientException",
            "The security token included in the request is invalid.",
            "SQS.AccessDenied",
            "The security token included in the request is invalid.",
        ),
        (
            403,
            "com.amazon.coral.service#InvalidSignatureException",
            "The request signature we calculated does not match.\n\nThe Canonical String for this request should have been",
            "SQS.AccessDenied",
            "The request signature we calculated does not match.",
        ),
        (
            403,
            "com.amazon.coral.service#AccessDeniedException",
            "User: arn:aws:iam::1:user/u is not authorized to perform: sqs:sendmessage",
            "SQS.AccessDenied",
            "User: arn:aws:iam::1:user/u is not authorized to perform: sqs:sendmessage",
        ),
        (
            400,
            "com.amazonaws.sqs#QueueDoesNotExist",
            "The specified queue does not exist.",
            "SQS.QueueDoesNotExist",
            "there is no such queue, or none these credentials may know of",
        ),
        (
            400,
            "com.amazonaws.sqs#KmsDisabled",
            "The key is disabled.",
            "SQS.KmsDisabled",
            "The key is disabled.",
        ),
    ] {
        let outcome = outcome(move |_| said(status, &json!({"__type": code, "message": message}))).await;
        assert_eq!(
            outcome,
            Outcome::failed(error, format!("queue `orders`: {cause}")),
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_service_that_asks_for_patience_is_given_it() {
    let throttled = outcome(|_| {
        let body = json!({"__type": "com.amazonaws.sqs#RequestThrottled", "message": "Slow down."});
        Said::Answer(400, vec![("Retry-After", "7".to_owned())], body.to_string())
    });
    let expected = Outcome::Failed {
        error: "SQS.Throttled".into(),
        cause: "queue `orders`: Slow down.".to_owned(),
        retry_after: Some(Seconds(7)),
    };
    assert_eq!(throttled.await, expected);
}

#[tokio::test]
async fn no_answer_and_no_sense() {
    let fails = |outcome: Outcome| match outcome {
        Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause),
        Outcome::Failed { error, cause, .. } => {
            assert_ne!(error, FaultKind::Resource, "who names it so was not called: {cause}");
            (FAULT_NAMES.name(&error).to_string(), cause)
        }
        other => panic!("{other:?}"),
    };
    let (error, cause) = fails(outcome(|_| Said::Answer(503, vec![], String::new())).await);
    assert_eq!(error, "SQS.503", "{cause}");
    let (error, cause) = fails(outcome(|_| Said::Answer(200, vec![], "<html>".to_owned())).await);
    assert_eq!(error, "SQS.ConnectionFailed", "{cause}");
    assert!(
        cause.starts_with("queue `orders`: an answer with status 200 that can't be read: "),
        "{cause}"
    );
    let (error, cause) = fails(outcome(|_| Said::Nothing).await);
    assert_eq!(error, "SQS.ConnectionFailed", "{cause}");
    let gone = Answering::start(|_| Said::Nothing).unwrap().url();
    // Until its thread has closed it, the port still accepts a connection, and sends nothing.
    let failed = fails(connector(&gone).call(request(QUEUE, "x")).await);
    assert_eq!(failed.0, "SQS.ConnectionFailed", "{}", failed.1);
}

#[tokio::test]
async fn a_message_that_fails_fails_alone() {
    let server = Answering::start(|heard| {
        let (bad, good): (Vec<Value>, Vec<Value>) = entries(heard).into_iter().partition(|entry| entry["MessageBody"] == "bad");
        let failed: Vec<Value> = bad
            .iter()
            .map(|entry| json!({"Id": entry["Id"], "SenderFault": false, "Code": "InternalError", "Message": "Try again."}))
            .collect();
        said(200, &json!({"Successful": good.iter().map(taken).collect::<Vec<_>>(), "Failed": failed}))
    })
    .unwrap();
    settles_each(
        &connector(&server.url()),
        "SQS.InternalError",
        "queue `orders`: Try again.",
    )
    .await;
}

#[tokio::test]
async fn a_batch_that_is_refused_for_one_is_sent_message_by_message() {
    let server = Answering::start(|heard| {
        if bodies(&entries(heard)).contains(&"bad".to_owned()) {
            return said(
                400,
                &json!({"__type": "com.amazonaws.sqs#InvalidMessageContents", "message": "No."}),
            );
        }
        all_taken(heard)
    })
    .unwrap();
    settles_each(
        &connector(&server.url()),
        "SQS.InvalidMessageContents",
        "queue `orders`: No.",
    )
    .await;
}

/// Sends forty messages, two of which are bad.
async fn settles_each(connector: &SqsConnector, error: &str, cause: &str) {
    let mut calls = JoinSet::new();
    for n in 0..40 {
        let (connector, body) = (
            connector.clone(),
            if n % 20 == 7 { "bad".to_owned() } else { n.to_string() },
        );
        calls.spawn(async move { (body.clone(), connector.call(request(QUEUE, &body)).await) });
    }
    for (body, outcome) in calls.join_all().await {
        match outcome {
            Outcome::Result(said) => assert_eq!(said.as_object().unwrap().get("MessageId"), Some(&body.into())),
            failed => assert_eq!((body.as_str(), failed), ("bad", Outcome::failed(error, cause))),
        }
    }
}

/// A server that holds its answers back until it is told to give one.
struct Holding {
    server: Answering,
    /// The messages of each request, as they come.
    heard: Receiver<Vec<String>>,
    give: Sender<()>,
    /// The groups with a request under way, and those that had two at once.
    groups: Arc<Mutex<(BTreeSet<String>, BTreeSet<String>)>>,
}

/// The groups of a request's messages.
fn groups(heard: &Heard) -> BTreeSet<String> {
    let group = |entry: &Value| entry["MessageGroupId"].as_str().map(str::to_owned);
    entries(heard).iter().filter_map(group).collect()
}

/// A call whose message waits in its queue: it was polled once and has no answer yet.
async fn waiting(
    call: impl Future<Output = Outcome> + Send + 'static,
) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
    let mut call = Box::pin(call);
    assert!(poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await);
    call
}

impl Holding {
    fn start() -> Self {
        let (hear, heard) = channel();
        let (give, given) = channel();
        let (hear, given) = (Mutex::new(hear), Arc::new(Mutex::new(given)));
        let seen: Arc<Mutex<(BTreeSet<String>, BTreeSet<String>)>> = Arc::default();
        let noted = seen.clone();
        let server = Answering::start(move |request| {
            let here = groups(request);
            {
                let (under_way, twice) = &mut *noted.lock().unwrap();
                twice.extend(under_way.intersection(&here).cloned());
                under_way.extend(here.iter().cloned());
            }
            hear.lock().unwrap().send(bodies(&entries(request))).unwrap();
            // A test that has failed gives no more answers.
            let _ = given.lock().unwrap().recv();
            noted.lock().unwrap().0.retain(|group| !here.contains(group));
            all_taken(request)
        });
        Self {
            server: server.unwrap(),
            heard,
            give,
            groups: seen,
        }
    }

    /// The messages of the next request.
    fn next(&self) -> Vec<String> {
        self.heard.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    fn give(&self, answers: usize) {
        (0..answers).for_each(|_| self.give.send(()).unwrap());
    }
}

// One worker, so that calls begin in the order in which they are spawned.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_leave_at_once_and_gather_only_while_enough_are_under_way() {
    let holding = Holding::start();
    let connector = connector(&holding.server.url());
    let mut calls = JoinSet::new();
    let mut call = |n: usize| {
        let connector = connector.clone();
        calls.spawn(async move { connector.call(request(QUEUE, &n.to_string())).await });
    };
    // One after the other, although none has its answer.
    for n in 0..8 {
        call(n);
        assert_eq!(holding.next(), [n.to_string()]);
    }
    let mut gathered = Vec::new();
    for n in 8..33 {
        let connector = connector.clone();
        let request = request(QUEUE, &n.to_string());
        gathered.push(waiting(async move { connector.call(request).await }).await);
    }
    // Nothing more leaves while eight are in flight. The waiting messages then leave in groups of
    // ten, none of them alone.
    let mut sizes = Vec::new();
    for _ in 0..3 {
        holding.give(1);
        sizes.push(holding.next().len());
    }
    assert_eq!(sizes, [10, 10, 5]);
    holding.give(8);
    gathered.into_iter().for_each(|call| drop(calls.spawn(call)));
    assert_eq!(calls.join_all().await.len(), 33);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_group_has_one_request_under_way() {
    let holding = Holding::start();
    let connector = connector(&holding.server.url());
    let call = |group: &str, body: &str| {
        let (connector, mut request) = (connector.clone(), request(FIFO, body));
        request.keys.execution = group.to_owned();
        waiting(async move { connector.call(request).await })
    };
    let mut calls = vec![call("a", "a1").await];
    assert_eq!(holding.next(), ["a1"]);
    for n in 2..30 {
        calls.push(call("a", &format!("a{n}")).await);
    }
    calls.push(call("b", "b1").await);
    assert_eq!(holding.next(), ["b1"], "another group does not wait");
    holding.give(1);
    assert_eq!(holding.next().first().map(String::as_str), Some("a2"));
    holding.give(40);
    let answers: JoinSet<Outcome> = calls.into_iter().collect();
    assert_eq!(answers.join_all().await.len(), 30);
    let (_, twice) = &*holding.groups.lock().unwrap();
    assert!(twice.is_empty(), "messages of {twice:?} might overtake each other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_that_was_given_up_while_it_waited_is_not_sent() {
    let holding = Holding::start();
    let connector = connector(&holding.server.url());
    let call = |body: &str| {
        let (connector, request) = (connector.clone(), request(FIFO, body));
        async move { connector.call(request).await }
    };
    let first = tokio::spawn(call("first"));
    assert_eq!(holding.next(), ["first"]);
    // It waits for the first message of its group, and then its caller is gone.
    drop(waiting(call("never")).await);
    let last = tokio::spawn(call("last"));
    holding.give(2);
    assert_eq!(holding.next(), ["last"]);
    assert!(matches!(first.await.unwrap(), Outcome::Result(_)));
    assert!(matches!(last.await.unwrap(), Outcome::Result(_)));
    assert!(holding.heard.try_recv().is_err());
}
