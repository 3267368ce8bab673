//! Retention of 0 seconds beside starts: whether what is kept grows, and what it costs those who start.
//!
//! No setting says 0 seconds, so the server is this program itself: what `serve` does, and retention when it is asked for.

use crate::crowd::{start_all, until_succeeded};
use crate::load;
use crate::scenes::{LONG, folder, passes, put};
use crate::server::Server;
use crate::sizes::Sizes;
use serde_json::json;
use starbridge_node::config::Config;
use starbridge_node::node::Node;
use starbridge_node::stores::open_to_serve;
use starbridge_server::{Server as Http, ServerSettings};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The word that makes this program a server.
pub const SERVE: &str = "serve-clearing";
/// Set where that server clears.
const CLEARS: &str = "BENCH_CLEARS";
/// Rounds: what is compared is measured in turns.
const ROUNDS: usize = 3;
/// How often it is asked how many executions are kept.
const LOOK: Duration = Duration::from_millis(100);

/// Serves the store until it is killed.
pub async fn serve(store: &Path) -> Result<(), String> {
    let mut config = Config::default();
    config.http.private_addresses = true;
    let opened = open_to_serve(store, false)?;
    let settings = config.node(opened.store)?;
    let http = Http::bind(([127, 0, 0, 1], 0).into(), ServerSettings::default()).await;
    let http = http.map_err(|error| error.to_string())?;
    let address = http.address().map_err(|error| error.to_string())?;
    let node = tokio::task::block_in_place(|| Node::start(settings)).map_err(|error| error.to_string())?;
    let node = Arc::new(node);
    if std::env::var_os(CLEARS).is_some() {
        tokio::spawn(node.clone().clear_periodically(0));
    }
    eprintln!("listening on http://{address}");
    let (_end, ended) = tokio::sync::oneshot::channel();
    http.run(node, ended).await;
    Ok(())
}

/// The results of a round.
struct Round {
    started: f64,
    cleared: f64,
    /// The most that were kept in the first and in the second half.
    kept: [usize; 2],
}

pub async fn all(sizes: Sizes) -> Result<(), String> {
    let many = sizes.of(60_000, 200_000);
    let mut shares = [Vec::new(), Vec::new()];
    for round in 1..=ROUNDS {
        let without = crowd(many, false).await?;
        let with = crowd(many, true).await?;
        let share = with.started / without.started;
        println!(
            "retention, round {round}, starts by the thousand of flows of ten pass steps: {:.0}/s ended without, {:.0}/s with retention of 0 s ({:.2}), which cleared {:.0}/s; kept at most {} in the first half, {} in the second",
            without.started, with.started, share, with.cleared, with.kept[0], with.kept[1]
        );
        shares[0].push(share);
        let (without, _) = single(false).await?;
        let (with, kept) = single(true).await?;
        println!(
            "retention, round {round}, ten pass steps, 64 clients: {:.0}/s, p99 {:.1} ms without, {:.0}/s, p99 {:.1} ms with it ({:.2}); kept at most {} in the first half, {} in the second",
            without.per_second(),
            without.within(0.99),
            with.per_second(),
            with.within(0.99),
            with.per_second() / without.per_second(),
            kept[0],
            kept[1]
        );
        shares[1].push(with.per_second() / without.per_second());
    }
    for (what, mut shares) in ["starts by the thousand", "64 clients"].into_iter().zip(shares) {
        shares.sort_by(f64::total_cmp);
        let median = shares.get(ROUNDS / 2).copied().unwrap_or_default();
        println!("retention, {what}: median {median:.2} of the pace without (goal 0.95)");
    }
    Ok(())
}

fn start(folder: &Path, clears: bool) -> Result<Server, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let arguments = vec![SERVE.into(), folder.join("bench.db").into_os_string()];
    let settings: &[(&str, &str)] = if clears { &[(CLEARS, "1")] } else { &[] };
    Server::start_program(&program, &arguments, folder, settings)
}

/// Executions started by the thousand, until all have ended.
async fn crowd(many: usize, clears: bool) -> Result<Round, String> {
    let folder = folder()?;
    let server = start(folder.path(), clears)?;
    put(&server, "ten", passes()).await?;
    let watch = Kept::watch(&server);
    let begun = Instant::now();
    start_all(&server, many, |_| json!({"flow": "ten", "input": {"id": 7}})).await?;
    until_succeeded(&server, many, Duration::from_secs(300)).await?;
    let took = begun.elapsed().as_secs_f64();
    let left = kept(&server).await?;
    Ok(Round {
        started: many as f64 / took,
        cleared: many.saturating_sub(left) as f64 / took,
        kept: watch.halves(),
    })
}

/// Executions that are started one by one and waited for.
async fn single(clears: bool) -> Result<(load::Load, [usize; 2]), String> {
    let folder = folder()?;
    let server = start(folder.path(), clears)?;
    put(&server, "ten", passes()).await?;
    let watch = Kept::watch(&server);
    let request = load::post("/v1/flows/ten/executions?wait=30", "{\"input\":{\"id\":7}}");
    let load = load::run(server.address, request, 64, LONG, usize::MAX).await?;
    Ok((load, watch.halves()))
}

/// How many executions are kept that have ended.
async fn kept(server: &Server) -> Result<usize, String> {
    Ok(ended(&server.ask("GET", "/metrics", "").await?))
}

fn ended(metrics: &str) -> usize {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("starbridge_executions{status=\"Succeeded\"} "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Asks how many are kept as long as it is there.
struct Kept {
    seen: Arc<std::sync::Mutex<Vec<usize>>>,
    over: Arc<AtomicBool>,
}

impl Kept {
    fn watch(server: &Server) -> Self {
        let this = Self {
            seen: Arc::default(),
            over: Arc::default(),
        };
        let (seen, over) = (this.seen.clone(), this.over.clone());
        let address = server.address;
        tokio::spawn(async move {
            let Ok(mut connection) = crate::crowd::Connection::to(address).await else {
                return;
            };
            while !over.load(Ordering::Relaxed) {
                let Ok(metrics) = connection.ask("GET", "/metrics", "").await else {
                    return;
                };
                if let Ok(mut seen) = seen.lock() {
                    seen.push(ended(&metrics));
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        this
    }

    /// The most that was seen in each half.
    fn halves(&self) -> [usize; 2] {
        self.over.store(true, Ordering::Relaxed);
        let seen = self.seen.lock().map(|seen| seen.clone()).unwrap_or_default();
        let (first, second) = seen.split_at(seen.len() / 2);
        [first, second].map(|half| half.iter().max().copied().unwrap_or(0))
    }
}
