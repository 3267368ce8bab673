//! The requests that are sent.

use super::server::{Seen, Server, json};
use super::setting::{outcome, request, value};
use starbridge_ports::{Outcome, Request};

async fn sent(change: impl FnOnce(&mut Request)) -> Seen {
    let mut server = Server::start(json("{}")).await;
    let mut request = request(&server.url("/f"));
    change(&mut request);
    assert_eq!(outcome(request).await, Outcome::Result(value("{}")));
    server.seen.recv().await.unwrap()
}

async fn sent_with(params: &str) -> Seen {
    sent(|request| request.params = Some(value(params))).await
}

#[tokio::test]
async fn the_input_goes_as_json_with_all_ids() {
    let seen = sent(|request| request.keys.traceparent = Some("00-abc-def-01".to_owned())).await;
    assert_eq!(seen.line, "POST /f HTTP/1.1");
    assert_eq!(seen.body, "{\"a\":1}");
    for (name, expected) in [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("user-agent", concat!("starbridge/", env!("CARGO_PKG_VERSION"))),
        ("idempotency-key", "exec-1:7"),
        ("starbridge-step-key", "exec-1:5"),
        ("starbridge-execution", "exec-1"),
        ("starbridge-flow", "order"),
        ("starbridge-step", "take%20the%20money"),
        ("starbridge-attempt", "2"),
        ("starbridge-type", "normal"),
        ("traceparent", "00-abc-def-01"),
    ] {
        assert_eq!(seen.header(name), Some(expected), "{name}");
    }
    assert_eq!(sent(|_| {}).await.header("traceparent"), None);
}

#[tokio::test]
async fn an_undoing_call_says_so() {
    let seen = sent(|request| request.rollback = true).await;
    assert_eq!(seen.header("starbridge-type"), Some("rollback"));
}

#[tokio::test]
async fn method_headers_and_query_are_used() {
    let params = r#"{"method": "put", "headers": {"Authorization": "Bearer t", "X-N": 5, "X-None": null, "Accept": "text/plain"},
                     "query": {"q": "a b&c", "n": 1, "many": [1, "x"], "none": null, "o": {"k": 1}}}"#;
    let seen = sent_with(params).await;
    assert_eq!(
        seen.line,
        "PUT /f?q=a+b%26c&n=1&many=1&many=x&o=%7B%22k%22%3A1%7D HTTP/1.1"
    );
    assert_eq!(seen.header("authorization"), Some("Bearer t"));
    assert_eq!(seen.header("x-n"), Some("5"));
    assert_eq!(seen.header("x-none"), None);
    assert_eq!(seen.header("accept"), Some("text/plain"));
    assert_eq!(seen.body, "{\"a\":1}", "the input where no body is given");
}

#[tokio::test]
async fn get_and_head_send_no_input() {
    for method in ["GET", "HEAD"] {
        let mut server = Server::start(super::server::answer("204 No Content", "", "")).await;
        let mut request = request(&server.url("/f?x=1"));
        request.params = Some(value(&format!("{{\"method\": \"{method}\", \"query\": {{\"y\": 2}}}}")));
        assert_eq!(outcome(request).await, Outcome::Result(value("{}")));
        let seen = server.seen.recv().await.unwrap();
        assert_eq!(seen.line, format!("{method} /f?x=1&y=2 HTTP/1.1"));
        assert_eq!(seen.body, "");
        assert_eq!(seen.header("content-type"), None);
    }
}

#[tokio::test]
async fn bodies_are_json_unless_text_says_what_it_is() {
    assert_eq!(sent_with(r#"{"body": [1, 2]}"#).await.body, "[1,2]");
    assert_eq!(sent_with(r#"{"body": "text"}"#).await.body, "\"text\"");
    assert_eq!(sent_with(r#"{"body": null}"#).await.body, "null");
    let json = r#"{"body": "text", "headers": {"content-type": "application/problem+json; charset=utf-8"}}"#;
    assert_eq!(sent_with(json).await.body, "\"text\"");
    let plain =
        sent_with(r#"{"body": "a=1&b=2", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}"#).await;
    assert_eq!(plain.body, "a=1&b=2");
    assert_eq!(plain.header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[tokio::test]
async fn params_that_mean_nothing_to_http_are_the_body() {
    assert_eq!(
        sent_with(r#"{"amount": 3, "to": "x"}"#).await.body,
        "{\"amount\":3,\"to\":\"x\"}"
    );
    assert_eq!(sent_with("[1]").await.body, "[1]");
    assert_eq!(sent_with("{}").await.body, "{}");
}

#[tokio::test]
async fn the_key_of_the_step_or_one_given_by_hand() {
    let step = sent_with(r#"{"idempotency": "step"}"#).await;
    assert_eq!(step.header("idempotency-key"), Some("exec-1:5"));
    assert_eq!(step.body, "{\"a\":1}");
    assert_eq!(
        sent_with(r#"{"idempotency": "call"}"#).await.header("idempotency-key"),
        Some("exec-1:7")
    );
    let given = sent_with(r#"{"headers": {"Idempotency-Key": "order-7", "Starbridge-Execution": "forged"}}"#).await;
    assert_eq!(given.header("idempotency-key"), Some("order-7"));
    assert_eq!(given.header("starbridge-execution"), Some("exec-1"));
}

#[tokio::test]
async fn user_and_password_of_the_url_become_a_header() {
    let mut server = Server::start(json("{}")).await;
    let request = request(&server.url("/f").replace("http://", "http://user:pass@"));
    assert_eq!(outcome(request).await, Outcome::Result(value("{}")));
    let seen = server.seen.recv().await.unwrap();
    assert_eq!(seen.header("authorization"), Some("Basic dXNlcjpwYXNz"));
}

#[tokio::test]
async fn a_followed_poll_is_a_get_with_the_headers_of_the_call() {
    let seen = sent(|request| {
        request.follow = true;
        request.polling = true;
        let params =
            r#"{"method": "PUT", "body": {"x": 1}, "query": {"q": 1}, "headers": {"Authorization": "Bearer t"}}"#;
        request.params = Some(value(params));
    })
    .await;
    assert_eq!(seen.line, "GET /f HTTP/1.1");
    assert_eq!(seen.body, "");
    assert_eq!(seen.header("content-type"), None);
    assert_eq!(seen.header("authorization"), Some("Bearer t"));
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_sent() {
    for (params, says) in [
        (r#"{"method": "two words"}"#, "`method`"),
        (r#"{"method": 5}"#, "`method`"),
        (r#"{"method": "CONNECT"}"#, "`method`"),
        (r#"{"headers": []}"#, "`headers` must be an object, not an array"),
        (r#"{"headers": {"a b": "c"}}"#, "`a b` is no name of a header"),
        (r#"{"headers": {"x": "a\r\nB: c"}}"#, "the header `x`"),
        (
            r#"{"headers": {"x": {}}}"#,
            "the header `x` must be text, not an object",
        ),
        (r#"{"headers": {"Content-Length": "3"}}"#, "`content-length`"),
        (
            r#"{"headers": {"transfer-encoding": "chunked"}}"#,
            "`transfer-encoding`",
        ),
        (r#"{"query": "a=b"}"#, "`query` must be an object, not a string"),
        (r#"{"idempotency": "maybe"}"#, "`idempotency`"),
        (r#"{"body": 1, "heders": {}}"#, "`heders`"),
    ] {
        let server = Server::start(json("{}")).await;
        let mut request = request(&server.url("/"));
        request.params = Some(value(params));
        let (error, cause, _) = super::setting::failure(outcome(request).await);
        assert_eq!(error, "FnF.NoSuchResource", "{params}");
        assert!(cause.contains(says), "{params}: {cause}");
        assert_eq!(server.connections(), 0, "{params}");
    }
}

#[tokio::test]
async fn a_secret_in_a_header_is_not_repeated() {
    let mut request = request("http://127.0.0.1:1/");
    request.params = Some(value(r#"{"headers": {"Authorization": "s3cret\nx"}}"#));
    let (_, cause, _) = super::setting::failure(outcome(request).await);
    assert!(!cause.contains("s3cret"), "{cause}");
}
