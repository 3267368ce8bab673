//! Connections that take up room and say nothing.

use super::peer::{Peer, Reply};
use super::probe::Probe;
use super::server::{Ground, Server, Setup, pause};
use super::wire::connect;
use super::{Seen, Try};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// As systemd has it: 1,024 files, of which a process has fewer until it asks.
const FEW_FILES: &str = "ulimit -Sn 256; ulimit -Hn 1024;";
const STRANGERS: usize = 1_100;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "connections/silent",
        "1,100 connections that say nothing, 1,024 files",
        "/healthz within 5 s throughout",
        |ground| Box::pin(silent(ground)),
    ),
    Try::quick(
        "connections/calls",
        "the same while flows call functions",
        "all 40 executions succeed",
        |ground| Box::pin(calls(ground)),
    ),
    Try::quick(
        "connections/limit",
        "a soft limit of 256 files under a hard one of 1,024",
        "raised at the start, and said",
        |ground| Box::pin(limit(ground)),
    ),
    Try::slow(
        "connections/closed",
        "50 each: silent, half a head, half a body, idle after an answer",
        "all closed within 60 s (idle: 120 s), /healthz within 5 s",
        |ground| Box::pin(closed(ground)),
    ),
    Try::slow(
        "connections/trickle",
        "50 heads and 50 bodies, a byte a second",
        "all closed within 75 s",
        |ground| Box::pin(trickle(ground)),
    ),
];

fn few_files() -> Setup {
    Setup {
        before: FEW_FILES,
        tokens: true,
        ..Setup::default()
    }
}

/// Connections that have sent this and nothing more. Connections that the server does not take do
/// not matter.
async fn crowd(server: &Server, size: usize, begun: &[u8]) -> Result<Vec<TcpStream>, String> {
    let mut crowd = Vec::new();
    for number in 0..size {
        let dialled = tokio::time::timeout(Duration::from_millis(500), connect(server.port())).await;
        match dialled {
            Ok(Ok(mut stream)) => {
                // The server may have closed it at once.
                drop(stream.write_all(begun).await);
                crowd.push(stream);
            }
            Ok(Err(error)) if error.raw_os_error() == Some(24) => {
                return Err(format!(
                    "the attacker itself may have only {number} files: raise `ulimit -n`"
                ));
            }
            // Its queue is full, or it closed the door.
            Ok(Err(_)) | Err(_) => break,
        }
    }
    Ok(crowd)
}

async fn silent(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(few_files()).await?;
    let probe = Probe::health(&server);
    let crowd = crowd(&server, STRANGERS, b"").await?;
    probe.answers(10).await;
    let met = probe.finish().await;
    let wrong: Vec<String> = met.wrong(Duration::from_secs(5)).into_iter().collect();
    let text = format!("{} strangers, longest {} ms", crowd.len(), met.longest.as_millis());
    Ok(Seen::unless(&wrong, text))
}

async fn calls(ground: Ground) -> Result<Seen, String> {
    const EXECUTIONS: usize = 40;
    let server = ground.server_with(few_files()).await?;
    let peer = Peer::start(|_, _| Reply::Later(250)).await?;
    let steps: Vec<_> = (0..20)
        .map(|number| json!({"type": "task", "name": format!("t{number}"), "resourceArn": peer.url("f")}))
        .collect();
    server.flow("f", &json!(steps)).await?;
    let mut started = Vec::new();
    for _ in 0..EXECUTIONS {
        started.push(server.start("f", &json!({})).await?);
    }
    let crowd = crowd(&server, STRANGERS, b"").await?;
    pause(5_000).await;
    // The crowd leaves, so that somebody can look.
    drop(crowd);
    let mut wrong = Vec::new();
    for id in &started {
        let ended = server.end_of(id, Duration::from_secs(10)).await;
        if ended["status"] != "Succeeded" {
            wrong.push(format!("{} {} {}", ended["status"], ended["error"], ended["cause"]));
        }
    }
    Ok(Seen::unless(
        &wrong,
        format!("{EXECUTIONS} succeeded, {} calls", peer.calls().len()),
    ))
}

async fn limit(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(few_files()).await?;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid()));
    let limits = limits.map_err(|error| error.to_string())?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap_or_default();
    let soft = line.split_whitespace().nth(3).unwrap_or_default();
    let said = server.log().contains("1024");
    Ok(Seen::new(soft == "1024" && said, format!("{soft} files, said: {said}")))
}

/// How many of the crowd are still open once the time is over, and when the last one closed.
async fn left_of(crowd: Vec<TcpStream>, patience: Duration) -> usize {
    let mut waiting = Vec::new();
    for mut stream in crowd {
        waiting.push(tokio::spawn(async move {
            let mut answer = Vec::new();
            // The last answer does not matter.
            drop(
                tokio::time::timeout(patience, stream.read_to_end(&mut answer))
                    .await
                    .map_err(|_| ()),
            );
            tokio::time::timeout(Duration::from_millis(10), stream.read(&mut [0]))
                .await
                .is_err()
        }));
    }
    let mut open = 0;
    for one in waiting {
        open += usize::from(one.await.unwrap_or(true));
    }
    open
}

async fn closed(ground: Ground) -> Result<Seen, String> {
    const EACH: usize = 50;
    let server = ground.server_with(few_files()).await?;
    let probe = Probe::health(&server);
    let head = b"POST /v1/callbacks/x/succeed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-";
    let body = b"POST /v1/callbacks/x/succeed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{\"output\"";
    let idle = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let minute = Duration::from_secs(60);
    let (silent, head, body, idle) = tokio::join!(
        async { Ok::<_, String>(left_of(crowd(&server, EACH, b"").await?, minute).await) },
        async { Ok::<_, String>(left_of(crowd(&server, EACH, head).await?, minute).await) },
        async { Ok::<_, String>(left_of(crowd(&server, EACH, body).await?, minute).await) },
        async {
            Ok::<_, String>(left_of(crowd(&server, EACH, idle).await?, minute * 2 - Duration::from_secs(15)).await)
        },
    );
    let open = [
        ("silent", silent?),
        ("half-headed", head?),
        ("half-bodied", body?),
        ("idle", idle?),
    ];
    let mut wrong: Vec<String> = open
        .iter()
        .filter(|(_, left)| *left > 0)
        .map(|(kind, left)| format!("{left} of {EACH} {kind} ones are still open"))
        .collect();
    wrong.extend(probe.finish().await.wrong(Duration::from_secs(5)));
    Ok(Seen::unless(&wrong, "all closed"))
}

async fn trickle(ground: Ground) -> Result<Seen, String> {
    const EACH: usize = 50;
    let server = ground.server_with(few_files()).await?;
    let head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ";
    let body = b"POST /v1/callbacks/x/succeed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n";
    let mut all = crowd(&server, EACH, head).await?;
    all.extend(crowd(&server, EACH, body).await?);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(75) && !all.is_empty() {
        let mut open = Vec::new();
        for mut stream in all {
            let mut rest = [0; 512];
            let said = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut rest)).await;
            // The server said nothing and did not close the connection: the client continues.
            if said.is_err() && stream.write_all(b"a").await.is_ok() {
                open.push(stream);
            }
        }
        all = open;
        pause(1_000).await;
    }
    let text = format!(
        "{} of {} open after {} s",
        all.len(),
        2 * EACH,
        begun.elapsed().as_secs()
    );
    Ok(Seen::new(all.is_empty(), text))
}
