//! Requests that wait, and clients that disconnect meanwhile.

use crate::harness::{Answer, Running, asleep};
use crate::held::Held;
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Much longer than any step here takes, and much shorter than a poll waits.
const SOON: Duration = Duration::from_secs(30);

async fn until(what: &str, mut there: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !there().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, waited).await.is_ok(), "in vain: {what}");
}

/// A poll whose connection the test holds.
async fn poll(server: &Running, body: &Value) -> TcpStream {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (body, head) = (body.to_string(), "POST /v1/queues/hold HTTP/1.1\r\nhost: localhost");
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

fn jobs(worker: &str) -> Value {
    json!({"worker": worker, "queues": ["jobs"], "waitSeconds": 60})
}

async fn workers(server: &Running) -> Value {
    server.get("/v1/queues/jobs").await.body["workers"].clone()
}

async fn job(server: &Running) {
    let task = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]);
    server.flow("f", task).await;
}

/// Ends a task. Its execution must never have seen another lease.
async fn succeed(server: &Running, task: &Value) {
    let token = task["token"].as_str().unwrap();
    let done = server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    assert_eq!(done.status, 204, "{done:?}");
    let execution = task["execution"].as_str().unwrap();
    let shown = server.get(&format!("/v1/executions/{execution}?wait=30")).await.body;
    assert_eq!(shown["status"], "Succeeded", "{shown}");
    let history = server.get(&format!("/v1/executions/{execution}/history")).await.body;
    assert!(!history.to_string().contains("TimedOut"), "{history}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiter_that_goes_away_is_forgotten() {
    let server = Arc::new(Running::start().await);
    job(&server).await;
    let mut gone = Vec::new();
    for number in 0..200 {
        gone.push(poll(&server, &jobs(&format!("gone{number}"))).await);
    }
    until("all wait", async || workers(&server).await == 200).await;
    assert_eq!(server.node.waiting(), 200);
    let there = server.clone();
    let held = tokio::spawn(async move { there.post("/v1/queues/hold", jobs("there")).await });
    until("one more waits", async || workers(&server).await == 201).await;
    drop(gone);
    until("they are forgotten", async || workers(&server).await == 1).await;
    assert_eq!(server.node.waiting(), 1);
    server.post("/v1/flows/f/executions", json!({})).await;
    let held = tokio::time::timeout(SOON, held).await.unwrap().unwrap();
    let task = &held.body["tasks"][0];
    assert_eq!(task["attempt"], 1, "{held:?}");
    succeed(&server, task).await;
    assert_eq!(server.get("/v1/queues").await.body["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_of_a_poll_that_went_away_goes_to_the_next() {
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| settings.store = kept).await;
    let server = Arc::new(server);
    job(&server).await;
    server.put("/v1/queues/jobs", json!({"paused": true})).await;
    server.post("/v1/flows/f/executions", json!({})).await;
    let gone = poll(&server, &jobs("gone")).await;
    until("both wait", async || {
        let queue = server.get("/v1/queues/jobs").await.body;
        queue["waiting"] == 1 && queue["workers"] == 1
    })
    .await;
    // Its lease is on the way to the store when the client goes.
    store.hold(true);
    server.put("/v1/queues/jobs", json!({"redeliver": 0})).await;
    until("it is given", async || workers(&server).await == 0).await;
    drop(gone);
    until("it has gone", async || server.node.waiting() == 0).await;
    let there = server.clone();
    let held = tokio::spawn(async move { there.post("/v1/queues/hold", jobs("there")).await });
    until("another waits", async || workers(&server).await == 1).await;
    store.hold(false);
    let held = tokio::time::timeout(SOON, held).await.unwrap().unwrap();
    let task = &held.body["tasks"][0];
    assert_eq!(task["attempt"], 1, "{held:?}");
    succeed(&server, task).await;
}

#[tokio::test]
async fn queue_that_is_empty_is_forgotten() {
    let server = Running::start().await;
    let before = server.get("/metrics").await.body.as_str().unwrap().len();
    for number in 0..10 {
        let names: Vec<String> = (0..100).map(|name| format!("q{number}-{name}")).collect();
        let body = json!({"worker": "w", "queues": names, "waitSeconds": 0});
        let held = server.post("/v1/queues/hold", body).await;
        assert_eq!(held.body, json!({"tasks": []}));
    }
    assert_eq!(server.get("/v1/queues").await.body["items"], json!([]));
    let metrics = server.get("/metrics").await.body.as_str().unwrap().to_owned();
    assert!(metrics.len() < before + 200, "{metrics}");
    let names: Vec<String> = (0..101).map(|name| format!("q{name}")).collect();
    let many = json!({"worker": "w", "queues": names, "waitSeconds": 0});
    assert_eq!(server.post("/v1/queues/hold", many).await.code(), (400, "BadRequest"));
}

#[tokio::test]
async fn queue_list_has_pages() {
    let server = Running::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        server.put(&format!("/v1/queues/{name}"), json!({"paused": true})).await;
    }
    let mut names = Vec::new();
    let mut path = "/v1/queues?limit=2".to_owned();
    let mut pages = 0;
    loop {
        let page = server.get(&path).await.body;
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|queue| queue["name"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/queues?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((names.join(""), pages), ("abcde".to_owned(), 3));
    // Default settings count as no settings, also after a restart.
    server.put("/v1/queues/a", json!({})).await;
    assert_eq!(server.get("/v1/queues/a").await.code(), (404, "NoSuchQueue"));
    assert_eq!(server.node.store().list_values("queue").unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub async fn limit_of_waiters() {
    let server = Running::with(Access::default(), |settings| settings.waiters = 12).await;
    server.flow("sleep", asleep()).await;
    let begun = server.post("/v1/flows/sleep/executions", json!({"name": "one"})).await;
    let path = format!("/v1/executions/{}?wait=60", begun.body["id"].as_str().unwrap());
    let mut polls = vec![poll(&server, &jobs("one")).await, poll(&server, &jobs("two")).await];
    // A poll of a hundred queues takes as many permits as ten polls of one.
    let names: Vec<String> = (0..100).map(|name| format!("q{name}")).collect();
    let many = json!({"worker": "w", "queues": names, "waitSeconds": 60});
    polls.push(poll(&server, &many).await);
    until("all places are taken", async || server.node.waiting() == 12).await;
    let asked = server.raw(Method::POST, "/v1/queues/hold", Some(jobs("late").to_string()));
    let refused = asked.await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let refused = Answer::of(refused).await;
    assert_eq!(refused.code(), (503, "TooManyWaiting"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("`server.waiters`"), "{detail}");
    assert_eq!(server.get(&path).await.code(), (503, "TooManyWaiting"));
    let start = server
        .post("/v1/flows/sleep/executions?wait=5", json!({"name": "two"}))
        .await;
    assert_eq!(start.code(), (503, "TooManyWaiting"));
    let none = server.get("/v1/flows/sleep/executions/two").await;
    assert_eq!(none.code(), (404, "NoSuchExecution"));
    // A request that does not wait is served.
    let at_once = json!({"worker": "w", "queues": ["jobs"], "waitSeconds": 0});
    assert_eq!(server.post("/v1/queues/hold", at_once).await.status, 200);
    drop(polls);
    until("the places are free", async || server.node.waiting() == 0).await;
    let again = server.get(&path.replace("=60", "=1")).await;
    assert_eq!(again.body["status"], "Running");
}
