//! Signals that come by habit.

use super::peer::{Peer, Reply};
use super::server::{DRAIN_SECONDS, Ground, pause};
use super::{Seen, Try};
use serde_json::json;
use std::time::{Duration, Instant};

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "signals/hup",
        "SIGHUP while a call is in flight",
        "the call ends, exit 0",
        |ground| Box::pin(drains(ground, "HUP")),
    ),
    Try::quick(
        "signals/term",
        "SIGTERM while a call is in flight",
        "the call ends, exit 0",
        |ground| Box::pin(drains(ground, "TERM")),
    ),
    Try::slow(
        "signals/int",
        "SIGINT while a call is in flight",
        "the call ends, exit 0",
        |ground| Box::pin(drains(ground, "INT")),
    ),
];

async fn drains(ground: Ground, signal: &str) -> Result<Seen, String> {
    let mut server = ground.server().await?;
    let peer = Peer::start(|_, _| Reply::Later(1_000)).await?;
    server.calling("f", &peer.url("a")).await?;
    let id = server.start("f", &json!({})).await?;
    while peer.calls().is_empty() {
        pause(10).await;
    }
    server.signal(signal)?;
    let begun = Instant::now();
    let ended = server.wait(Duration::from_secs(DRAIN_SECONDS + 10)).await?;
    let took = begun.elapsed();
    let Some(status) = ended else {
        return Ok(Seen::new(false, "it goes on"));
    };
    server.again().await?;
    let shown = server.end_of(&id, Duration::from_secs(5)).await;
    let calls = peer.calls().len();
    let in_time = took < Duration::from_secs(DRAIN_SECONDS + 3);
    let held = status.code() == Some(0) && in_time && shown["status"] == "Succeeded" && calls == 1;
    Ok(Seen::new(
        held,
        format!(
            "{status} after {} ms, {calls} call, then {}",
            took.as_millis(),
            shown["status"]
        ),
    ))
}
