//! Shards that move between the threads of a node while executions run.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{EventId, EventKind, Status};
use starbridge_node::config::Config;
use starbridge_node::node::{Node, NotTaken};
use starbridge_node::stores::in_memory;
use starbridge_ports::{Append, Epoch, Refusal, ShardSet};
use starbridge_runtime::{PollOptions, Reply, Report, Snapshot, StartFailure, StartRequest, stored_events};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

const LEAF: &str = r#"{"version":"v1","type":"flow","steps":[{"type":"wait","name":"w","duration":0.01}]}"#;
const FLOW: &str = r#"{"version":"v1","type":"flow","steps":[
    {"type":"wait","name":"before","duration":0.02},
    {"type":"task","name":"child","resourceArn":"flow:leaf","pattern":"sync"},
    {"type":"task","name":"work","resourceArn":"queue:q"}]}"#;
const OWNERS: usize = 3;
const EXECUTIONS: usize = 60;

async fn node() -> Arc<Node> {
    // An error means that it is already installed; there is only one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = Config::default();
    config.runtime.owners = OWNERS;
    config.http.private_addresses = true;
    let settings = config.node(in_memory()).unwrap();
    let node = tokio::task::spawn_blocking(|| Node::start(settings))
        .await
        .unwrap()
        .unwrap();
    node.put_flow("leaf", LEAF.to_owned(), None).unwrap();
    node.put_flow("f", FLOW.to_owned(), None).unwrap();
    Arc::new(node)
}

/// Starts an execution, again and again while its shard moves, and waits for its end.
async fn run(node: Arc<Node>, number: usize) -> Text {
    let request = StartRequest {
        flow: "f".into(),
        name: Some(format!("n{number}").into()),
        input: Value::empty_object(),
        ..StartRequest::default()
    };
    loop {
        match node.begin(request.clone(), true).await {
            Ok(begun) => {
                let execution = begun.snapshot.execution;
                if let Some(end) = begun.end {
                    let ended = end.await.expect("whoever waits for the end is told of it");
                    assert_eq!((&ended.execution, ended.record.status), (&execution, Status::Succeeded));
                }
                return execution;
            }
            Err(StartFailure::Busy) => tokio::task::yield_now().await,
            Err(failure) => panic!("{failure:?}"),
        }
    }
}

/// Reports each task as done, again and again while its shard moves.
async fn work(node: Arc<Node>) {
    loop {
        let poll = PollOptions {
            worker: "w".into(),
            queues: vec!["q".into()],
            limit: 8,
            lease: None,
            patience: Duration::from_secs(20),
        };
        let Ok(held) = node.hold(poll).await else { return };
        for task in held {
            let task: Object = serde_json::from_str(&task).unwrap();
            let token = task.get("token").and_then(Value::as_text).unwrap();
            loop {
                let report = Report::Succeed(Value::empty_object());
                match node.report(node.verify(token).unwrap(), report).await {
                    Ok(answer) => match answer.await.unwrap() {
                        Reply::Held => tokio::task::yield_now().await,
                        reply => break assert_eq!(reply, Reply::Taken),
                    },
                    Err(NotTaken::Busy) => tokio::task::yield_now().await,
                    Err(NotTaken::Stopping) => return,
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_go_on_while_their_shards_move() {
    let node = node().await;
    let worker = tokio::spawn(work(node.clone()));
    let over = Arc::new(AtomicBool::new(false));
    let moving = tokio::spawn({
        let (node, over) = (node.clone(), over.clone());
        async move {
            let mut moves = 0;
            while !over.load(Ordering::Relaxed) {
                let shards = ShardSet::part(moves % 7, 7);
                node.move_shards(&shards, moves % OWNERS, Timestamp::default())
                    .await
                    .unwrap();
                moves += 1;
            }
            moves
        }
    });
    let running: Vec<_> = (0..EXECUTIONS)
        .map(|number| tokio::spawn(run(node.clone(), number)))
        .collect();
    for execution in running {
        let execution = execution.await.unwrap();
        let record = node.store().record(&execution).unwrap().unwrap();
        let flow = node.flow_of(&execution, &record).unwrap();
        let events = stored_events(node.store().as_ref(), &flow, &execution, u64::MAX).unwrap();
        let calls = events
            .iter()
            .filter(|event| matches!(event.detail, EventKind::TaskScheduled(_)));
        assert_eq!((record.status, calls.count()), (Status::Succeeded, 2));
        assert!((1..).zip(&events).all(|(number, event)| event.id.0 == number));
    }
    over.store(true, Ordering::Relaxed);
    assert!(moving.await.unwrap() > OWNERS);
    node.drain(Duration::from_secs(5)).await.unwrap();
    worker.await.unwrap();
    // All shards have an owner at the end: nothing was lost between two of them.
    let counts = node.store().counts().unwrap();
    let all = 2 * EXECUTIONS as u64;
    assert_eq!(
        counts.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>(),
        [(Status::Succeeded, all)]
    );
}

/// A function that answers when it may, and the keys of its calls in the order in which they came.
struct Function {
    keys: mpsc::UnboundedReceiver<String>,
    may_answer: Arc<Semaphore>,
    url: String,
}

impl Function {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/f", listener.local_addr().unwrap());
        let (came, keys) = mpsc::unbounded_channel();
        let may_answer = Arc::new(Semaphore::new(0));
        let may = may_answer.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, came.clone(), may.clone()));
            }
        });
        Self { keys, may_answer, url }
    }
}

async fn answer(mut stream: TcpStream, came: mpsc::UnboundedSender<String>, may: Arc<Semaphore>) {
    let mut request = String::new();
    // The input is an empty object, so the body ends with it.
    while !request.ends_with("{}") {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).await.unwrap();
        request += std::str::from_utf8(&bytes[..read]).unwrap();
    }
    let key = request.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("idempotency-key").then(|| value.to_owned())
    });
    came.send(key.expect("a call has a key")).unwrap();
    may.acquire().await.unwrap().forget();
    let answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    // Whoever called may have given up.
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// A node with an execution whose call is out, and what receives its end.
async fn calling(function: &mut Function) -> (Arc<Node>, oneshot::Receiver<Snapshot>, String) {
    let node = node().await;
    let flow = format!(
        r#"{{"version":"v1","type":"flow","steps":[{{"type":"task","name":"call","resourceArn":"{}"}}]}}"#,
        function.url
    );
    node.put_flow("calls", flow, None).unwrap();
    let request = StartRequest {
        flow: "calls".into(),
        input: Value::empty_object(),
        ..StartRequest::default()
    };
    let begun = node.begin(request, true).await.unwrap();
    let key = function.keys.recv().await.unwrap();
    (node, begun.end.unwrap(), key)
}

/// Moves all shards to each thread in turn, so at least one move takes the execution from its owner.
async fn move_to_each(node: Arc<Node>, until: Timestamp) {
    for owner in 0..OWNERS {
        node.move_shards(&ShardSet::ALL, owner, until).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_may_end_before_its_shard_moves() {
    let mut function = Function::start().await;
    let (node, end, _) = calling(&mut function).await;
    let moving = tokio::spawn(move_to_each(node.clone(), Timestamp(i64::MAX)));
    tokio::task::yield_now().await;
    assert!(!moving.is_finished());
    function.may_answer.add_permits(1);
    moving.await.unwrap();
    assert_eq!(end.await.unwrap().record.status, Status::Succeeded);
    assert!(function.keys.try_recv().is_err(), "it was sent once");
    node.drain(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_end_in_time_is_sent_again_by_the_next_owner() {
    let mut function = Function::start().await;
    let (node, end, key) = calling(&mut function).await;
    move_to_each(node.clone(), Timestamp::default()).await;
    assert_eq!(function.keys.recv().await, Some(key));
    function.may_answer.add_permits(2 * OWNERS);
    assert_eq!(end.await.unwrap().record.status, Status::Succeeded);
    node.drain(Duration::from_secs(5)).await.unwrap();
}

/// The epoch under which the store takes appends for this execution.
fn epoch_of(node: &Node, execution: &Text) -> Epoch {
    let append = |epoch| Append {
        execution: execution.clone(),
        // No history has so many events.
        expected: EventId(1 << 40),
        epoch,
        ..Append::default()
    };
    // Those of the first process, in the order in which they are given.
    let mut epochs = (0..99).map(|claim| Epoch((1 << 32) + claim));
    let is_taken = |epoch: &Epoch| node.store().append(&[append(*epoch)]).unwrap() == [(0, Refusal::Conflict)];
    epochs.find(is_taken).expect("somebody has its shard")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_move_raises_the_epoch() {
    let mut function = Function::start().await;
    let (node, end, key) = calling(&mut function).await;
    let execution: Text = key.split('/').next().unwrap().into();
    let mut before = epoch_of(&node, &execution);
    let mut raised = 0;
    for owner in [0, 1, 2, 0] {
        node.move_shards(&ShardSet::ALL, owner, Timestamp::default())
            .await
            .unwrap();
        let now = epoch_of(&node, &execution);
        assert!(now >= before);
        raised += usize::from(now > before);
        before = now;
    }
    assert!(raised >= OWNERS, "the first owner may have had it already");
    function.may_answer.add_permits(9);
    assert_eq!(end.await.unwrap().record.status, Status::Succeeded);
    node.drain(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_store_another_one_has_taken_acknowledges_nothing_more() {
    let former = node().await;
    let store = former.store().clone();
    let mut config = Config::default();
    config.runtime.owners = OWNERS;
    let settings = config.node(store).unwrap();
    let next = tokio::task::spawn_blocking(|| Node::start(settings))
        .await
        .unwrap()
        .unwrap();
    let request = |name: &str| StartRequest {
        flow: "leaf".into(),
        name: Some(name.into()),
        input: Value::empty_object(),
        ..StartRequest::default()
    };
    for late in ["late", "later", "last"] {
        let refused = former.begin(request(late), true).await;
        assert_eq!(refused.err(), Some(StartFailure::Busy));
    }
    let begun = next.begin(request("one"), true).await.unwrap();
    assert_eq!(begun.end.unwrap().await.unwrap().record.status, Status::Succeeded);
    next.drain(Duration::from_secs(5)).await.unwrap();
    // Whoever comes after a node that was drained finds all shards free, also without an epoch.
    let counts = next.store().counts().unwrap();
    assert_eq!(counts, [(Status::Succeeded, 1)]);
    let free = Append {
        execution: "any".into(),
        ..Append::default()
    };
    assert_eq!(next.store().append(&[free]), Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_a_node_does_not_have_gets_no_shards() {
    let node = node().await;
    let moved = node.move_shards(&ShardSet::ALL, OWNERS, Timestamp::default()).await;
    assert_eq!(moved, Err(NotTaken::Stopping));
    // One thread may have them all.
    node.move_shards(&ShardSet::ALL, 1, Timestamp::default()).await.unwrap();
    let worker = tokio::spawn(work(node.clone()));
    run(node.clone(), 0).await;
    node.drain(Duration::from_secs(5)).await.unwrap();
    worker.await.unwrap();
}
