//! The outcomes of answers with status 2xx.

use super::server::{Reply, Server, answer, json};
use super::setting::{failure, outcome, request, value};
use starbridge_flow::graph::Pattern;
use starbridge_ports::{Outcome, Request};

async fn of(reply: Reply, change: impl FnOnce(&mut Request)) -> Outcome {
    let server = Server::start(reply).await;
    let mut request = request(&server.url("/jobs/start?secret=1"));
    change(&mut request);
    outcome(request).await
}

async fn result(reply: Reply) -> Outcome {
    of(reply, |_| {}).await
}

fn accepted(receipt: &str) -> Outcome {
    Outcome::Accepted {
        receipt: Some(value(receipt)),
    }
}

#[tokio::test]
async fn json_is_the_result_whatever_it_is() {
    let message = r#"{"MessageId": "m", "RequestId": "r", "MessageBodyMD5": "d"}"#;
    for body in [message, "[1,2]", "7", "\"text\"", "null", "18446744073709551615"] {
        assert_eq!(result(json(body)).await, Outcome::Result(value(body)), "{body}");
    }
    assert_eq!(
        result(answer("299 Whatever", "", "{\"b\": 2}")).await,
        Outcome::Result(value("{\"b\": 2}"))
    );
}

#[tokio::test]
async fn nothing_is_an_empty_object() {
    let no_content = Reply::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec());
    for reply in [no_content, json(""), json(" \n"), answer("202 Accepted", "", "")] {
        assert_eq!(result(reply).await, Outcome::Result(value("{}")));
    }
}

#[tokio::test]
async fn rubbish_is_an_invalid_local() {
    let (error, cause, _) = failure(result(json("<html>\n<b>hello")).await);
    assert_eq!(error, "FnF.InvalidLocal");
    assert_eq!(
        cause,
        "the answer is no JSON: expected value at line 1, column 1; begins with `<html> <b>hello`"
    );
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let (error, cause, _) = failure(result(json(&deep)).await);
    assert_eq!(error, "FnF.InvalidLocal");
    assert!(cause.contains("recursion limit exceeded"), "{cause}");
    let deepest = format!("{}{}", "[".repeat(127), "]".repeat(127));
    assert!(matches!(result(json(&deepest)).await, Outcome::Result(_)));
    let (error, cause, _) = failure(result(answer("200 OK", "Content-Encoding: gzip\r\n", "\u{1f}")).await);
    assert_eq!(error, "FnF.InvalidLocal");
    assert!(cause.contains("`gzip`"), "{cause}");
}

#[tokio::test]
async fn the_limit_is_exact() {
    let exact = format!("\"{}\"", "x".repeat(1022));
    assert!(matches!(result(json(&exact)).await, Outcome::Result(_)));
    let (error, cause, _) = failure(result(json(&format!("{exact} "))).await);
    assert_eq!(error, "FnF.PayloadTooLarge");
    assert_eq!(cause, "the answer has more than the 1024 bytes it may have");
}

#[tokio::test]
async fn an_endless_answer_is_given_up_at_the_limit() {
    let mut server = Server::start(Reply::Flood(50 << 20)).await;
    let connector = super::setting::connector();
    let outcome = starbridge_ports::Connector::call(&connector, request(&server.url("/"))).await;
    assert_eq!(failure(outcome).0, "FnF.PayloadTooLarge");
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn half_an_answer_is_a_failed_connection() {
    for half in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n",
    ] {
        let (error, cause, _) = failure(result(Reply::Then(half.as_bytes().to_vec())).await);
        assert_eq!(error, "HTTP.ConnectionFailed");
        assert!(
            cause.contains("/jobs/start`: the answer was cut off after 4 bytes: "),
            "{cause}"
        );
        assert!(!cause.contains("secret"), "{cause}");
    }
}

#[tokio::test]
async fn waiting_patterns_are_accepted_with_a_receipt() {
    for pattern in [Pattern::Sync, Pattern::WaitForCallback] {
        let with = |request: &mut Request| request.pattern = pattern;
        let reply = answer("202 Accepted", "", "{\"ticket\": 5}");
        assert_eq!(
            of(reply, with).await,
            accepted(r#"{"status": 202, "body": {"ticket": 5}}"#)
        );
        assert_eq!(of(json("rubbish"), with).await, accepted(r#"{"status": 200}"#));
        assert_eq!(of(json("[]"), with).await, accepted(r#"{"status": 200}"#));
        assert_eq!(of(json(""), with).await, accepted(r#"{"status": 200}"#));
        let half = Reply::Then(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{".to_vec());
        assert_eq!(of(half, with).await, accepted(r#"{"status": 200}"#));
        assert_eq!(failure(of(answer("500 No", "", ""), with).await).0, "HTTP.500");
    }
}

#[tokio::test]
async fn a_202_under_poll_is_not_yet_a_result() {
    let polling = |request: &mut Request| request.polling = true;
    assert_eq!(
        of(answer("202 Accepted", "", "{}"), polling).await,
        accepted(r#"{"status": 202}"#)
    );
    assert_eq!(
        of(json("{\"b\": 1}"), polling).await,
        Outcome::Result(value("{\"b\": 1}"))
    );

    let server = Server::start(answer(
        "202 Accepted",
        "Location: ../7?x=1\r\nRetry-After: 3\r\n",
        "ignored",
    ))
    .await;
    let mut request = request(&server.url("/jobs/start/now"));
    polling(&mut request);
    let location = server.url("/jobs/7?x=1");
    let expected = format!("{{\"status\": 202, \"location\": \"{location}\", \"retryAfter\": 3}}");
    assert_eq!(outcome(request).await, accepted(&expected));
}

#[tokio::test]
async fn a_location_elsewhere_is_refused() {
    let polling = |request: &mut Request| request.polling = true;
    for location in [
        "http://169.254.169.254/x",
        "https://127.0.0.1/",
        "//other/x",
        "file:///etc/passwd",
        "http://[",
    ] {
        let reply = answer("202 Accepted", &format!("Location: {location}\r\n"), "");
        let (error, cause, _) = failure(of(reply, polling).await);
        assert_eq!(error, "HTTP.202", "{location}");
        assert!(cause.contains("`Location`"), "{cause}");
        assert!(!cause.contains("secret"), "{cause}");
    }
}
