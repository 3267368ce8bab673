//! An execution that breaks its owner each time it continues.

use super::evaluation::deep;
use super::peer::{Peer, Reply};
use super::probe::Probe;
use super::server::{Ground, Server, Setup, pause};
use super::{Seen, Try};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "poison/restarts",
        "a step that would take for ever, behind a wait; killed and started again, twice",
        "ready each time; starts of others within 2 s; < 200 MB more; the execution ends, or is stopped",
        |ground| Box::pin(restarts(ground)),
    ),
    Try::quick(
        "poison/stop",
        "the same, stopped while it is at it",
        "the stop answers within 5 s",
        |ground| Box::pin(stop(ground)),
    ),
    Try::slow(
        "poison/all-at-once",
        "40 executions of 1 MiB are admitted together and call a function that does not answer, with room for 4; then a kill",
        "5 calls are out at most, after the next start too; starts of others within 2 s; < 60 MB more",
        |ground| Box::pin(all_at_once(ground)),
    ),
];

/// A flow whose second step is never done, and a harmless one.
async fn poisoned(server: &Server) -> Result<String, String> {
    let steps = json!([
        {"type": "wait", "name": "w", "duration": 1},
        {"type": "pass", "name": "a",
         "outputMappings": [{"target": "r", "source": "$input..k..k..k..k..k..k..k..k"}]},
    ]);
    server.flow("bad", &steps).await?;
    server.flow("other", &json!([{"type": "pass", "name": "a"}])).await?;
    server.start("bad", &deep(95)).await
}

fn over(shown: &Value) -> bool {
    matches!(
        shown["status"].as_str(),
        Some("Failed" | "Succeeded" | "Stopped" | "Broken")
    )
}

async fn restarts(ground: Ground) -> Result<Seen, String> {
    let mut server = ground.server().await?;
    let id = poisoned(&server).await?;
    let mut wrong = Vec::new();
    let mut most = 0;
    pause(1_500).await;
    for round in 1..=2 {
        server.kill();
        server
            .again()
            .await
            .map_err(|problem| format!("round {round}: {problem}"))?;
        let before = server.memory();
        let probe = Probe::starts(&server, "other");
        pause(1_200).await;
        wrong.extend(
            probe
                .finish()
                .await
                .wrong(Duration::from_secs(2))
                .map(|met| format!("round {round}: {met}")),
        );
        most = most.max(server.peak().saturating_sub(before));
    }
    if most >= 200 {
        wrong.push(format!("{most} MB more"));
    }
    let mut shown = server.end_of(&id, Duration::from_secs(2)).await;
    if !over(&shown) {
        let stopped = server.post(&format!("/v1/executions/{id}/stop"), &json!({})).await;
        shown = server.end_of(&id, Duration::from_secs(5)).await;
        if !over(&shown) {
            wrong.push(format!("the stop: {}, then {}", stopped.status, shown["status"]));
        }
    }
    Ok(Seen::unless(
        &wrong,
        format!("{} {}, {most} MB more", shown["status"], shown["error"]),
    ))
}

async fn stop(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let id = poisoned(&server).await?;
    pause(1_500).await;
    let begun = Instant::now();
    let request = server.request("POST", &format!("/v1/executions/{id}/stop")).body("{}");
    let answer = server.send(&request.patience(Duration::from_secs(8))).await;
    let took = begun.elapsed();
    // An execution that has already ended can't be stopped; that answer is valid, too.
    let answered = (200..500).contains(&answer.status) && took < Duration::from_secs(5);
    Ok(Seen::new(
        answered,
        format!("{} after {} ms", answer.status, took.as_millis()),
    ))
}

async fn all_at_once(ground: Ground) -> Result<Seen, String> {
    const MANY: usize = 40;
    const FIT: usize = 5;
    let peer = Peer::start(|_, _| Reply::Later(60_000)).await?;
    let setup = Setup {
        sections: "[runtime]\nowners = 1\nhot_bytes = 4194304\n".to_owned(),
        ..Setup::default()
    };
    let mut server = ground.server_with(setup).await?;
    let flow = json!({"version": "v1", "type": "flow", "concurrency": [{"key": "one", "limit": 1}],
        "steps": [{"type": "task", "name": "call", "resourceArn": peer.url("f"),
            "inputMappings": [{"target": "n", "source": 1}]}]});
    server.put("/v1/flows/large", &flow).await.well("the flow")?;
    server.flow("other", &json!([{"type": "pass", "name": "a"}])).await?;
    let input = json!({"text": "x".repeat(1 << 20)});
    for _ in 0..MANY {
        server.start("large", &input).await?;
    }
    let before = server.memory();
    server.forget_peak();
    let more = json!({"limit": MANY});
    server.put("/v1/keys/large/one", &more).await.well("the limit")?;
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for round in 0..2 {
        let probe = Probe::starts(&server, "other");
        pause(4_000).await;
        wrong.extend(probe.finish().await.wrong(Duration::from_secs(2)));
        let calls = peer.calls().len();
        // After a kill those that were out are sent again.
        if calls > FIT * (round + 1) {
            wrong.push(format!("round {round}: {calls} calls"));
        }
        let grown = server.peak().saturating_sub(before);
        if round == 0 && grown >= 60 {
            wrong.push(format!("{grown} MB more"));
        }
        seen.push(format!("{calls} calls, {grown} MB more"));
        if round == 0 {
            server.kill();
            server.again().await?;
        }
    }
    Ok(Seen::unless(&wrong, seen.join("; ")))
}
