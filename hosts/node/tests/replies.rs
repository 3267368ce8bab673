//! Reports from a reply queue.

use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::Status;
use starbridge_node::config::Config;
use starbridge_node::node::Node;
use starbridge_node::stores::in_memory;
use starbridge_ports::{ReplyError, ReplyFuture, ReplyMessage, ReplySource};
use starbridge_runtime::{PollOptions, StartRequest};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A queue in memory. Messages that were delivered but not handled arrive again with the next
/// request.
#[derive(Default)]
struct Source {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    waiting: VecDeque<ReplyMessage>,
    out: Vec<ReplyMessage>,
    done: Vec<String>,
    rejected: Vec<(String, String)>,
    /// How many of the next answers are errors.
    failing: u32,
}

impl Source {
    fn put(&self, handle: &str, body: String) {
        let handle = handle.to_owned();
        self.book
            .lock()
            .unwrap()
            .waiting
            .push_back(ReplyMessage { handle, body });
    }

    /// Waits until this many messages were handled.
    async fn until(&self, dealt_with: usize) -> (Vec<String>, Vec<(String, String)>) {
        for _ in 0..2_000 {
            {
                let book = self.book.lock().unwrap();
                if book.done.len() + book.rejected.len() >= dealt_with {
                    return (book.done.clone(), book.rejected.clone());
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("messages are not dealt with");
    }
}

impl ReplySource for Source {
    fn name(&self) -> &str {
        "a queue in memory"
    }

    fn receive(&self) -> ReplyFuture<'_, Vec<ReplyMessage>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let mut book = self.book.lock().unwrap();
            if book.failing > 0 {
                book.failing -= 1;
                return Err(ReplyError("it is away".to_owned()));
            }
            let again = std::mem::take(&mut book.out);
            let messages: Vec<ReplyMessage> = again.into_iter().chain(std::mem::take(&mut book.waiting)).collect();
            book.out.clone_from(&messages);
            Ok(messages)
        })
    }

    fn done(&self, messages: Vec<ReplyMessage>) -> ReplyFuture<'_, ()> {
        Box::pin(async move {
            let mut book = self.book.lock().unwrap();
            for message in messages {
                book.out.retain(|out| out.handle != message.handle);
                book.done.push(message.handle);
            }
            Ok(())
        })
    }

    fn reject(&self, message: ReplyMessage, reason: String) -> ReplyFuture<'_, ()> {
        Box::pin(async move {
            let mut book = self.book.lock().unwrap();
            book.out.retain(|out| out.handle != message.handle);
            book.rejected.push((message.handle, reason));
            Ok(())
        })
    }
}

async fn node() -> Arc<Node> {
    // An error means that it is already installed; there is only one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = Config::default().node(in_memory()).unwrap();
    let node = tokio::task::spawn_blocking(|| Node::start(settings))
        .await
        .unwrap()
        .unwrap();
    Arc::new(node)
}

/// Starts an execution with one task. Returns its id and its token.
async fn task(node: &Arc<Node>) -> (Text, String) {
    let request = StartRequest {
        flow: "f".into(),
        input: Value::empty_object(),
        ..StartRequest::default()
    };
    let begun = node.begin(request, false).await.unwrap().snapshot;
    let hold = PollOptions {
        worker: "w".into(),
        queues: vec!["q".into()],
        limit: 1,
        lease: None,
        patience: Duration::from_secs(20),
    };
    let held = node.hold(hold).await.unwrap().remove(0);
    let held: Object = serde_json::from_str(&held).unwrap();
    let token = held.get("token").unwrap().as_str().unwrap().to_owned();
    (begun.execution, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_messages_are_deleted_once_durable() {
    let node = node().await;
    let flow = r#"{"version":"v1","type":"flow","steps":[{"type":"task","name":"t","resourceArn":"queue:q"}]}"#;
    node.put_flow("f", flow.to_owned(), None).unwrap();
    let source = Arc::new(Source::default());
    source.book.lock().unwrap().failing = 1;
    let (first, token) = task(&node).await;
    let (second, other) = task(&node).await;
    source.put("beat", format!(r#"{{"token":"{token}","heartbeat":true}}"#));
    source.put("good", format!(r#"{{"token":"{token}","output":{{"a":1}}}}"#));
    source.put("again", format!(r#"{{"token":"{token}","output":{{"a":2}}}}"#));
    source.put(
        "failed",
        format!(r#"{{"token":"{other}","error":"Paper.Jam","cause":"tray 2"}}"#),
    );
    source.put("garbage", "{".to_owned());
    source.put("empty", "{}".to_owned());
    source.put("foreign", r#"{"token":"6162.00","output":{}}"#.to_owned());
    let large = "x".repeat(2 << 20);
    source.put("large", format!(r#"{{"token":"{token}","output":{{"a":"{large}"}}}}"#));
    let taking = tokio::spawn(node.clone().keep_replies(source.clone()));
    let (done, rejected) = source.until(8).await;
    assert_eq!(done, ["beat", "good", "again", "failed"]);
    let handles: Vec<&str> = rejected.iter().map(|(handle, _)| handle.as_str()).collect();
    assert_eq!(handles, ["garbage", "empty", "foreign", "large"]);
    assert!(rejected.iter().all(|(_, reason)| !reason.is_empty()));
    assert!(rejected[3].1.starts_with("it has 2097"), "{}", rejected[3].1);
    // Messages that were deleted from the queue are in the store.
    let status = |id: &str| node.store().record(id).unwrap().unwrap().status;
    assert_eq!((status(&first), status(&second)), (Status::Succeeded, Status::Failed));
    node.drain(Duration::from_secs(5)).await.unwrap();
    // A node that has ended takes nothing, so the message stays in the queue.
    source.put("late", format!(r#"{{"token":"{token}","output":{{}}}}"#));
    tokio::time::timeout(Duration::from_secs(10), taking)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(source.book.lock().unwrap().done.len(), 4);
}
