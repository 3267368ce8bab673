//! What a page from elsewhere may do through a viewer's browser: every route, with everything that
//! a browser sends.

use crate::access::{access, operations};
use crate::document::check_text;
use crate::harness::{Running, asleep};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Header lines of a request.
type Lines = Vec<String>;

/// Malformed hosts, and more than one.
const MALFORMED: &[&[&str]] = &[
    &["Host: [::1].evil.example"],
    &["Host: [localhost"],
    &["Host: [localhost]"],
    &["Host: 127.0.0.1:80@evil.example"],
    &["Host: localhost:http"],
    &["Host: localhost:65536"],
    &["Host: localhost/evil.example"],
    &["Host: localhost evil.example"],
    &["Host: "],
    &["Host: localhost", "Host: localhost"],
    &["Host: localhost", "Host: evil.example"],
];

/// Hosts that are not ours.
const FOREIGN: &[&[&str]] = &[
    &["Host: evil.example"],
    &["Host: evil.example:7878"],
    &["Host: localhost.evil.example"],
    &["Host: 127.0.0.1.evil.example"],
    &["Host: 192.168.1.7:7878"],
    &["Host: [2001:db8::1]"],
];

/// The headers of a browser for a page from elsewhere, in addition to the host.
const CROSS_SITE: &[&[&str]] = &[
    &["Origin: https://evil.example"],
    &["Origin: null"],
    &["Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"],
    &["Sec-Fetch-Site: cross-site"],
    &[
        "Origin: https://evil.example",
        "Sec-Fetch-Site: cross-site",
        "Content-Type: text/plain",
    ],
    &[
        "Origin: https://evil.example",
        "Content-Type: application/x-www-form-urlencoded",
    ],
    &[
        "Origin: https://evil.example",
        "Content-Type: multipart/form-data; boundary=x",
    ],
    &["Origin: https://evil.example", "Cookie: session=1"],
    &["Origin: https://evil.example", "Authorization: Basic YTpi"],
];

/// Sends a request with exactly these lines. Returns status and code.
async fn send(server: &Running, method: &Method, path: &str, lines: &[String], body: &str) -> (u16, String) {
    let address = server.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    for line in lines {
        request.push_str(line);
        request.push_str("\r\n");
    }
    let length = body.len();
    request.push_str(&format!("Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let status = status.unwrap_or_else(|| panic!("no answer: {answer}"));
    check_text(method.as_str(), path, &answer);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let code = body["code"].as_str().unwrap_or_default();
    (status, code.to_owned())
}

fn lines(given: &[&str]) -> Lines {
    given.iter().map(|&line| line.to_owned()).collect()
}

/// These lines with the server's own host.
fn asked(server: &Running, given: &[&str]) -> Lines {
    let host = server.base.strip_prefix("http://").unwrap();
    [vec![format!("Host: {host}")], lines(given)].concat()
}

/// Requests for unknown paths, and with methods that known paths do not have.
fn misses() -> Vec<(Method, String)> {
    let all = [
        (Method::GET, "/"),
        (Method::POST, "/"),
        (Method::GET, "/v1"),
        (Method::GET, "/v1/nowhere"),
        (Method::POST, "/v1/nowhere"),
        (Method::DELETE, "/v1/flows/x/nowhere"),
        (Method::POST, "/v1/callbacks/x/y/z"),
        (Method::POST, "/healthz/x"),
        (Method::POST, "/healthz"),
        (Method::DELETE, "/v1/flows"),
        (Method::OPTIONS, "/v1/flows"),
        (Method::PUT, "/v1/executions/x/stop"),
        (Method::PUT, "/v1/callbacks"),
        (Method::PUT, "/v1/callbacks/x/succeed"),
    ];
    all.map(|(method, path)| (method, path.to_owned())).into()
}

fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether a page that knows the token in the path may send the request.
fn is_report(path: &str) -> bool {
    path.starts_with("/v1/callbacks/")
}

#[tokio::test]
pub async fn no_route_answers_under_another_name() {
    let open = Running::start().await;
    let with_tokens = Running::with(access(), |_| {}).await;
    for (method, path, _) in operations() {
        for host in MALFORMED {
            let expected = (400, "BadRequest".to_owned());
            for server in [&open, &with_tokens] {
                let answer = send(server, &method, &path, &lines(host), "{}").await;
                assert_eq!(answer, expected, "{method} {path} {host:?}");
            }
        }
        for host in FOREIGN {
            let refused = (403, "HostNotAllowed".to_owned());
            let answer = send(&open, &method, &path, &lines(host), "{}").await;
            assert_eq!(answer, refused, "{method} {path} {host:?}");
            // With tokens the name does not matter: a page has none.
            let answer = send(&with_tokens, &method, &path, &lines(host), "{}").await;
            assert_ne!(answer, refused, "{method} {path} {host:?}");
        }
        let answer = send(&open, &method, &path, &[], "{}").await;
        let probe = matches!(path.as_str(), "/healthz" | "/readyz");
        assert_eq!(answer.0 == 403, !probe, "{method} {path} without a host: {answer:?}");
    }
}

#[tokio::test]
async fn cross_site_page_gets_no_answer_for_what_is_not_there() {
    let open = Running::start().await;
    let with_tokens = Running::with(access(), |_| {}).await;
    for (method, path) in misses() {
        for server in [&open, &with_tokens] {
            for host in MALFORMED {
                let answer = send(server, &method, &path, &lines(host), "{}").await;
                assert_eq!(answer, (400, "BadRequest".to_owned()), "{method} {path} {host:?}");
            }
            for given in CROSS_SITE.iter().filter(|_| changes(&method)) {
                let answer = send(server, &method, &path, &asked(server, given), "{}").await;
                assert_eq!(answer, (403, "CrossSite".to_owned()), "{method} {path} {given:?}");
            }
        }
        for host in FOREIGN {
            let answer = send(&open, &method, &path, &lines(host), "{}").await;
            assert_eq!(answer, (403, "HostNotAllowed".to_owned()), "{method} {path} {host:?}");
        }
        let answer = send(&open, &method, &path, &asked(&open, &[]), "{}").await;
        assert!(matches!(answer.0, 404 | 405), "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn cross_site_page_changes_nothing() {
    let refused = (403, "CrossSite".to_owned());
    let open = Running::start().await;
    let with_tokens = Running::with(access(), |_| {}).await;
    for (method, path, _) in operations() {
        for given in CROSS_SITE {
            for server in [&open, &with_tokens] {
                let answer = send(server, &method, &path, &asked(server, given), "{}").await;
                let expected = changes(&method) && !is_report(&path);
                assert_eq!(answer == refused, expected, "{method} {path} {given:?}: {answer:?}");
            }
            if given.iter().any(|line| line.starts_with("Authorization")) {
                continue;
            }
            // Browsers send no bearer tokens by themselves.
            let bearer = [given, &["Authorization: Bearer token-admin"][..]].concat();
            let answer = send(&with_tokens, &method, &path, &asked(&with_tokens, &bearer), "{}").await;
            assert_ne!(answer.0, 403, "{method} {path} {given:?}");
        }
        // No page, and one of ours.
        let own = format!("Origin: {}", open.base);
        for given in [
            &[][..],
            &["Sec-Fetch-Site: none"],
            &[&own, "Sec-Fetch-Site: same-origin"],
        ] {
            let answer = send(&open, &method, &path, &asked(&open, given), "{}").await;
            assert_ne!(answer.0, 403, "{method} {path} {given:?}");
        }
    }
}

#[tokio::test]
pub async fn a_page_from_elsewhere_starts_nothing() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let path = "/v1/flows/f/executions";
    let page = asked(&server, &["Origin: https://evil.example", "Content-Type: text/plain"]);
    let answer = send(&server, &Method::POST, path, &page, r#"{"input":{}}"#).await;
    assert_eq!(answer, (403, "CrossSite".to_owned()));
    assert_eq!(server.get("/v1/executions").await.body["items"], json!([]));
    // The same request from a program.
    let program = asked(&server, &["Content-Type: text/plain"]);
    let answer = send(&server, &Method::POST, path, &program, r#"{"input":{}}"#).await;
    assert_eq!(answer.0, 201);
}
