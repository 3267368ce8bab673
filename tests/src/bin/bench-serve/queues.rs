//! Worker queues under load: tasks put in by flows, held and reported in tens by workers over HTTP.

use crate::disk;
use crate::load;
use crate::scenes::{folder, put};
use crate::server::Server;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const LONG: Duration = Duration::from_secs(8);
/// Workers, and tasks each takes at a time.
const WORKERS: usize = 16;
const TOGETHER: usize = 10;

/// Between two measurements of the way to a worker.
const PAUSE: Duration = Duration::from_millis(2);

/// A worker's connection.
struct Worker {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Worker {
    async fn connect(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        let buffer = Vec::with_capacity(16 * 1024);
        Ok(Self { stream, buffer })
    }

    async fn ask(&mut self, request: &[u8]) -> Result<&str, String> {
        self.stream
            .write_all(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = load::answer(&mut self.stream, &mut self.buffer).await?;
        let text = std::str::from_utf8(&self.buffer).map_err(|error| error.to_string())?;
        if status != 200 {
            return Err(format!("answered with {status}: {text}"));
        }
        Ok(text.split_once("\r\n\r\n").map_or("", |(_, body)| body))
    }

    /// Holds tasks and reports them. Answers how many.
    async fn round(&mut self, hold: &[u8]) -> Result<usize, String> {
        let reports: Vec<String> = tokens(self.ask(hold).await?)
            .map(|token| format!("{{\"token\":\"{token}\",\"output\":{{}}}}"))
            .collect();
        if reports.is_empty() {
            return Ok(0);
        }
        let body = format!("{{\"reports\":[{}]}}", reports.join(","));
        let answer = self.ask(&load::post("/v1/callbacks", &body)).await?;
        let taken = answer.matches("\"status\":204").count();
        match taken == reports.len() {
            true => Ok(taken),
            false => Err(format!("a report was refused: {answer}")),
        }
    }
}

/// The tokens in an answer, without reading the rest: the load is to cost little.
fn tokens(answer: &str) -> impl Iterator<Item = &str> {
    let parts = answer.split("{\"token\":\"").skip(1);
    parts.filter_map(|part| part.split('"').next())
}

fn hold(limit: usize, wait: u64) -> Vec<u8> {
    let body = json!({"worker": "bench", "limit": limit, "waitSeconds": wait});
    load::post("/v1/queues/jobs/hold", &body.to_string())
}

fn work() -> Value {
    json!({"type": "task", "name": "work", "resourceArn": "queue:jobs"})
}

async fn server(folder: &tempfile::TempDir) -> Result<Server, String> {
    let server = Server::start(folder.path())?;
    put(&server, "one", json!([work()])).await?;
    let each = json!([{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "n"}, "steps": [work()]}]);
    put(&server, "each", each).await?;
    Ok(server)
}

/// Tasks done in a second: flows put in a hundred each, sixteen workers take and report them in tens.
pub async fn throughput() -> Result<(), String> {
    for (what, flow, input, clients) in [
        (
            "a foreach over 100",
            "each",
            json!({"items": (0..100).collect::<Vec<u32>>()}),
            32,
        ),
        ("flows of one task", "one", json!({"id": 7}), 512),
    ] {
        let folder = folder()?;
        let server = server(&folder).await?;
        let over = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicUsize::new(0));
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            let (over, done, address) = (over.clone(), done.clone(), server.address);
            workers.push(tokio::spawn(async move {
                let mut worker = Worker::connect(address).await?;
                let hold = hold(TOGETHER, 1);
                while !over.load(Ordering::Relaxed) {
                    done.fetch_add(worker.round(&hold).await?, Ordering::Relaxed);
                }
                Ok::<(), String>(())
            }));
        }
        let processor = server.processor();
        let request = load::post(
            &format!("/v1/flows/{flow}/executions?wait=30"),
            &json!({"input": input}).to_string(),
        );
        let begun = Instant::now();
        load::run(server.address, request, clients, LONG, usize::MAX).await?;
        let tasks = done.load(Ordering::Relaxed) as f64;
        let took = begun.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.await.map_err(|error| error.to_string())??;
        }
        println!(
            "queue, {what}: {:.0} tasks/s, {:.3} ms of processor each, {:.0} MB resident, {:.2} KB written a task",
            tasks / took,
            (server.processor() - processor) * 1000.0 / tasks.max(1.0),
            server.memory(),
            server.written() / 1024.0 / tasks.max(1.0),
        );
    }
    Ok(())
}

/// From the start of a flow until a worker that waits has its task, beside a flush of the disk.
pub async fn latency() -> Result<(), String> {
    let folder = folder()?;
    let server = server(&folder).await?;
    let before = disk::flush_every(folder.path(), PAUSE).map_err(|error| error.to_string())?;
    let mut worker = Worker::connect(server.address).await?;
    let mut starter = Worker::connect(server.address).await?;
    let (asking, start) = (hold(1, 20), load::post("/v1/flows/one/executions", "{}"));
    let (mut times, mut after_queued) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        worker
            .stream
            .write_all(&asking)
            .await
            .map_err(|error| error.to_string())?;
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        starter
            .stream
            .write_all(&start)
            .await
            .map_err(|error| error.to_string())?;
        load::answer(&mut starter.stream, &mut starter.buffer).await?;
        let durable = begun.elapsed();
        load::answer(&mut worker.stream, &mut worker.buffer).await?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        after_queued.push((begun.elapsed() - durable).as_secs_f64() * 1000.0);
    }
    let after = disk::flush_every(folder.path(), PAUSE).map_err(|error| error.to_string())?;
    let flush = (before + after).as_secs_f64() * 500.0;
    times.sort_by(f64::total_cmp);
    after_queued.sort_by(f64::total_cmp);
    println!(
        "queue, from the start of a flow to a worker that waits: p50 {:.3} ms, p99 {:.3} ms; from when its task is known to be durable: p50 {:.3} ms; a flush of the disk at that pace {flush:.3} ms: {:.1} and {:.1} times that",
        times[500],
        times[990],
        after_queued[500],
        times[500] / flush,
        after_queued[500] / flush,
    );
    Ok(())
}

/// The cost of a hold with few waiting tasks and with many.
pub async fn depth() -> Result<(), String> {
    let most = std::env::var("TASKS").ok().and_then(|most| most.parse().ok());
    let folder = folder()?;
    let mut server = server(&folder).await?;
    for many in [1_000, most.unwrap_or(1_000_000)] {
        let request = load::post("/v1/flows/one/executions", "{\"input\":{\"id\":7}}");
        let load = load::run(server.address, request, 64, Duration::from_secs(3600), many).await?;
        let filled = server.memory();
        server.kill();
        server = Server::start(folder.path())?;
        let mut worker = Worker::connect(server.address).await?;
        // The first one asks the store.
        let asking = hold(TOGETHER, 1);
        let begun = Instant::now();
        worker.ask(&asking).await?;
        let first = begun.elapsed().as_secs_f64() * 1000.0;
        let mut times = Vec::new();
        for _ in 0..90 {
            let begun = Instant::now();
            if tokens(worker.ask(&asking).await?).count() != TOGETHER {
                return Err("the queue has fewer tasks than it should have".to_owned());
            }
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "queue, {many} more put in ({:.0}/s, {filled:.0} MB resident): ready after {:.2} s, {:.0} MB resident, holding ten p50 {:.2} ms, p99 {:.2} ms, the first after the start {first:.2} ms",
            load.per_second(),
            server.ready.as_secs_f64(),
            server.memory(),
            times[45],
            times[88],
        );
    }
    Ok(())
}
