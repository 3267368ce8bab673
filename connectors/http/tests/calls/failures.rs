//! The outcomes of answers with other statuses, and of calls without an answer.

use super::server::{Reply, Server, answer};
use super::setting::{failure, outcome, request};
use starbridge_connector_http::{HttpConnector, HttpSettings, ResolveFuture, Resolver};
use starbridge_flow::time::Timestamp;
use starbridge_ports::{Clock, Connector, Outcome, ResourceFamily};
use std::io;
use std::sync::Arc;

async fn of(reply: Reply, via: ResourceFamily) -> (String, String, Option<u64>) {
    let server = Server::start(reply).await;
    let mut request = request(&server.url("/f?token=secret"));
    request.via = via;
    failure(outcome(request).await)
}

#[tokio::test]
async fn a_named_error_in_the_body_wins() {
    for (body, error, cause) in [
        (
            r#"{"error": "Card.Declined", "cause": "limit"}"#,
            "Card.Declined",
            "limit",
        ),
        (r#"{"error": "Card.Declined"}"#, "Card.Declined", ""),
        (
            r#"{"error": "Card.Declined", "cause": {"n": 1}}"#,
            "Card.Declined",
            "{\"n\":1}",
        ),
        (
            r#"{"errorType": "ValueError", "errorMessage": "bad"}"#,
            "ValueError",
            "bad",
        ),
        (
            r#"{"error": {"code": 5}, "errorType": "E", "errorMessage": "m"}"#,
            "E",
            "m",
        ),
        // The interpreter's own names get a prefix, because they control retries and rollbacks.
        (
            r#"{"error": " FnF.NoSuchResource", "cause": "never called"}"#,
            "Function.FnF.NoSuchResource",
            "never called",
        ),
        (
            r#"{"errorType": "FnF.LimitExceeded", "errorMessage": "m"}"#,
            "Function.FnF.LimitExceeded",
            "m",
        ),
    ] {
        for via in [ResourceFamily::Direct, ResourceFamily::FunctionCompute] {
            assert_eq!(
                of(answer("500 Oh", "", body), via).await,
                (error.to_owned(), cause.to_owned(), None),
                "{body}"
            );
        }
    }
}

#[tokio::test]
async fn else_the_status_is_the_name() {
    for (status, body, error, cause) in [
        ("404 Nope", "", "HTTP.404", "Not Found"),
        (
            "503 Busy",
            "please  wait\n",
            "HTTP.503",
            "Service Unavailable: please  wait",
        ),
        (
            "400 Bad",
            r#"{"message": "no"}"#,
            "HTTP.400",
            "Bad Request: {\"message\": \"no\"}",
        ),
        (
            "400 Bad",
            r#"{"error": ""}"#,
            "HTTP.400",
            "Bad Request: {\"error\": \"\"}",
        ),
        ("599 Odd", "", "HTTP.599", "status 599"),
        ("429 Slow", "[]", "HTTP.429", "Too Many Requests: []"),
    ] {
        let expected = (error.to_owned(), cause.to_owned(), None);
        assert_eq!(of(answer(status, "", body), ResourceFamily::Direct).await, expected);
    }
    let (error, cause, _) = of(answer("500 Oh", "", &"é".repeat(900)), ResourceFamily::Direct).await;
    assert_eq!(error, "HTTP.500");
    assert_eq!(cause, format!("Internal Server Error: {}", "é".repeat(500)));
}

#[tokio::test]
async fn a_large_or_broken_body_does_not_hide_the_status() {
    let large = answer("500 Oh", "", &"x".repeat(100_000));
    assert_eq!(of(large, ResourceFamily::Direct).await.0, "HTTP.500");
    let half = Reply::Then(b"HTTP/1.1 502 Oh\r\nContent-Length: 10\r\n\r\nabc".to_vec());
    let (error, cause, _) = of(half, ResourceFamily::Direct).await;
    assert_eq!((error.as_str(), cause.as_str()), ("HTTP.502", "Bad Gateway: abc"));
    let packed = answer("500 Oh", "Content-Encoding: br\r\n", "\u{1}\u{2}");
    assert_eq!(of(packed, ResourceFamily::Direct).await.1, "Internal Server Error");
}

#[tokio::test]
async fn where_a_redirect_leads_is_named_without_what_may_be_secret() {
    for (location, named) in [
        ("/elsewhere?token=1", "/elsewhere"),
        ("https://u:p@host.example:8443/a?b=c#d", "https://host.example:8443/a"),
    ] {
        let found = answer("302 Found", &format!("Location: {location}\r\n"), "{}");
        let cause = format!("Found: redirects are not followed; `Location` is `{named}`");
        assert_eq!(
            of(found, ResourceFamily::Direct).await,
            ("HTTP.302".to_owned(), cause, None)
        );
    }
    assert_eq!(
        of(answer("304 Same", "", ""), ResourceFamily::Direct).await.1,
        "Not Modified"
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let mut server = Server::start(answer("301 Moved", "Location: /elsewhere\r\n", "")).await;
    let (error, cause, _) = failure(outcome(request(&server.url("/"))).await);
    assert_eq!(error, "HTTP.301");
    assert!(
        cause.starts_with("Moved Permanently: redirects are not followed"),
        "{cause}"
    );
    server.seen.recv().await.unwrap();
    assert!(server.seen.try_recv().is_err());
    assert_eq!(
        of(answer("307 Moved", "Location: /x\r\n", ""), ResourceFamily::Direct)
            .await
            .0,
        "HTTP.307"
    );
}

#[tokio::test]
async fn function_compute_has_names_of_its_own() {
    for (status, headers, body, error) in [
        ("429 Slow", "", "{}", "FC.ResourceThrottled"),
        ("500 Oh", "", "", "FC.InternalServerError"),
        ("503 Oh", "", "rubbish", "FC.InternalServerError"),
        ("404 Nope", "", "", "HTTP.404"),
        (
            "200 OK",
            "X-Fc-Error-Type: UnhandledInvocationError\r\n",
            "{}",
            "FC.Unknown",
        ),
        (
            "200 OK",
            "X-Fc-Error-Type: HandledInvocationError\r\n",
            r#"{"errorType": "E", "errorMessage": "m"}"#,
            "E",
        ),
        (
            "502 Oh",
            "X-Fc-Error-Type: UnhandledInvocationError\r\n",
            "boom",
            "FC.Unknown",
        ),
    ] {
        assert_eq!(
            of(answer(status, headers, body), ResourceFamily::FunctionCompute)
                .await
                .0,
            error,
            "{status} {body}"
        );
    }
    for via in [
        ResourceFamily::Direct,
        ResourceFamily::Map,
        ResourceFamily::MessageService,
    ] {
        assert_eq!(of(answer("429 Slow", "", "{}"), via).await.0, "HTTP.429");
    }
}

#[tokio::test]
async fn retry_after_is_told() {
    let with = |headers: &str| answer("503 Busy", headers, "");
    assert_eq!(of(with("Retry-After: 7\r\n"), ResourceFamily::Direct).await.2, Some(7));
    let dates = "Date: Sun, 06 Nov 1994 08:49:07 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    assert_eq!(of(with(dates), ResourceFamily::Direct).await.2, Some(30));
    assert_eq!(of(with("Retry-After: soon\r\n"), ResourceFamily::Direct).await.2, None);
    let named = answer("429 Slow", "Retry-After: 2\r\n", r#"{"error": "Busy"}"#);
    assert_eq!(
        of(named, ResourceFamily::Direct).await,
        ("Busy".to_owned(), String::new(), Some(2))
    );
}

#[tokio::test]
async fn a_date_without_date_counts_from_the_clock() {
    struct Fixed;
    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp(784_111_770_000)
        }
    }
    let server = Server::start(answer("503 Busy", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "")).await;
    let connector = HttpConnector::new(HttpSettings {
        clock: Some(Arc::new(Fixed)),
        ..HttpSettings::default()
    });
    assert_eq!(failure(connector.call(request(&server.url("/"))).await).2, Some(7));
}

#[tokio::test]
async fn targets_that_are_no_http_urls() {
    for target in [
        "",
        "http://",
        "http://[::1",
        "ftp://x/",
        "file:///etc/passwd",
        "pay",
        "http://a b/",
        "http://x:99999/",
    ] {
        let (error, _, _) = failure(outcome(request(target)).await);
        assert_eq!(error, "FnF.NoSuchResource", "{target}");
    }
}

#[tokio::test]
async fn a_refused_connection_says_so_without_secrets() {
    // Bound, so that no other process gets the port, but not listening.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = nobody.local_addr().unwrap();
    let (error, cause, _) = failure(outcome(request(&format!("http://user:pw@{address}/pay?token=s#f"))).await);
    assert_eq!(error, "HTTP.ConnectionFailed");
    assert_eq!(cause, format!("`http://{address}/pay`: connection refused"));
}

#[tokio::test]
async fn whom_nobody_listens_for_was_not_called() {
    // Bound, so that no other process gets the port, but not listening.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = nobody.local_addr().unwrap();
    let refused = outcome(request(&format!("http://{address}/pay"))).await;
    assert!(
        matches!(&refused, Outcome::NotSent { error, .. } if *error == "HTTP.ConnectionFailed".into()),
        "{refused:?}"
    );
    // A server that accepted the connection may have seen something.
    let server = Server::start(Reply::Then(Vec::new())).await;
    let broken = outcome(request(&server.url("/pay"))).await;
    assert!(matches!(&broken, Outcome::Failed { .. }), "{broken:?}");
}

#[tokio::test]
async fn a_connection_closed_without_an_answer() {
    for (bytes, says) in [
        ("", "closed before there was an answer"),
        ("HTTP/1.1 200", "closed before there was an answer"),
        ("rubbish\r\n\r\n", ""),
        ("SSH-2.0-OpenSSH_9.2\r\n", ""),
    ] {
        let (error, cause, _) = of(Reply::Then(bytes.as_bytes().to_vec()), ResourceFamily::Direct).await;
        assert_eq!(error, "HTTP.ConnectionFailed");
        assert!(cause.contains(says) && !cause.contains("secret"), "{bytes}: {cause}");
    }
}

#[tokio::test]
async fn a_name_without_address() {
    struct Nothing;
    impl Resolver for Nothing {
        fn lookup(&self, host: &str) -> ResolveFuture {
            let known = host == "empty.test";
            Box::pin(async move {
                if known {
                    Ok(Vec::new())
                } else {
                    Err(io::Error::other("name not known"))
                }
            })
        }
    }
    let connector = HttpConnector::new(HttpSettings {
        resolver: Arc::new(Nothing),
        ..HttpSettings::default()
    });
    for (target, expected) in [
        (
            "http://empty.test/f",
            "`http://empty.test/f`: `empty.test` has no address",
        ),
        (
            "http://gone.test/f",
            "`http://gone.test/f`: no address of `gone.test` could be found: name not known",
        ),
    ] {
        let (error, cause, _) = failure(connector.call(request(target)).await);
        assert_eq!((error.as_str(), cause.as_str()), ("HTTP.ConnectionFailed", expected));
    }
}

#[tokio::test]
async fn plain_http_is_no_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
        // The handshake is read, so that closing does not discard the answer.
        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await;
    });
    let (error, cause, _) = failure(outcome(request(&format!("https://{address}/"))).await);
    assert_eq!(error, "HTTP.ConnectionFailed");
    assert!(cause.starts_with(&format!("`https://{address}/`: TLS: ")), "{cause}");
}
