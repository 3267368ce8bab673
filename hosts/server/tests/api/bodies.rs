//! Bodies: their senders are known before they are read, and all of them together are limited.

use crate::connections::{head, last_words, post, say};
use crate::harness::{Answer, Running, asleep};
use crate::mailbox::{Mailbox, ended};
use serde_json::json;
use starbridge_server::{Access, BodySettings, Scope, ServerSettings, TokenHash};
use tokio::io::AsyncWriteExt;

/// A server whose bodies may have this many bytes together.
async fn within(in_flight: usize) -> Running {
    let settings = ServerSettings {
        bodies: BodySettings {
            in_flight,
            ..BodySettings::default()
        },
        ..ServerSettings::default()
    };
    let server = Running::serving(settings, |_| {}).await;
    server.flow("f", asleep()).await;
    server
}

#[tokio::test]
async fn body_is_not_read_for_an_invalid_token() {
    let mut access = Access::default();
    access.grant("t", TokenHash::of("t"), vec![Scope::Read]);
    let server = Running::with(access, |_| {}).await;
    for (path, answer) in [
        ("/v1/callbacks/x/succeed", "HTTP/1.1 404"),
        ("/v1/callbacks/65.66/heartbeat", "HTTP/1.1 404"),
        ("/v1/flows/f/executions", "HTTP/1.1 401"),
    ] {
        // Nothing more is sent: the answer does not wait for the rest.
        let said = last_words(say(&server, &post(path, 1_300_000, "{\"output\":")).await).await;
        assert!(said.starts_with(answer) && said.contains("connection: close"), "{said}");
        let expecting = post(path, 1_300_000, "").replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
        let said = last_words(say(&server, &expecting).await).await;
        assert!(said.starts_with(answer), "{said}");
    }
}

#[tokio::test]
async fn body_memory_of_strangers_is_bounded() {
    let server = Running::start().await;
    let before = held();
    let much = "x".repeat(1_200_000);
    let mut strangers = Vec::new();
    for _ in 0..100 {
        let mut stranger = say(&server, &post("/v1/callbacks/x/succeed", 1_300_000, "")).await;
        // They are answered before they are complete.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), stranger.write_all(much.as_bytes())).await;
        strangers.push(stranger);
    }
    let after = held();
    assert!(after.saturating_sub(before) < 60_000, "{before} KB, then {after} KB");
}

/// The memory of this process, in KB.
fn held() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn body_expect_continue_is_answered() {
    let server = Running::start().await;
    let mailbox = Mailbox::open().await;
    server.flow("f", json!([mailbox.ask("ask")])).await;
    server.post("/v1/flows/f/executions", json!({"name": "a"})).await;
    let path = format!("/v1/callbacks/{}/succeed", mailbox.token("a").await);
    let body = r#"{"output":{"n":1}}"#;
    let expecting = post(&path, body.len(), "").replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    let mut stream = say(&server, &expecting).await;
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 100"));
    stream.write_all(body.as_bytes()).await.unwrap();
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 204"));
    assert_eq!(ended(&server, "f", "a").await["output"], json!({"n": 1}));
}

#[tokio::test]
pub async fn bodies_have_a_budget_together() {
    const PATH: &str = "/v1/flows/f/executions";
    let server = within(1024 * 1024).await;
    let (large, larger) = (800_000, 200_000);
    let body = |bytes: usize| format!("{{\"input\":{{}}}}{}", " ".repeat(bytes - 12));
    let mut first = say(&server, &post(PATH, large, &body(large - 1))).await;
    let refused = loop {
        // Until all of the first has arrived, there is room.
        let second = last_words(
            say(
                &server,
                &post(PATH, larger, &body(larger)).replace("host:", "connection: close\r\nhost:"),
            )
            .await,
        )
        .await;
        if !second.starts_with("HTTP/1.1 201") {
            break second;
        }
    };
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("TooManyBodies"),
        "{refused}"
    );
    assert!(refused.contains("retry-after: 1"), "{refused}");
    // Small bodies get through.
    assert_eq!(server.post(PATH, json!({"name": "small"})).await.status, 201);
    first.write_all(b" ").await.unwrap();
    assert!(head(&mut first).await.starts_with("HTTP/1.1 201"));
    let again = say(&server, &post(PATH, larger, &body(larger))).await;
    let mut again = again;
    assert!(head(&mut again).await.starts_with("HTTP/1.1 201"));
    // A single body is accepted with any budget.
    let mut alone = say(&server, &post(PATH, 3_000_000, &body(3_000_000))).await;
    assert!(head(&mut alone).await.starts_with("HTTP/1.1 201"));
}

#[tokio::test]
async fn body_budget_of_strangers_is_a_part() {
    let server = within(1024 * 1024).await;
    // Bodies of unknown senders do not affect others: their connections stay open, and are answered
    // 503 beyond their share.
    let batch = |body: &str| post("/v1/callbacks", 120_000, body);
    let half = " ".repeat(100_000);
    let mut refused = 0;
    let mut open = Vec::new();
    for _ in 0..10 {
        let mut stream = say(&server, &batch(&half)).await;
        let answer = tokio::time::timeout(std::time::Duration::from_millis(500), head(&mut stream)).await;
        match answer {
            Ok(answer) => {
                assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
                refused += 1;
            }
            Err(_) => open.push(stream),
        }
    }
    assert!(open.len() <= 1 && refused >= 9, "{refused} were refused");
    let large = json!({"input": {"a": "x".repeat(300_000)}});
    assert_eq!(server.post("/v1/flows/f/executions", large).await.status, 201);
    drop(open);
    let mut refused = 0;
    while server.post("/v1/callbacks", json!({"reports": []})).await.status != 200 {
        refused += 1;
        assert!(refused < 100);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
pub async fn a_body_of_too_many_small_values_is_refused() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let body = |items: usize| format!("{{\"input\":{{\"a\":[{}0]}}}}", "{\"\":0},".repeat(items));
    let post = |body: String| server.raw(reqwest::Method::POST, "/v1/flows/f/executions", Some(body));
    let refused = Answer::of(post(body(1_000_000)).await).await;
    assert_eq!(refused.code(), (413, "ValueTooLarge"));
    let taken = post(body(100_000)).await;
    assert_eq!(taken.status().as_u16(), 201);
    let wrong = Answer::of(post("[]".to_owned()).await).await;
    let detail = wrong.body["detail"].as_str().unwrap();
    assert_eq!(detail, "the body is no JSON object: expected an object, found an array");
}

#[tokio::test]
async fn body_budget_counts_parsed_values() {
    // A value that is large in memory and is answered only later.
    let server = within(4 * 1024 * 1024).await;
    server
        .flow("w", json!([{"type": "wait", "name": "w", "duration": 3}]))
        .await;
    let large = format!("{{\"input\":{{\"a\":[{}0]}}}}", "{\"\":0},".repeat(30_000));
    let first = server.raw(
        reqwest::Method::POST,
        "/v1/flows/w/executions?wait=20",
        Some(large.clone()),
    );
    let later = async {
        let mut statuses = Vec::new();
        while server
            .node
            .store()
            .counts()
            .unwrap()
            .iter()
            .map(|(_, count)| count)
            .sum::<u64>()
            == 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for _ in 0..5 {
            let second = server.raw(reqwest::Method::POST, "/v1/flows/f/executions", Some(large.clone()));
            statuses.push(second.await.status().as_u16());
        }
        statuses
    };
    let (first, statuses) = tokio::join!(first, later);
    assert_eq!((first.status().as_u16(), statuses), (201, vec![503; 5]));
    // The value of a large body is dropped on another thread, so its room may be free only shortly
    // after the answer.
    let mut refused = 0;
    let again = || server.raw(reqwest::Method::POST, "/v1/flows/f/executions", Some(large.clone()));
    while again().await.status().as_u16() != 201 {
        refused += 1;
        assert!(refused < 100);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
