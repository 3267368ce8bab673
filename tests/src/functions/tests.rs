//! The server, asked over connections.

use super::{Script, serve};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn start(script: &Value) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let script = Script::parse(&script.to_string()).unwrap();
    tokio::spawn(async move { serve(listener, script).await });
    address
}

async fn exchange(address: SocketAddr, route: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("{route} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Status and body.
async fn ask(address: SocketAddr, route: &str, body: &str) -> (u16, String) {
    let answer = exchange(address, route, body).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

async fn json_of(address: SocketAddr, route: &str, body: &str) -> Value {
    serde_json::from_str(&ask(address, route, body).await.1).unwrap()
}

#[tokio::test]
async fn answers_come_in_order_and_the_last_repeats() {
    let address = start(&json!({
        "POST /status": [{"status": 503, "times": 2}, {"body": {"n": 1}}, {"body": {"n": 2}}],
        "GET /other": [{"body": "x"}],
    }))
    .await;
    for expected in [
        (503, "{}"),
        (503, "{}"),
        (200, "{\"n\":1}"),
        (200, "{\"n\":2}"),
        (200, "{\"n\":2}"),
    ] {
        assert_eq!(
            ask(address, "POST /status?q=1", "").await,
            (expected.0, expected.1.to_owned())
        );
    }
    assert_eq!(ask(address, "GET /other", "").await, (200, "\"x\"".to_owned()));
    assert_eq!(ask(address, "POST /other", "").await.0, 404);
}

#[tokio::test]
async fn bodies_of_every_kind() {
    let address = start(&json!({
        "POST /echo": [{"echo": true}],
        "POST /raw": [{"raw": "<html>", "headers": {"Content-Type": "text/html", "Retry-After": 3}}],
        "POST /bytes": [{"bytes": 70000}],
        "POST /template": [{"template": {"all": "$", "b": "$.a.b", "item": "$.list[1]", "none": "$.x", "text": "$5", "n": [1]}}],
        "POST /count": [{"counter": "calls", "body": {"x": 1}}],
        "POST /also": [{"counter": "calls"}],
    }))
    .await;
    assert_eq!(ask(address, "POST /echo", "{ \"a\":1}").await.1, "{ \"a\":1}");
    let raw = exchange(address, "POST /raw", "").await.to_ascii_lowercase();
    assert!(
        raw.contains("content-type: text/html\r\n") && !raw.contains("application/json"),
        "{raw}"
    );
    assert!(raw.contains("retry-after: 3\r\n") && raw.ends_with("<html>"), "{raw}");
    assert_eq!(ask(address, "POST /bytes", "").await.1.len(), 70_000);
    let sent = json!({"a": {"b": true}, "list": [1, 2]});
    let expected = json!({"all": sent, "b": true, "item": 2, "none": null, "text": "$5", "n": [1]});
    assert_eq!(json_of(address, "POST /template", &sent.to_string()).await, expected);
    assert_eq!(json_of(address, "POST /count", "").await, json!({"x": 1, "n": 1}));
    assert_eq!(json_of(address, "POST /also", "").await, json!({"n": 2}));
    assert_eq!(json_of(address, "POST /count", "").await, json!({"x": 1, "n": 3}));
}

#[tokio::test]
async fn answers_that_fail() {
    let address = start(&json!({
        "POST /close": [{"close": true, "body": {"abcdefgh": 1}}],
        "POST /hang": [{"hang": true}],
    }))
    .await;
    let answer = exchange(address, "POST /close", "").await;
    assert!(
        answer.contains("content-length: 14\r\n") && answer.ends_with("\r\n\r\n{\"abcde"),
        "{answer}"
    );
    let hang = tokio::time::timeout(Duration::from_millis(50), exchange(address, "POST /hang", "")).await;
    assert!(hang.is_err());
}

#[tokio::test]
async fn a_callback_reports_by_the_token() {
    let desk = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", desk.local_addr().unwrap());
    let address = start(&json!({
        "POST /ask": [
            {"status": 202, "callback": {"output": {"id": "$.id"}, "delayMs": 1}},
            {"callback": {"error": "No", "cause": "never", "url": url}},
        ],
    }))
    .await;
    for (input, line, body) in [
        (
            json!({"token": "a/b", "callbackUrl": url, "id": 7}),
            "/v1/callbacks/a%2Fb/succeed",
            json!({"output": {"id": 7}}),
        ),
        (
            json!({"token": "t"}),
            "/v1/callbacks/t/fail",
            json!({"error": "No", "cause": "never"}),
        ),
    ] {
        ask(address, "POST /ask", &input.to_string()).await;
        let (mut stream, _) = desk.accept().await.unwrap();
        let mut report = String::new();
        while !report.ends_with(&body.to_string()) {
            let mut piece = [0; 1024];
            let count = stream.read(&mut piece).await.unwrap();
            assert!(count > 0, "{report}");
            report.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        assert!(report.starts_with(&format!("POST {line} HTTP/1.1\r\n")), "{report}");
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    }
}

#[test]
fn what_is_wrong_with_a_script_is_told() {
    for (text, says) in [
        ("[]", "invalid type"),
        (r#"{"POST /a": []}"#, "`POST /a` has no answer"),
        (r#"{"pay": [{}]}"#, "`pay` is no route"),
        (r#"{"POST /a": [5]}"#, "an answer is an object"),
        (r#"{"POST /a": [{"statsu": 5}]}"#, "answers have no `statsu`"),
        (r#"{"POST /a": [{"status": "ok"}]}"#, "`status` can't be \"ok\""),
        (r#"{"POST /a": [{"times": 0}]}"#, "`times` can't be 0"),
        (r#"{"POST /a": {"callback": {"outptu": 1}}}"#, "`callback` can't be"),
    ] {
        let error = Script::parse(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn a_folder_has_the_functions_of_the_folders_in_it() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Script::load(folder.path()).is_err());
    for (name, route) in [("a", "POST /a"), ("b", "POST /b")] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let file = folder.path().join(name).join("functions.json");
        std::fs::write(file, json!({route: [{}]}).to_string()).unwrap();
    }
    let script = Script::load(folder.path()).unwrap();
    assert!(script.next("POST /a").is_some() && script.next("POST /b").is_some());
    assert!(
        Script::load(&folder.path().join("a"))
            .unwrap()
            .next("POST /b")
            .is_none()
    );
    std::fs::write(
        folder.path().join("functions.json"),
        json!({"POST /a": [{}]}).to_string(),
    )
    .unwrap();
    assert!(
        Script::load(folder.path())
            .unwrap_err()
            .contains("`POST /a` is there twice")
    );
}
