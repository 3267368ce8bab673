//! Word of changes.

use crate::harness::{Running, asleep};
use reqwest::{Method, Response};
use serde_json::json;

/// A frame: its event, its id and its topics.
#[derive(Debug)]
struct Frame {
    event: String,
    id: String,
    topics: Vec<String>,
}

/// Reads frames of a stream.
struct Frames {
    stream: Response,
    rest: String,
}

impl Frames {
    async fn open(server: &Running, query: &str) -> Self {
        let stream = server.raw(Method::GET, &format!("/v1/stream?{query}"), None).await;
        assert_eq!(stream.status().as_u16(), 200);
        Self {
            stream,
            rest: String::new(),
        }
    }

    async fn next(&mut self) -> Frame {
        loop {
            if let Some((frame, rest)) = self.rest.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.rest = rest;
                if frame != ":" {
                    return read(&frame);
                }
                continue;
            }
            let bytes = self.stream.chunk().await.unwrap().expect("the stream goes on");
            self.rest.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

fn read(frame: &str) -> Frame {
    let field = |name: &str| {
        let found = frame.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} is not in {frame}")).to_owned()
    };
    let data: serde_json::Value = serde_json::from_str(&field("data: ")).unwrap();
    let topics = data["topics"].as_array().unwrap().iter();
    Frame {
        event: field("event: "),
        id: field("id: "),
        topics: topics.map(|topic| topic.as_str().unwrap().to_owned()).collect(),
    }
}

#[tokio::test]
async fn stream_names_what_changed_and_nothing_of_what_it_is() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let begun = server
        .post("/v1/flows/f/executions", json!({"input": {"note": "secret-note"}}))
        .await;
    let id = begun.body["id"].as_str().unwrap().to_owned();
    let mut frames = Frames::open(&server, &format!("topics=execution:{id},executions")).await;
    let first = frames.next().await;
    assert_eq!((first.event.as_str(), first.topics.len()), ("begun", 0));
    server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let frame = frames.next().await;
        assert_eq!(frame.event, "changed");
        heard.extend(frame.topics);
    }
    heard.sort();
    assert_eq!(heard, [format!("execution:{id}"), "executions".to_owned()]);
    assert!(!frames.rest.contains("secret-note"));
}

#[tokio::test]
async fn whoever_comes_back_is_told_what_changed_meanwhile() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap().to_owned();
    let topics = format!("topics=execution:{id},queues");
    let first = Frames::open(&server, &topics).await.next().await;
    server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    // With further topics, too: each has its own place in the id.
    let back = format!("{topics},executions&last={}", first.id);
    let again = Frames::open(&server, &back).await.next().await;
    assert_eq!(again.event, "changed");
    assert_eq!(again.topics, [format!("execution:{id}")]);
    let nothing_new = Frames::open(&server, &format!("{topics}&last={}", again.id))
        .await
        .next()
        .await;
    assert_eq!(nothing_new.event, "begun");
    for foreign in ["0.1-2", "x", "1f.zz"] {
        let frame = Frames::open(&server, &format!("{topics}&last={foreign}"))
            .await
            .next()
            .await;
        assert_eq!(frame.event, "stale", "{foreign}");
    }
}

#[tokio::test]
pub async fn topics_that_are_not_known_or_too_many_are_refused() {
    let server = Running::start().await;
    let many: Vec<String> = (0..65).map(|number| format!("execution:e{number}")).collect();
    for topics in [
        "",
        "odd",
        "execution:",
        &format!("execution:{}", "x".repeat(300)),
        &many.join(","),
    ] {
        let answer = server.get(&format!("/v1/stream?topics={topics}")).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{topics}");
    }
    let unknown = Frames::open(&server, "topics=execution:none").await.next().await;
    assert_eq!(unknown.event, "begun");
}
