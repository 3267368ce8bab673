//! Clients that wait for tasks and for events, in large numbers, and that disconnect.

use super::server::{Ground, Server, Setup, pause};
use super::wire::connect;
use super::{Seen, Try};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "waiters/gone",
        "200 workers ask and go away; then a task comes, and a live one asks",
        "it has the task within 2 s; the queue counts no dead worker",
        |ground| Box::pin(gone(ground)),
    ),
    Try::quick(
        "waiters/gone-before-a-live-one",
        "the same, and the live one has waited behind them",
        "it has the task within 2 s",
        |ground| Box::pin(gone_before(ground)),
    ),
    Try::quick(
        "waiters/names",
        "50 holds of 100 queues each that nobody has",
        "/v1/queues has none of them, /metrics < 200 KB",
        |ground| Box::pin(names(ground)),
    ),
    Try::slow(
        "waiters/followers",
        "500 follow one execution that has an event a second",
        "< 50 MB more, < 100 threads, all see new events, a start within 2 s",
        |ground| Box::pin(followers(ground)),
    ),
    Try::slow(
        "waiters/many-followers",
        "5,000 follow one execution, then it ends",
        "without huge pages ≤ 20 KB more for each; all see its events and its end",
        |ground| Box::pin(many_followers(ground)),
    ),
];

/// Workers whose requests wait. They are gone when this is dropped.
async fn crowd(server: &Server, size: usize) -> Result<Vec<TcpStream>, String> {
    let body = json!({"worker": "gone", "waitSeconds": 60}).to_string();
    let head = server.request("POST", "/v1/queues/j/hold").head(body.len());
    let mut crowd = Vec::new();
    for _ in 0..size {
        let mut stream = connect(server.port()).await.map_err(|error| error.to_string())?;
        let sent = stream.write_all(&[head.as_slice(), body.as_bytes()].concat()).await;
        sent.map_err(|error| error.to_string())?;
        crowd.push(stream);
    }
    match waiting(server, size as u64).await {
        true => Ok(crowd),
        false => Err(format!("the requests of {size} workers do not wait")),
    }
}

/// Whether so many workers wait at the queue before long.
async fn waiting(server: &Server, size: u64) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        let queue = server.get("/v1/queues/j").await.json();
        if queue["workers"].as_u64().unwrap_or(0) == size {
            return true;
        }
        pause(20).await;
    }
    false
}

async fn with_queue(ground: &Ground) -> Result<Server, String> {
    let server = ground.server().await?;
    server.calling("q", "queue:j").await?;
    Ok(server)
}

async fn gone(ground: Ground) -> Result<Seen, String> {
    let server = with_queue(&ground).await?;
    drop(crowd(&server, 200).await?);
    pause(300).await;
    let queue = server.get("/v1/queues/j").await.json();
    let workers = queue["workers"].as_u64().unwrap_or(0);
    server.start("q", &json!({})).await?;
    let begun = Instant::now();
    let held = server.hold("j").await;
    let took = begun.elapsed();
    let text = match &held {
        Ok(_) => format!("held after {} ms, {workers} dead workers counted", took.as_millis()),
        Err(problem) => format!(
            "{problem} after {} ms, {workers} dead workers counted",
            took.as_millis()
        ),
    };
    Ok(Seen::new(
        held.is_ok() && took < Duration::from_secs(2) && workers == 0,
        text,
    ))
}

async fn gone_before(ground: Ground) -> Result<Seen, String> {
    let server = with_queue(&ground).await?;
    let crowd = crowd(&server, 200).await?;
    let request = server.request("POST", "/v1/queues/j/hold");
    let request = request.body(json!({"worker": "live", "waitSeconds": 15}).to_string());
    let port = server.port();
    let live = tokio::spawn(async move { super::wire::send(port, &request).await });
    if !waiting(&server, 201).await {
        return Err("the live worker does not wait beside the others".to_owned());
    }
    drop(crowd);
    pause(300).await;
    let begun = Instant::now();
    server.start("q", &json!({})).await?;
    let answer = live.await.map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    let got = answer.json()["tasks"].as_array().map_or(0, Vec::len);
    Ok(Seen::new(
        got == 1 && took < Duration::from_secs(2),
        format!("{got} task after {} ms", took.as_millis()),
    ))
}

async fn names(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    for hold in 0..50 {
        let queues: Vec<String> = (0..100).map(|number| format!("nobody-{hold}-{number}")).collect();
        let body = json!({"worker": "w", "queues": queues, "waitSeconds": 0});
        server.post("/v1/queues/hold", &body).await.well("a hold")?;
    }
    let listed = server.get("/v1/queues").await.text.matches("nobody-").count();
    let metrics = server.get("/metrics").await.text;
    let counted = metrics.matches("nobody-").count();
    let held = listed == 0 && counted == 0 && metrics.len() < 200_000;
    Ok(Seen::new(
        held,
        format!(
            "{listed} listed, /metrics has {} KB and names {counted}",
            metrics.len() / 1_000
        ),
    ))
}

/// Reads what a follower is sent until the time is over, and answers how much that was.
async fn follow(mut stream: TcpStream, patience: Duration) -> usize {
    let mut all = 0;
    let reading = async {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut part).await {
            all += part[..read].windows(3).filter(|window| window == b"id:").count();
        }
    };
    // It goes on for as long as the execution does.
    drop(tokio::time::timeout(patience, reading).await);
    all
}

/// Reads until a text has come; false, if none comes in time.
async fn reads(stream: &mut TcpStream, text: &str) -> bool {
    let mut all = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut part).await {
            all.extend_from_slice(&part[..read]);
            if all.windows(text.len()).any(|window| window == text.as_bytes()) {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await == Ok(true)
}

/// So many followers that have seen an event, some at a time.
async fn following(port: u16, head: &[u8], many: usize) -> Vec<TcpStream> {
    const TOGETHER: usize = 50;
    let mut streams = Vec::new();
    while streams.len() < many {
        let some = (0..TOGETHER.min(many - streams.len())).map(|_| {
            let head = head.to_vec();
            tokio::spawn(async move {
                let mut stream = connect(port).await.ok()?;
                stream.write_all(&head).await.ok()?;
                reads(&mut stream, "id: ").await.then_some(stream)
            })
        });
        let some: Vec<_> = some.collect();
        let before = streams.len();
        for one in some {
            streams.extend(one.await.ok().flatten());
        }
        if streams.len() == before {
            break;
        }
    }
    streams
}

async fn many_followers(ground: Ground) -> Result<Seen, String> {
    const FOLLOWERS: usize = 5_000;
    let setup = Setup {
        // Huge pages count whole, however little of them is used.
        variables: vec![("MIMALLOC_ALLOW_THP", "0".to_owned())],
        ..Setup::default()
    };
    let server = ground.server_with(setup).await?;
    server
        .flow("f", &json!([{"type": "wait", "name": "w", "duration": 3600}]))
        .await?;
    let id = server.start("f", &json!({})).await?;
    let request = server.request("GET", &format!("/v1/executions/{id}/history"));
    let head = request.header("Accept", "text/event-stream").head(0);
    // Data made for the first follower is not counted for each one.
    drop(following(server.port(), &head, 100).await);
    pause(1_000).await;
    let before = server.memory_kb();
    let mut streams = following(server.port(), &head, FOLLOWERS).await;
    pause(2_000).await;
    let each = server.memory_kb().saturating_sub(before) / FOLLOWERS as u64;
    let follow = streams.len();
    server.post(&format!("/v1/executions/{id}/stop"), &json!({})).await;
    let mut told = 0;
    for stream in &mut streams {
        told += usize::from(reads(stream, "event: end").await);
    }
    let text = format!("{each} KB each, {follow} followed, {told} saw the end");
    Ok(Seen::new(each <= 20 && follow == FOLLOWERS && told == follow, text))
}

async fn followers(ground: Ground) -> Result<Seen, String> {
    const FOLLOWERS: usize = 500;
    let server = ground.server().await?;
    let wait = json!({"type": "wait", "name": "w", "duration": 1});
    let each = json!({
        "type": "foreach", "name": "each", "steps": [wait], "concurrency": 1,
        "iterationMapping": {"collection": "$.items", "item": "x"},
    });
    server.flow("slow", &json!([each])).await?;
    server.flow("other", &json!([{"type": "pass", "name": "a"}])).await?;
    let id = server.start("slow", &json!({"items": vec![0; 100]})).await?;
    let before = server.memory();
    server.forget_peak();
    let request = server.request("GET", &format!("/v1/executions/{id}/history"));
    let head = request.header("Accept", "text/event-stream").head(0);
    let mut following = Vec::new();
    for _ in 0..FOLLOWERS {
        let mut stream = connect(server.port()).await.map_err(|error| error.to_string())?;
        stream.write_all(&head).await.map_err(|error| error.to_string())?;
        following.push(tokio::spawn(follow(stream, Duration::from_secs(12))));
    }
    let events = server.history(&id).await["items"].as_array().map_or(0, Vec::len);
    pause(5_000).await;
    let threads = server.threads();
    let begun = Instant::now();
    let other = server.post("/v1/flows/other/executions", &json!({"input": {}})).await;
    let took = begun.elapsed();
    let mut fewest = usize::MAX;
    for one in following {
        fewest = fewest.min(one.await.unwrap_or(0));
    }
    let grown = server.peak().saturating_sub(before);
    let mut wrong: Vec<String> = Vec::new();
    wrong.extend((grown >= 50).then(|| format!("{grown} MB more")));
    wrong.extend((threads >= 100).then(|| format!("{threads} threads")));
    wrong.extend((fewest <= events).then(|| format!("one follower saw {fewest} events of {events} and more")));
    let late = other.status != 201 || took > Duration::from_secs(2);
    wrong.extend(late.then(|| format!("a start: {} after {} ms", other.status, took.as_millis())));
    Ok(Seen::unless(
        &wrong,
        format!("{grown} MB more, {threads} threads, {fewest} events and more each"),
    ))
}
