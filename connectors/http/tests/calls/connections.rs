//! Connections: kept, shared, and closed when a call is dropped.

use super::server::{Reply, Server, json};
use super::setting::{connector, failure, outcome, request, value};
use starbridge_connector_http::{HttpConnector, HttpSettings};
use starbridge_ports::{Connector, Outcome};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::start(json("{\"b\": 2}")).await;
    let connector = connector();
    for _ in 0..20 {
        assert_eq!(
            connector.call(request(&server.url("/"))).await,
            Outcome::Result(value("{\"b\": 2}"))
        );
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn calls_at_the_same_time_do_not_wait_for_each_other() {
    let server = Server::start(json("{}")).await;
    let connector = Arc::new(connector());
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (connector, request) = (connector.clone(), request(&server.url("/")));
            tokio::spawn(async move { connector.call(request).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Outcome::Result(value("{}")));
    }
    assert!(server.connections() <= 50);
}

#[tokio::test]
async fn a_call_given_up_closes_its_connection() {
    let mut server = Server::start(Reply::Silence).await;
    let connector = connector();
    tokio::select! {
        outcome = connector.call(request(&server.url("/"))) => panic!("nothing was answered, but {outcome:?}"),
        seen = server.seen.recv() => assert!(seen.is_some()),
    }
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_failure_too_large_to_read_leaves_no_connection_behind() {
    let mut server = Server::start(super::server::answer("500 Oh", "", &"x".repeat(200_000))).await;
    assert_eq!(failure(outcome(request(&server.url("/"))).await).0, "HTTP.500");
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_does_not_open_in_time() {
    struct Never;
    impl starbridge_connector_http::Resolver for Never {
        fn lookup(&self, _: &str) -> starbridge_connector_http::ResolveFuture {
            Box::pin(std::future::pending())
        }
    }
    let connector = HttpConnector::new(HttpSettings {
        resolver: Arc::new(Never),
        connect_timeout: Duration::from_millis(1),
        ..HttpSettings::default()
    });
    let (error, cause, _) = failure(connector.call(request("http://slow.test/")).await);
    assert_eq!(error, "HTTP.ConnectionFailed");
    assert_eq!(cause, "`http://slow.test/`: no connection within the time for it");
}

/// Calls of steps without a timeout end too: a peer that never answers, or never ends its answer, occupies no place
/// forever.
#[tokio::test]
async fn a_peer_that_does_not_answer_is_given_up() {
    let half = Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_vec());
    for reply in [Reply::Silence, half] {
        let mut server = Server::start(reply).await;
        let connector = HttpConnector::new(HttpSettings {
            timeout: Some(Duration::from_millis(50)),
            ..HttpSettings::default()
        });
        let target = server.url("/slow?key=secret");
        let (error, cause, _) = failure(connector.call(request(&target)).await);
        let shown = server.url("/slow");
        assert_eq!(error, "FnF.TaskTimeout");
        assert_eq!(
            cause,
            format!(
                "`{shown}`: no whole answer within 0.05 s: give the step a `timeoutSeconds`, or set `http.timeout_seconds`"
            )
        );
        server.closed.recv().await.unwrap();
    }
}

/// If a step waits for a callback, its timeout is the time until the report. The request itself has the default one.
#[tokio::test]
async fn a_step_with_a_time_of_its_own_has_that() {
    let mut server = Server::start(Reply::Silence).await;
    let connector = HttpConnector::new(HttpSettings {
        timeout: Some(Duration::from_millis(1)),
        ..HttpSettings::default()
    });
    let mut request = request(&server.url("/"));
    request.timeout_at = Some(starbridge_flow::time::Timestamp::END);
    let mut waiting = request.clone();
    waiting.pattern = starbridge_flow::graph::Pattern::WaitForCallback;
    assert_eq!(failure(connector.call(waiting).await).0, "FnF.TaskTimeout");
    tokio::select! {
        outcome = connector.call(request) => panic!("nobody answered, but {outcome:?}"),
        () = async {
            server.seen.recv().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        } => {}
    }
}
