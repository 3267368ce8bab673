//! Many who follow one history.

use crate::harness::{Answer, Running, asleep, sent};
use crate::held::Held;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_node::node::FollowerMessage;
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::time::Duration;

/// The numbers of the events in a stream, and whether it ended.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    numbers: Vec<u64>,
    ended: bool,
}

fn told(text: &str) -> Told {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    Told {
        numbers: ids.map(|id| id.parse().unwrap()).collect(),
        ended: text.ends_with("event: end\ndata: {}\n\n"),
    }
}

/// The number of the last event of a flow of ten waits.
const LAST: u64 = 62;

fn flow() -> Value {
    let step = |number| json!({"type": "wait", "name": format!("w{number}"), "duration": 0.2});
    (0..10).map(step).collect()
}

async fn begun(server: &Running, name: &str, steps: Value) -> Text {
    server.flow(name, steps).await;
    let begun = server.post(&format!("/v1/flows/{name}/executions"), json!({})).await;
    Text::from(begun.body["id"].as_str().unwrap())
}

async fn stream(server: &Running, execution: &str, seen: u64) -> Response {
    let path = format!("/v1/executions/{execution}/history");
    let request = server.request(Method::GET, &path).header("accept", "text/event-stream");
    sent(request.header("last-event-id", seen.to_string())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_reads_the_store_once_for_all() {
    const FOLLOWERS: u64 = 2_000;
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| settings.store = kept).await;
    let execution = begun(&server, "f", flow()).await;
    let before = store.read();
    let mut under_way = Vec::new();
    for number in 0..FOLLOWERS {
        let from = EventId(1 + number % 3);
        let mut follower = server.node.follow(&execution, from).await.unwrap();
        under_way.push(tokio::spawn(async move {
            let mut text = String::new();
            loop {
                match follower.next_message().await.unwrap() {
                    FollowerMessage::Events(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                    FollowerMessage::Nothing => {}
                    FollowerMessage::Ended => return (from.0, text),
                }
            }
        }));
    }
    assert_eq!(server.node.followed(), 2_000);
    for one in under_way {
        let (from, text) = tokio::time::timeout(Duration::from_secs(120), one)
            .await
            .unwrap()
            .unwrap();
        let numbers = told(&text).numbers;
        assert_eq!(numbers, (from..=LAST).collect::<Vec<u64>>());
    }
    let reads = store.read() - before;
    assert!(reads < 100, "{reads} reads of {LAST} events for {FOLLOWERS} followers");
    assert_eq!((server.node.followed(), server.node.watchers().len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_again_misses_nothing() {
    let server = Running::start().await;
    let execution = begun(&server, "f", flow()).await;
    let mut under_way = Vec::new();
    for number in 0..50u64 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        // Also events that have not happened yet.
        let seen = number % 13;
        let response = stream(&server, &execution, seen).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        under_way.push((seen, tokio::spawn(response.text())));
    }
    for (seen, text) in under_way {
        let text = text.await.unwrap().unwrap();
        let numbers = (seen + 1..=LAST).collect();
        assert_eq!(told(&text), Told { numbers, ended: true });
    }
    // Long histories come complete, in parts.
    let passes = |number| json!({"type": "pass", "name": format!("p{number}"), "outputMappings": [{"target": "x", "source": "x".repeat(2_000)}]});
    let long = begun(&server, "long", (0..200).map(passes).collect()).await;
    server.get(&format!("/v1/executions/{long}?wait=30")).await;
    let end = server
        .get(&format!("/v1/executions/{long}/history?order=desc&limit=1"))
        .await;
    let last = end.body["items"][0]["id"].as_u64().unwrap();
    let text = stream(&server, &long, 0).await.text().await.unwrap();
    let told = told(&text);
    assert!(told.ended && last > 800 && text.len() > 400_000);
    assert!(told.numbers.into_iter().eq(1..=last));
}

#[tokio::test]
async fn follow_limit() {
    let server = Running::with(Access::default(), |settings| settings.followers = 2).await;
    let execution = begun(&server, "f", asleep()).await;
    let first = stream(&server, &execution, 0).await;
    let _second = stream(&server, &execution, 0).await;
    let refused = stream(&server, &execution, 0).await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let refused = Answer::of(refused).await;
    assert_eq!(refused.code(), (503, "TooManyWaiting"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("`server.followers`"), "{detail}");
    drop(first);
    for _ in 0..500 {
        if server.node.followed() < 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut third = stream(&server, &execution, 0).await;
    assert_eq!(third.status(), 200);
    let text = third.chunk().await.unwrap().unwrap();
    assert_eq!(told(std::str::from_utf8(&text).unwrap()).numbers.first(), Some(&1));
    let none = server.raw(Method::GET, "/v1/executions/none/history", None).await;
    assert_eq!(none.status(), 404);
    assert_eq!(
        stream(&server, "none", 0).await.status(),
        503,
        "places first: asking costs a read"
    );
    drop((third, _second));
    for _ in 0..500 {
        if server.node.followed() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(stream(&server, "none", 0).await.status(), 404);
    assert!(server.node.watchers().is_empty());
}
