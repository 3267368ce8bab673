//! Admission under load: how fast slots are given, how much a long line costs, and how soon an urgent execution has its turn.

use crate::crowd::{Connection, start_all, succeeded, until_in_line, until_status, until_succeeded};
use crate::pace::{KEYS, Paced};
use crate::scenes::{folder, put_flow};
use crate::server::Server;
use crate::sizes::Sizes;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Slots of a key.
const LIMIT: usize = 5;
/// Rounds of the case with few waiters, which would else be too short to be measured.
const ROUNDS: usize = 10;
/// Executions that wait in such a round.
const FEW: usize = 1_000;
/// How long a drain may take.
const MOST: Duration = Duration::from_secs(900);
/// Shards of one cluster.
const SHARDS: usize = 5_000;
const YEAR_SECONDS: u64 = 30_000_000;

pub async fn all(sizes: Sizes) -> Result<(), String> {
    let pace = throughput(sizes).await?;
    urgent(sizes, pace / 2.0).await?;
    two_keys(sizes).await?;
    for keys in [KEYS, sizes.of(100_000, 1_000_000)] {
        standing(sizes, keys).await?;
    }
    Ok(())
}

/// The cost of admitting all waiters.
struct Drain {
    admitted: usize,
    seconds: f64,
    /// Seconds of processor time, of the whole server and of admission.
    processor: f64,
    admission: f64,
}

impl Drain {
    fn per_second(&self) -> f64 {
        self.admitted as f64 / self.seconds
    }

    fn micros(&self, seconds: f64) -> f64 {
        seconds * 1e6 / self.admitted.max(1) as f64
    }
}

fn keyed(flow: &'static str, keys: usize) -> impl Fn(usize) -> Value + Send + Sync + 'static {
    move |at| json!({"flow": flow, "input": {"key": at % keys, "shard": at % SHARDS}})
}

async fn set_limits(server: &Server, pool: &str, keys: &[String], limit: usize) -> Result<(), String> {
    let mut connection = Connection::to(server.address).await?;
    let body = json!({"limit": limit}).to_string();
    for key in keys {
        connection.ask("PUT", &format!("/v1/keys/{pool}/{key}"), &body).await?;
    }
    Ok(())
}

/// Puts executions behind keys that admit none, then lets them run.
async fn drain(server: &Server, flow: &'static str, keys: &[String], waiting: usize) -> Result<Drain, String> {
    set_limits(server, flow, keys, 0).await?;
    let before = succeeded(server).await?;
    start_all(server, waiting, keyed(flow, KEYS)).await?;
    until_in_line(server, waiting).await?;
    // Work in flight at the last answer is not counted.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (processor, admission) = (server.busy(""), server.busy("admission"));
    let begun = Instant::now();
    set_limits(server, flow, keys, LIMIT).await?;
    until_succeeded(server, before + waiting, MOST).await?;
    Ok(Drain {
        admitted: waiting,
        seconds: begun.elapsed().as_secs_f64(),
        processor: server.busy("") - processor,
        admission: server.busy("admission") - admission,
    })
}

/// A flow with one key of each input.
async fn put_keyed(server: &Server) -> Result<Vec<String>, String> {
    let flow =
        json!({"concurrency": [{"key": "k{$input.key}", "limit": LIMIT}], "steps": [{"type": "pass", "name": "p"}]});
    put_flow(server, "keyed", &flow).await?;
    Ok((0..KEYS).map(|key| format!("k{key}")).collect())
}

/// Many behind a hundred keys, beside few. Answers admissions a second.
async fn throughput(sizes: Sizes) -> Result<f64, String> {
    let many = sizes.of(10_000, 100_000);
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    let keys = put_keyed(&server).await?;
    let (mut few, mut setting) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        // The cost of setting the limits alone.
        setting += drain(&server, "keyed", &keys, 0).await?.processor;
        few += drain(&server, "keyed", &keys, FEW).await?.processor;
    }
    let few = (few - setting) / (ROUNDS * FEW) as f64;
    let drain = drain(&server, "keyed", &keys, many).await?;
    let each = (drain.processor - setting / ROUNDS as f64) / many as f64;
    println!(
        "admission, {many} behind {KEYS} keys of limit {LIMIT}: {:.0} admissions/s, {:.0} µs of processor each ({:.0} µs of it admission's), {:.0} µs with {FEW} waiting: {:.2} times that; {:.0} MB resident",
        drain.per_second(),
        each * 1e6,
        drain.micros(drain.admission),
        few * 1e6,
        each / few,
        server.memory(),
    );
    Ok(drain.per_second())
}

/// Executions of priority 9 behind many of priority 5: the time from the free slot to the first
/// call.
async fn urgent(sizes: Sizes, pace: f64) -> Result<(), String> {
    let (many, tries) = (sizes.of(10_000, 100_000), sizes.of(100, 500));
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    let paced = Paced::new(pace).await?;
    let flow = json!({"concurrency": [{"key": "k{$input.key}", "limit": LIMIT}], "steps": [{
        "type": "task", "name": "t", "resourceArn": format!("http://{}/", paced.address), "timeoutSeconds": 3_600,
        "inputMappings": [{"target": "key", "source": "$input.key"}, {"target": "urgent", "source": "$input.urgent"}]}]});
    put_flow(&server, "paced", &flow).await?;
    start_all(
        &server,
        many,
        |at| json!({"flow": "paced", "input": {"key": at % KEYS, "urgent": false}}),
    )
    .await?;
    until_status(&server, "Running", KEYS * LIMIT).await?;
    until_in_line(&server, many - KEYS * LIMIT).await?;
    paced.begin(KEYS * LIMIT).await?;
    let mut connection = Connection::to(server.address).await?;
    let left = many - KEYS * LIMIT;
    // As long as an execution waits behind each key.
    let every = Duration::from_secs_f64(left as f64 * 0.8 / pace / tries as f64);
    let mut next = tokio::time::interval(every);
    for at in 0..tries {
        next.tick().await;
        let body = json!({"priority": 9, "input": {"key": at * 7 % KEYS, "urgent": true}});
        connection
            .ask("POST", "/v1/flows/paced/executions", &body.to_string())
            .await?;
    }
    let done = succeeded(&server).await?;
    let times = paced.urgent(tries).await?;
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    println!(
        "admission, {tries} of priority 9 behind {many} of 5, {pace:.0} slots/s given back ({done} ended meanwhile): from the free slot to the first call p50 {:.1} ms, p99 {:.1} ms",
        at(0.5),
        at(0.99),
    );
    Ok(())
}

/// A key of the cluster, and a second one of the shard.
async fn two_keys(sizes: Sizes) -> Result<(), String> {
    let many = sizes.of(10_000, 100_000);
    let cluster = json!({"key": "cluster", "limit": LIMIT});
    let shard = json!({"key": "shard-{$input.shard}", "limit": 1});
    let mut each = Vec::new();
    for (what, concurrency) in [("one key", json!([cluster])), ("two keys", json!([cluster, shard]))] {
        let folder = folder()?;
        let server = Server::start(folder.path())?;
        let flow = json!({"concurrency": concurrency, "steps": [{"type": "pass", "name": "p"}]});
        put_flow(&server, "shards", &flow).await?;
        let drain = drain(&server, "shards", &["cluster".to_owned()], many).await?;
        let micros = drain.micros(drain.admission);
        println!(
            "admission, {many} with {what}, {LIMIT} at once of {SHARDS} shards: {:.0} admissions/s, {micros:.1} µs of admission's processor each, {:.0} µs of the server's",
            drain.per_second(),
            drain.micros(drain.processor),
        );
        each.push(micros);
    }
    if let [one, two] = each[..] {
        println!("admission, two keys: {:.2} times the processor of one", two / one);
    }
    Ok(())
}

/// Many that wait: memory, and how soon a start is ready.
async fn standing(sizes: Sizes, keys: usize) -> Result<(), String> {
    let many = sizes.of(100_000, 1_000_000);
    let limit = if keys == KEYS { LIMIT } else { 1 };
    let folder = folder()?;
    let server = Server::start(folder.path())?;
    put_standing(&server, limit).await?;
    let pace = start_all(&server, keys * limit + many, keyed("standing", keys)).await?;
    until_in_line(&server, many).await?;
    let filled = server.memory();
    server.kill();
    let server = Server::start(folder.path())?;
    let ready = server.memory();
    let mut connection = Connection::to(server.address).await?;
    let begun = Instant::now();
    connection.ask("GET", "/readyz", "").await?;
    let first = begun.elapsed();
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!(
        "admission, {many} waiting behind {keys} keys (put in at {pace:.0}/s, {filled:.0} MB resident then): killed and started: ready after {:.2} s, first answer {:.1} ms, {ready:.0} MB resident, {:.0} MB two seconds later",
        server.ready.as_secs_f64(),
        first.as_secs_f64() * 1000.0,
        server.memory(),
    );
    Ok(())
}

/// A flow whose executions keep their slot as long as anybody looks.
pub async fn put_standing(server: &Server, limit: usize) -> Result<(), String> {
    let flow = json!({"concurrency": [{"key": "k{$input.key}", "limit": limit}],
        "steps": [{"type": "wait", "name": "w", "duration": YEAR_SECONDS}]});
    put_flow(server, "standing", &flow).await
}
