//! Flows that start flows.

use super::server::{DRAIN_SECONDS, Ground, Server, pause};
use super::{Seen, Try};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "children/depth",
        "a flow that starts itself and waits for it",
        "at most 100 deep, then FnF.LimitExceeded",
        |ground| Box::pin(depth(ground)),
    ),
    Try::slow(
        "children/depth-of-two",
        "two flows that start each other",
        "at most 100 deep, then FnF.LimitExceeded",
        |ground| Box::pin(depth_of_two(ground)),
    ),
    Try::quick(
        "children/stop",
        "SIGTERM while flows that start themselves run",
        "exit 0 within drain + 3 s; the log blames no disk",
        |ground| Box::pin(stopped(ground)),
    ),
];

fn starts(flow: &str) -> Value {
    json!([{"type": "task", "name": "t", "resourceArn": format!("flow:{flow}"), "pattern": "sync"}])
}

async fn how_many(server: &Server) -> usize {
    let mut all = 0;
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/v1/executions?limit=1000{cursor}")).await.json();
        all += page["items"].as_array().map_or(0, Vec::len);
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

async fn ends_at_the_limit(server: &Server, flow: &str) -> Result<Seen, String> {
    let id = server.start(flow, &json!({})).await?;
    let begun = Instant::now();
    let mut count = 0;
    let mut shown = Value::Null;
    while begun.elapsed() < Duration::from_secs(15) && count <= 101 {
        shown = server.get(&format!("/v1/executions/{id}")).await.json();
        count = how_many(server).await;
        if shown["status"] == "Failed" {
            break;
        }
        pause(100).await;
    }
    let held = shown["error"] == "FnF.LimitExceeded" && count <= 101;
    Ok(Seen::new(
        held,
        format!("{} {}, {count} executions", shown["status"], shown["error"]),
    ))
}

async fn depth(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("x", &starts("$self")).await?;
    ends_at_the_limit(&server, "x").await
}

async fn depth_of_two(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("x", &starts("y")).await?;
    server.flow("y", &starts("x")).await?;
    ends_at_the_limit(&server, "x").await
}

async fn stopped(ground: Ground) -> Result<Seen, String> {
    let mut server = ground.server().await?;
    server.flow("x", &starts("$self")).await?;
    let again = json!([{"type": "task", "name": "t", "resourceArn": "flow:$self"}]);
    server.flow("endless", &again).await?;
    for _ in 0..5 {
        server.start("x", &json!({})).await?;
        server.start("endless", &json!({})).await?;
    }
    pause(1_000).await;
    server.signal("TERM")?;
    let begun = Instant::now();
    let ended = server.wait(Duration::from_secs(DRAIN_SECONDS + 15)).await?;
    let took = begun.elapsed();
    let mut wrong = Vec::new();
    if !ended.is_some_and(|status| status.success()) || took > Duration::from_secs(DRAIN_SECONDS + 3) {
        wrong.push(format!("{ended:?} after {} ms", took.as_millis()));
    }
    if server.log().contains("the disk did not answer") {
        wrong.push("the log blames the disk".to_owned());
    }
    Ok(Seen::unless(&wrong, format!("ended after {} ms", took.as_millis())))
}
