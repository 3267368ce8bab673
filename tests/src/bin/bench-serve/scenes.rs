//! The measured scenes.

use crate::admission;
use crate::before;
use crate::clearing;
use crate::console;
use crate::database;
use crate::disk;
use crate::growth;
use crate::load::{self, Load};
use crate::notices;
use crate::operating;
use crate::queues;
use crate::server::Server;
use crate::sizes::Sizes;
use crate::snapshot;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const LONG: Duration = Duration::from_secs(8);

/// Runs the scenes of those names, or all.
pub async fn run(wanted: &[String], sizes: Sizes) -> Result<(), String> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted("pass") {
        pass().await?;
    }
    if is_wanted("one") {
        one().await?;
    }
    if is_wanted("http") {
        http().await?;
    }
    if is_wanted("foreach") {
        foreach().await?;
    }
    if is_wanted("timers") {
        timers().await?;
    }
    if is_wanted("history") {
        history().await?;
    }
    if is_wanted("growth") {
        growth().await?;
    }
    if is_wanted("recovery") {
        recovery().await?;
    }
    if is_wanted("queue") {
        queues::throughput().await?;
        queues::latency().await?;
    }
    if is_wanted("depth") {
        queues::depth().await?;
    }
    if is_wanted("notices") {
        notices::throughput().await?;
    }
    if is_wanted("sleepers") {
        sleepers().await?;
    }
    if is_wanted("retention") {
        clearing::all(sizes).await?;
    }
    if is_wanted("admission") {
        admission::all(sizes).await?;
    }
    if is_wanted("after") {
        before::after(sizes).await?;
    }
    if is_wanted("delayed") {
        before::delayed(sizes).await?;
    }
    if is_wanted("redrive") {
        operating::redrive(sizes).await?;
    }
    if is_wanted("bulk") {
        operating::bulk(sizes).await?;
    }
    if is_wanted("snapshot") {
        snapshot::held(sizes).await?;
    }
    let parts = console_parts(is_wanted);
    if !parts.is_empty() {
        console::some(&parts, sizes).await?;
    }
    if is_wanted("why") {
        operating::why(sizes).await?;
    }
    Ok(())
}

/// The wanted parts of the console's scene.
fn console_parts(is_wanted: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let parts = console::PARTS.into_iter();
    parts
        .filter(|part| is_wanted("console") || is_wanted(&format!("console-{part}")))
        .collect()
}

/// A folder on a real disk: beside the program.
pub fn folder() -> Result<TempDir, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = program.parent().map(PathBuf::from).unwrap_or_default();
    TempDir::new_in(beside).map_err(|error| error.to_string())
}

async fn server(folder: &TempDir, name: &str, steps: Value) -> Result<Server, String> {
    let server = Server::start(folder.path())?;
    put(&server, name, steps).await?;
    Ok(server)
}

pub async fn put(server: &Server, name: &str, steps: Value) -> Result<(), String> {
    put_flow(server, name, &json!({"steps": steps})).await
}

/// Puts a flow with those members.
pub async fn put_flow(server: &Server, name: &str, members: &Value) -> Result<(), String> {
    let mut flow = json!({"version": "v1", "type": "flow"});
    for (member, value) in members.as_object().into_iter().flatten() {
        flow[member] = value.clone();
    }
    server
        .ask("PUT", &format!("/v1/flows/{name}"), &flow.to_string())
        .await
        .map(drop)
}

fn ten(step: impl Fn(usize) -> Value) -> Value {
    (0..10).map(step).collect()
}

pub fn passes() -> Value {
    ten(|number| json!({"type": "pass", "name": format!("s{number}")}))
}

fn shown(what: &str, load: &Load, server: &Server, processor: f64, steps: f64) {
    println!(
        "{what}: {:.0}/s, p50 {:.2} ms, p99 {:.2} ms, {:.3} ms of processor each, {:.0} MB resident, {:.2} KB written a step",
        load.per_second(),
        load.within(0.5),
        load.within(0.99),
        (server.processor() - processor) * 1000.0 / load.answers.max(1) as f64,
        server.memory(),
        server.written() / 1024.0 / (load.answers.max(1) as f64 * steps),
    );
    // Over a database it is that which writes.
    if let (Some(before), Some(after)) = (server.before, database::done()) {
        let each = load.answers.max(1) as f64;
        println!(
            "  the database: {:.3} ms of processor each, {:.2} KB of log a step, {:.2} commits each, {:.1} in one commit",
            (after.processor - before.processor) * 1000.0 / each,
            (after.log - before.log) / 1024.0 / (each * steps),
            (after.commits - before.commits) / each,
            each / (after.commits - before.commits).max(1.0),
        );
    }
}

async fn pass() -> Result<(), String> {
    for clients in [1, 16, 64, 256] {
        let folder = folder()?;
        let server = server(&folder, "ten", passes()).await?;
        let request = load::post("/v1/flows/ten/executions?wait=30", "{\"input\":{\"id\":7}}");
        let processor = server.processor();
        let load = load::run(server.address, request, clients, LONG, usize::MAX).await?;
        shown(
            &format!("ten pass steps, {clients} clients"),
            &load,
            &server,
            processor,
            10.0,
        );
        let together = server.before.zip(database::done());
        let together = together.map_or(1.0, |(before, after)| {
            load.answers as f64 / (after.commits - before.commits)
        });
        database::bare(folder.path(), together.round().max(1.0) as usize)?;
    }
    Ok(())
}

async fn one() -> Result<(), String> {
    let folder = folder()?;
    let server = server(&folder, "one", json!([{"type": "pass", "name": "p"}])).await?;
    let before = disk::flush(folder.path()).map_err(|error| error.to_string())?;
    let request = load::post("/v1/flows/one/executions?wait=30", "{}");
    let load = load::run(server.address, request, 1, LONG, usize::MAX).await?;
    let after = disk::flush(folder.path()).map_err(|error| error.to_string())?;
    let flush = (before + after).as_secs_f64() * 500.0;
    println!(
        "one step, one client: p50 {:.3} ms, p99 {:.3} ms; a flush of the disk {flush:.3} ms: {:.1} times that",
        load.within(0.5),
        load.within(0.99),
        load.within(0.5) / flush
    );
    Ok(())
}

async fn http() -> Result<(), String> {
    let function = load::function().await?;
    let target = format!("http://{function}/f");
    for clients in [1, 64, 256] {
        let folder = folder()?;
        let steps = ten(|number| json!({"type": "task", "name": format!("t{number}"), "resourceArn": target}));
        let server = server(&folder, "calls", steps).await?;
        let request = load::post("/v1/flows/calls/executions?wait=30", "{\"input\":{\"id\":7}}");
        let processor = server.processor();
        let load = load::run(server.address, request, clients, LONG, usize::MAX).await?;
        shown(
            &format!("ten HTTP tasks, {clients} clients"),
            &load,
            &server,
            processor,
            10.0,
        );
    }
    Ok(())
}

async fn foreach() -> Result<(), String> {
    let folder = folder()?;
    let steps = json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "p"}]}]);
    let server = server(&folder, "each", steps).await?;
    let items: Vec<usize> = (0..1000).collect();
    let request = load::post(
        "/v1/flows/each/executions?wait=30",
        &json!({"input": {"items": items}}).to_string(),
    );
    let load = load::run(server.address, request, 1, LONG, 200).await?;
    println!(
        "foreach over 1,000 with one pass: p50 {:.2} ms, p99 {:.2} ms",
        load.within(0.5),
        load.within(0.99)
    );
    Ok(())
}

/// Many timers due at one time: how long after it the last execution has ended.
async fn timers() -> Result<(), String> {
    const MANY: usize = 100_000;
    let folder = folder()?;
    let server = server(
        &folder,
        "wake",
        json!([{"type": "wait", "name": "w", "timestamp": "$.at"}]),
    )
    .await?;
    let due = std::time::SystemTime::now() + Duration::from_secs(45);
    let millis = due
        .duration_since(std::time::UNIX_EPOCH)
        .map_err(|error| error.to_string())?
        .as_millis();
    let at = starbridge_flow::time::Timestamp(i64::try_from(millis).unwrap_or(0)).to_string();
    let request = load::post("/v1/flows/wake/executions", &json!({"input": {"at": at}}).to_string());
    let load = load::run(server.address, request, 64, Duration::from_secs(40), MANY).await?;
    let ahead = due.duration_since(std::time::SystemTime::now()).unwrap_or_default();
    println!(
        "{} timers set, {:.1} s before they are due",
        load.answers,
        ahead.as_secs_f64()
    );
    tokio::time::sleep(ahead).await;
    let begun = Instant::now();
    loop {
        let metrics = server.ask("GET", "/metrics", "").await?;
        let ended = metrics
            .lines()
            .find_map(|line| line.strip_prefix("starbridge_executions_ended_total{status=\"Succeeded\"} "))
            .and_then(|count| count.parse::<usize>().ok())
            .unwrap_or(0);
        if ended >= load.answers {
            break;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(format!("only {ended} woke"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!(
        "the last one ended {:.2} s after they were due",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The first page of a long history.
async fn history() -> Result<(), String> {
    let folder = folder()?;
    let steps = json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "p"}]}]);
    let server = server(&folder, "each", steps).await?;
    let items: Vec<usize> = (0..17_000).collect();
    let body = json!({"input": {"items": items}}).to_string();
    let answer = server.ask("POST", "/v1/flows/each/executions?wait=60", &body).await?;
    let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    let id = answer["id"].as_str().unwrap_or_default().to_owned();
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        server
            .ask("GET", &format!("/v1/executions/{id}/history?limit=100"), "")
            .await?;
        times.push(begun.elapsed());
    }
    times.sort();
    let last = server
        .ask("GET", &format!("/v1/executions/{id}/history?limit=1&order=desc"), "")
        .await?;
    let last: Value = serde_json::from_str(&last).map_err(|error| error.to_string())?;
    println!(
        "a history of {} events: its first page in {:.2} ms",
        last["items"][0]["id"],
        times.get(25).copied().unwrap_or_default().as_secs_f64() * 1000.0
    );
    Ok(())
}

/// Reports to an execution with few events and to one with many, in memory and not.
async fn growth() -> Result<(), String> {
    for (hot, place) in [(true, "in memory"), (false, "left to the store")] {
        let folder = folder()?;
        let [few, many] = growth::measure(folder.path(), hot).await?;
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        println!(
            "a report to an execution {place}: {:.2} ms at the median with {} events, {:.2} ms with {}: {:.2} times that",
            millis(few.1),
            few.0,
            millis(many.1),
            many.0,
            millis(many.1) / millis(few.1)
        );
    }
    Ok(())
}

/// The server is killed with many executions in flight: the time until all of them continue.
async fn recovery() -> Result<(), String> {
    const MANY: usize = 10_000;
    let folder = folder()?;
    // A function that never answers keeps them in flight.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let target = format!("http://{}/f", silent.local_addr().map_err(|error| error.to_string())?);
    let server = server(
        &folder,
        "call",
        json!([{"type": "task", "name": "t", "resourceArn": target}]),
    )
    .await?;
    let request = load::post("/v1/flows/call/executions", "{}");
    load::run(server.address, request, 64, Duration::from_secs(60), MANY).await?;
    server.kill();
    let server = Server::start(folder.path())?;
    let begun = Instant::now();
    loop {
        let metrics = server.ask("GET", "/metrics", "").await?;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("starbridge_calls_total "));
        let calls = line.and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        if calls >= MANY {
            break;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            return Err(format!("only {calls} calls were sent again"));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!(
        "killed with {MANY} executions in flight: listening after {:.2} s, the last call sent again after {:.2} s",
        server.ready.as_secs_f64(),
        (server.ready + begun.elapsed()).as_secs_f64()
    );
    Ok(())
}

/// Many executions asleep: memory, start-up, and how long waking one takes.
async fn sleepers() -> Result<(), String> {
    let most = std::env::var("SLEEPERS")
        .ok()
        .and_then(|most| most.parse().ok())
        .unwrap_or(1_000_000);
    let folder = folder()?;
    let steps = json!([{"type": "wait", "name": "w", "duration": 30_000_000}]);
    let mut server = server(&folder, "sleep", steps).await?;
    for many in [1_000, most] {
        let request = load::post("/v1/flows/sleep/executions", "{\"input\":{\"id\":7}}");
        let load = load::run(server.address, request, 64, Duration::from_secs(3600), many).await?;
        println!("{many} put to sleep, {:.0}/s", load.per_second());
        server.kill();
        server = Server::start(folder.path())?;
        let (p50, p99) = wake(&server).await?;
        println!(
            "{many} asleep: ready after {:.2} s, {:.0} MB resident, waking (and stopping) one p50 {p50:.2} ms, p99 {p99:.2} ms, {:.0} MB of store",
            server.ready.as_secs_f64(),
            server.memory(),
            server.size() as f64 / 1e6
        );
    }
    Ok(())
}

/// Stops some of those that sleep, one after the other: each is loaded, decides, and is written.
async fn wake(server: &Server) -> Result<(f64, f64), String> {
    let page = server.ask("GET", "/v1/executions?status=Running&limit=500", "").await?;
    let page: Value = serde_json::from_str(&page).map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    for item in page["items"].as_array().into_iter().flatten() {
        let id = item["id"].as_str().unwrap_or_default();
        let begun = Instant::now();
        server.ask("POST", &format!("/v1/executions/{id}/stop"), "{}").await?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    Ok((at(0.5), at(0.99)))
}
