//! Answers: large ones that are asked for again and again, and those that nobody takes.

use super::probe::Probe;
use super::server::{Ground, Server, Setup, pause};
use super::wire::{Request, connect_with, send};
use super::{Seen, Try};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(100);
/// How late others may be while somebody asks for large answers.
const LATE: Duration = Duration::from_secs(1);
const OTHERS: &str = "/healthz and starts within 1 s throughout";

pub(super) const TRIES: &[Try] = &[
    Try::quick("answers/numbers", "GET of 1,500,000 numbers", OTHERS, |ground| {
        Box::pin(numbers(ground, Asked::Again))
    }),
    Try::quick(
        "answers/waited",
        "the same by 2 who wait for its end",
        OTHERS,
        |ground| Box::pin(numbers(ground, Asked::Waiting)),
    ),
    Try::quick(
        "answers/repeated",
        "2 repeat a start with 1,500,000 numbers",
        OTHERS,
        |ground| Box::pin(numbers(ground, Asked::Started)),
    ),
    Try::quick(
        "answers/nobody",
        "2 start a flow that is not there with 6 MB",
        OTHERS,
        |ground| Box::pin(numbers(ground, Asked::Nobody)),
    ),
    Try::slow(
        "answers/all",
        "3 each: executions by id and name, histories, states, starts, with 1,500,000 numbers",
        OTHERS,
        |ground| Box::pin(numbers(ground, Asked::All)),
    ),
    Try::slow(
        "answers/untaken",
        "120 ask for 3 MB each and take 64 bytes every 2 s",
        "memory grows by less than 340 MB, small requests within 1 s, all closed within 15 s of their first byte",
        |ground| Box::pin(untaken(ground)),
    ),
];

/// The request that is sent while others look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Again,
    Waiting,
    Started,
    Nobody,
    All,
}

/// A flow that sleeps, whatever its input: the step itself has none of it.
fn asleep() -> Value {
    json!([{"type": "wait", "name": "w", "duration": 500, "inputMappings": [{"target": "n", "source": 1}]}])
}

fn zeros(count: usize) -> String {
    format!("[{}0]", "0,".repeat(count - 1))
}

impl Asked {
    fn requests(self, server: &Server, id: &str, start: &str) -> Vec<Request> {
        let get = |path: &str| server.request("GET", path);
        let post = |path: &str, body: &str| server.request("POST", path).body(body);
        let one = format!("/v1/executions/{id}");
        match self {
            Self::Again => vec![get(&one), server.request("HEAD", &one)],
            Self::Waiting => vec![get(&format!("{one}?wait=1")); 2],
            Self::Started => vec![post("/v1/flows/f/executions", start); 2],
            Self::Nobody => {
                let body = format!("{{\"input\":{{\"a\":{}}}}}", zeros(3_000_000));
                vec![post("/v1/flows/nobody/executions", &body); 2]
            }
            Self::All => {
                let of_it = |part: &str| get(&format!("{one}{part}"));
                let all = [
                    of_it(""),
                    get("/v1/flows/f/executions/big"),
                    of_it("/history"),
                    of_it("/state"),
                    post("/v1/flows/f/executions", start),
                ];
                all.iter().flat_map(|request| vec![request.clone(); 3]).collect()
            }
        }
    }
}

async fn numbers(ground: Ground, asked: Asked) -> Result<Seen, String> {
    let server = ground.server_with(Setup::default()).await?;
    server.flow("f", &asleep()).await?;
    let start = format!("{{\"name\":\"big\",\"input\":{{\"a\":{}}}}}", zeros(1_500_000));
    let request = server.request("POST", "/v1/flows/f/executions").body(start.clone());
    let begun = server.send(&request.patience(PATIENCE)).await;
    begun.well("the start")?;
    let id = begun.json()["id"].as_str().unwrap_or_default().to_owned();
    let (health, starts) = (Probe::health(&server), Probe::starts(&server, "f"));
    health.answers(1).await;
    starts.answers(1).await;
    let mut under_way = Vec::new();
    for request in asked.requests(&server, &id, &start) {
        let (port, request) = (server.port(), request.patience(PATIENCE));
        under_way.push(tokio::spawn(async move { send(port, &request).await }));
    }
    let mut wrong = Vec::new();
    for answer in under_way {
        let answer = answer.await.map_err(|error| error.to_string())?;
        if !matches!(answer.status, 200 | 404 | 413 | 503) {
            wrong.push(format!("{} {}", answer.status, answer.text.len()));
        }
    }
    let mut text = String::new();
    for (who, probe) in [("health", health), ("starts", starts)] {
        let met = probe.finish().await;
        wrong.extend(met.wrong(LATE).map(|why| format!("{who}: {why}")));
        text = format!("{text}{who} {} ms ", met.longest.as_millis());
    }
    Ok(Seen::unless(&wrong, text.trim_end()))
}

/// Takes 64 bytes every 2 s until the connection is closed. Whether it was in time, counted from its first byte: before, it waits
/// for its turn among those who read much.
async fn trickle(mut stream: TcpStream, patience: Duration) -> bool {
    let mut scratch = [0; 64];
    if !matches!(stream.read(&mut scratch).await, Ok(1..)) {
        return true;
    }
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if !matches!(stream.read(&mut scratch).await, Ok(1..)) {
            return true;
        }
        pause(2_000).await;
        // Data in the system's buffers would still be read long after the server is gone.
        if stream.write_all(b"\r\n").await.is_err() {
            return true;
        }
    }
    false
}

async fn untaken(ground: Ground) -> Result<Seen, String> {
    const CLIENTS: usize = 120;
    let setup = Setup {
        // An answer that fits into the system's buffers is written at once: then the connection
        // waits for its next request.
        server: "write_seconds = 3\nhead_seconds = 3\nidle_seconds = 3",
        ..Setup::default()
    };
    let server = ground.server_with(setup).await?;
    server.flow("f", &asleep()).await?;
    let id = server.start("f", &json!({"a": "x".repeat(3_000_000)})).await?;
    let before = server.memory();
    server.forget_peak();
    let (health, starts) = (Probe::health(&server), Probe::starts(&server, "f"));
    let head = server.request("GET", &format!("/v1/executions/{id}/state")).head(0);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = connect_with(server.port(), 4096)
            .await
            .map_err(|error| error.to_string())?;
        stream.write_all(&head).await.map_err(|error| error.to_string())?;
        clients.push(tokio::spawn(trickle(stream, Duration::from_secs(15))));
    }
    let mut open = 0;
    for client in clients {
        open += usize::from(!client.await.map_err(|error| error.to_string())?);
    }
    let grown = server.peak().saturating_sub(before);
    let mut wrong = Vec::new();
    if grown >= 340 {
        wrong.push(format!("{grown} MB more"));
    }
    if open > 0 {
        wrong.push(format!("{open} are still open"));
    }
    for probe in [health, starts] {
        wrong.extend(probe.finish().await.wrong(LATE));
    }
    Ok(Seen::unless(&wrong, format!("{grown} MB more, none open")))
}
