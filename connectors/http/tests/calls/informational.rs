//! Informational answers (1xx) before an answer: some are skipped, too many end the call.

use super::server::{Reply, Server};
use super::setting::{connector, failure, outcome, request, value};
use starbridge_ports::{Connector, Outcome};
use std::time::Duration;

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"b\": 2}";

/// Far longer than any of these calls takes, far shorter than the timeout of a call.
const SOON: Duration = Duration::from_secs(60);

/// The failure of a call whose peer sent too many.
fn too_many(server: &Server) -> (String, String, Option<u64>) {
    let cause = format!(
        "`{}`: more than 1000 informational answers (1xx), or 64 KiB of them, came before the answer",
        server.url("/f")
    );
    ("HTTP.ConnectionFailed".to_owned(), cause, None)
}

#[tokio::test]
async fn a_few_are_passed_over() {
    for before in [CONTINUE.to_owned(), HINTS.to_owned(), format!("{CONTINUE}{HINTS}")] {
        let server = Server::start(Reply::Bytes(format!("{before}{ANSWER}").into_bytes())).await;
        let outcome = outcome(request(&server.url("/f"))).await;
        assert_eq!(outcome, Outcome::Result(value("{\"b\": 2}")), "{before}");
    }
}

#[tokio::test]
async fn each_request_of_a_connection_has_its_own_count() {
    let most = format!("{}{ANSWER}", CONTINUE.repeat(1000));
    let server = Server::start(Reply::Bytes(most.into_bytes())).await;
    let connector = connector();
    for _ in 0..5 {
        let outcome = connector.call(request(&server.url("/f"))).await;
        assert_eq!(outcome, Outcome::Result(value("{\"b\": 2}")));
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn one_too_many_is_too_many_even_if_the_answer_is_there() {
    let many = format!("{}{ANSWER}", CONTINUE.repeat(1001));
    let mut server = Server::start(Reply::Bytes(many.into_bytes())).await;
    let found = outcome(request(&server.url("/f"))).await;
    assert_eq!(failure(found), too_many(&server));
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn without_end_they_end_the_call_and_the_connection() {
    let large = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(20_000));
    for piece in [CONTINUE.repeat(400), HINTS.to_owned(), large] {
        let mut server = Server::start(Reply::Endless(piece.into_bytes())).await;
        let found = tokio::time::timeout(SOON, outcome(request(&server.url("/f")))).await;
        assert_eq!(failure(found.unwrap()), too_many(&server));
        tokio::time::timeout(SOON, server.closed.recv()).await.unwrap();
    }
}

/// A kept connection that was cut is not used again. The next call gets another one.
#[tokio::test]
async fn the_call_after_is_made_over_another_connection() {
    let server = Server::start(Reply::Endless(CONTINUE.repeat(400).into_bytes())).await;
    let connector = connector();
    for calls in 1..=3 {
        let found = connector.call(request(&server.url("/f"))).await;
        assert_eq!(failure(found), too_many(&server));
        assert_eq!(server.connections(), calls);
    }
}
