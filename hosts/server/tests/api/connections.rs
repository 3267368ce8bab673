//! Connections of malicious or slow clients.

use crate::document::check_text;
use crate::harness::{Running, asleep};
use axum::Router;
use axum::routing::post as post_to;
use serde_json::{Value, json};
use starbridge_server::{BodySettings, ConnectionSettings, ServerSettings};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Longer than anything here may take.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

/// A server with this many connections. Times are `LONG`, except those that are changed.
async fn serving(most: usize, change: impl FnOnce(&mut ServerSettings)) -> Running {
    let mut settings = ServerSettings {
        connections: ConnectionSettings {
            most,
            head: LONG * 3,
            idle: LONG * 3,
            unread: LONG * 3,
        },
        bodies: BodySettings {
            silence: LONG * 3,
            ..BodySettings::default()
        },
        ..ServerSettings::default()
    };
    change(&mut settings);
    Running::serving(settings, |_| {}).await
}

/// A connection, with the method and target of the request that was made there first.
pub struct Line {
    stream: TcpStream,
    asked: Option<(String, String)>,
}

impl Deref for Line {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl DerefMut for Line {
    fn deref_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }
}

/// A connection on which this was sent.
pub async fn say(server: &Running, words: &str) -> Line {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(words.as_bytes()).await.unwrap();
    let mut asked = words.split_once("\r\n").unwrap_or_default().0.split(' ');
    let asked = asked.next().zip(asked.next());
    let asked = asked.map(|(method, target)| (method.to_owned(), target.to_owned()));
    Line { stream, asked }
}

/// Everything that is received until the connection is closed.
pub async fn last_words(mut line: Line) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(LONG, line.stream.read_to_end(&mut bytes)).await;
    // A connection that is reset is closed too.
    let _ = read.expect("the connection stays open");
    let said = String::from_utf8_lossy(&bytes).into_owned();
    // A malformed request is answered from below the API, and this answer is not in the API's document.
    if let Some((method, target)) = line.asked.filter(|_| said.contains("content-type")) {
        check_text(&method, &target, &said);
    }
    said
}

/// What is received up to the end of a head.
pub async fn head(stream: &mut Line) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(stream.read_u8().await.unwrap());
        }
    };
    tokio::time::timeout(LONG, reading).await.expect("there is no answer");
    let said = String::from_utf8(bytes).unwrap();
    if let Some((method, target)) = stream.asked.as_ref().filter(|_| !said.starts_with("HTTP/1.1 100")) {
        check_text(method, target, &said);
    }
    said
}

pub fn post(path: &str, length: usize, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

#[tokio::test]
pub async fn who_says_nothing_or_half_of_it_is_let_go() {
    let server = serving(100, |settings| {
        settings.connections.head = SHORT;
        settings.bodies.silence = SHORT;
    })
    .await;
    server.flow("f", asleep()).await;
    assert_eq!(last_words(say(&server, "").await).await, "");
    assert_eq!(last_words(say(&server, "GET /healthz HT").await).await, "");
    let half = say(&server, &post("/v1/flows/f/executions", 100, "{")).await;
    let said = last_words(half).await;
    assert!(
        said.starts_with("HTTP/1.1 408") && said.contains("BodyTooSlow"),
        "{said}"
    );
    assert!(said.contains("connection: close"), "{said}");
}

#[tokio::test]
async fn timeout_of_a_body_that_trickles() {
    let server = serving(100, |settings| settings.bodies.silence = SHORT * 2).await;
    server.flow("f", asleep()).await;
    let (mut read, mut write) = say(&server, &post("/v1/flows/f/executions", 10_000, ""))
        .await
        .stream
        .into_split();
    // Never silent for long, and never finished.
    let trickling = tokio::spawn(async move { while write.write_all(b" ").await.is_ok() && sleep(SHORT / 4).await {} });
    let mut said = [0; 12];
    let read = tokio::time::timeout(LONG, read.read_exact(&mut said)).await;
    assert!(
        read.is_ok_and(|read| read.is_ok()) && said.ends_with(b"408"),
        "{said:?}"
    );
    trickling.abort();
}

async fn sleep(long: Duration) -> bool {
    tokio::time::sleep(long).await;
    true
}

#[tokio::test]
async fn idle_timeout_closes_only_connections_without_a_request() {
    let server = serving(100, |settings| {
        settings.connections.head = SHORT;
        settings.connections.idle = SHORT;
        settings.connections.unread = SHORT;
        settings.bodies.silence = SHORT;
    })
    .await;
    let steps = json!([{"type": "wait", "name": "w", "duration": 1.5}]);
    server.flow("f", steps).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap();
    let waiting = say(&server, &get(&format!("/v1/executions/{id}?wait=20"))).await;
    let stream =
        format!("GET /v1/executions/{id}/history HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
    let following = say(&server, &stream).await;
    let holding = r#"{"worker":"w","waitSeconds":2}"#;
    let holding = say(&server, &post("/v1/queues/q/hold", holding.len(), holding)).await;
    let quiet = last_words(say(&server, &get("/healthz")).await).await;
    assert!(quiet.ends_with("alive\n"), "{quiet}");
    for (stream, word) in [
        (waiting, "Succeeded"),
        (following, "ExecutionSucceeded"),
        (holding, "[]"),
    ] {
        let said = last_words(stream).await;
        assert!(said.starts_with("HTTP/1.1 200") && said.contains(word), "{said}");
    }
}

#[tokio::test]
async fn keep_alive_connection_serves_many_requests() {
    let server = serving(1, |_| {}).await;
    server.flow("f", asleep()).await;
    // The connection that stored the flow is quiet by now, and makes room.
    sleep(SHORT).await;
    let mut stream = say(&server, "").await;
    for number in 0..20 {
        let body = format!("{{\"name\":\"n{number}\"}}");
        let request = post("/v1/flows/f/executions", body.len(), &body) + &get("/healthz");
        stream.write_all(request.as_bytes()).await.unwrap();
        let begun = head(&mut stream).await;
        assert!(begun.starts_with("HTTP/1.1 201"), "{begun}");
        let length = begun.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
        let mut body = [0; 6];
        stream.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"alive\n");
    }
}

#[tokio::test]
pub async fn health_is_answered_and_flows_go_on_while_everybody_waits() {
    const MOST: usize = 4;
    let server = serving(MOST, |_| {}).await;
    let (url, door) = function().await;
    let call = |name: &str| json!({"type": "task", "name": name, "resourceArn": url});
    server.flow("f", json!([call("first"), call("second")])).await;
    let mut begun = Vec::new();
    for _ in 0..MOST {
        let execution = server.post("/v1/flows/f/executions", json!({})).await;
        begun.push(execution.body["id"].as_str().unwrap().to_owned());
    }
    // The last waiter takes the place of the connection that began them, which is quiet by now.
    sleep(SHORT).await;
    let mut waiting = Vec::new();
    for id in begun {
        waiting.push(say(&server, &get(&format!("/v1/executions/{id}?wait=30"))).await);
    }
    for path in ["/healthz", "/readyz"] {
        let said = eventually(&server, &get(path), "HTTP/1.1 200").await;
        assert!(said.contains("connection: close"), "{said}");
    }
    let said = eventually(&server, &get("/v1/flows"), "HTTP/1.1 503").await;
    assert!(
        said.contains("TooManyConnections") && said.contains("retry-after: 1"),
        "{said}"
    );
    assert!(said.contains("connection: close"), "{said}");
    door.send_replace(true);
    for stream in waiting {
        let mut stream = stream;
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
        // The execution follows the head.
        let mut ended = [0; 300];
        let read = stream.read(&mut ended).await.unwrap();
        let ended = String::from_utf8_lossy(&ended[..read]);
        assert!(ended.contains("Succeeded"), "{ended}");
    }
    assert!(
        eventually(&server, &get("/v1/flows"), "HTTP/1.1 200")
            .await
            .contains("\"f\"")
    );
}

/// A function that answers once its door is open.
async fn function() -> (String, Arc<watch::Sender<bool>>) {
    let door = Arc::new(watch::channel(false).0);
    let opened = door.clone();
    let answer = async move || {
        let _ = opened.subscribe().wait_for(|open| *open).await;
        "{}"
    };
    let router = Router::new().route("/", post_to(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, door)
}

/// The answer, once it begins with `begin`.
async fn eventually(server: &Running, words: &str, begin: &str) -> String {
    let words = words.replace("host: localhost", "host: localhost\r\nconnection: close");
    let mut said = String::new();
    for _ in 0..100 {
        said = last_words(say(server, &words).await).await;
        if said.starts_with(begin) {
            return said;
        }
        sleep(SHORT / 4).await;
    }
    panic!("{begin} never comes, but {said}");
}

#[tokio::test]
async fn connection_limit_evicts_who_never_asked() {
    let server = serving(4, |_| {}).await;
    server.flow("f", asleep()).await;
    let mut silent = Vec::new();
    for number in 0..50 {
        silent.push(say(&server, if number % 2 == 0 { "" } else { "GET /v1/flo" }).await);
    }
    // Bodies of unknown senders are treated alike.
    for _ in 0..10 {
        silent.push(say(&server, &post("/v1/callbacks", 1_000, "{")).await);
    }
    for _ in 0..10 {
        let said = eventually(&server, &get("/v1/flows"), "HTTP/1.1 200").await;
        assert!(said.contains("\"f\""), "{said}");
    }
    let first = silent.remove(0);
    assert_eq!(last_words(first).await, "");
}

#[tokio::test]
async fn timeout_of_a_client_that_does_not_read() {
    const LARGE: usize = 30_000_000;
    let server = serving(100, |settings| settings.connections.unread = SHORT).await;
    server.flow("f", asleep()).await;
    let input: Value = json!({"a": "x".repeat(LARGE)});
    let begun = server.post("/v1/flows/f/executions", json!({"input": input})).await;
    let id = begun.body["id"].as_str().unwrap();
    let mut stream = say(&server, &get(&format!("/v1/executions/{id}"))).await;
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
    sleep(SHORT * 10).await;
    let read = last_words(stream).await;
    assert!(read.len() < LARGE, "all {} bytes were kept for it", read.len());
}

#[tokio::test]
async fn request_head_limit() {
    let server = serving(100, |_| {}).await;
    let long = format!(
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(40_000)
    );
    let said = last_words(say(&server, &long).await).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
}
