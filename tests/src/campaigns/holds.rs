//! Worker queues over HTTP: worker processes and their server are killed at random. The workers log
//! each action at the moment they do it; at the end, the logs are checked against the promises.

mod check;
mod holder;
mod log;

use super::kills::{Place, Process, wait_for_ends};
use super::{Chance, Findings};
use crate::client;
pub use holder::hold;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How a campaign goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `starbridge`.
    pub program: PathBuf,
    /// How many tasks there are; each is held at least once.
    pub count: u64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The queue.
const QUEUE: &str = "jobs";
/// Seconds of a lease.
const LEASE: u64 = 1;
/// Workers at a time.
const HOLDERS: usize = 6;
/// Tasks of one execution.
const TASKS: u64 = 500;
/// As long as fewer wait, another execution is started.
const WAITING: u64 = 2_000;
/// By then the tasks of an execution stand in their queue.
const SETTLED: Duration = Duration::from_secs(1);
/// A worker is killed after a pause of so many milliseconds, and of so many kills one is the server's, if it has lived for
/// so many times as long as it took to start.
const PAUSE: (u32, u32) = (20, 300);
const SERVER: u32 = 12;
const LIFE: u32 = 5;
/// After the last kill, all must end within this time; before that, within the other.
const PATIENCE: Duration = Duration::from_secs(120);
const LONGEST: Duration = Duration::from_secs(3_600);

/// A worker that ends with the campaign.
struct Holder(Child);

impl Holder {
    fn start(server: &str, folder: &Path, number: u64, seed: u64) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(own)
            .args(["holder", "--server", server, "--seed", &seed.to_string(), "--log"])
            .arg(log::file(folder, number))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        child.map(Self).map_err(|error| error.to_string())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a campaign. An error says why it could not be carried through.
pub async fn run(options: &Options) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = Place::new(&options.program, folder.path())?;
    // There are no functions to be called.
    place.configure(9)?;
    let mut findings = Findings::default();
    let mut process = Process::start(&place).await?;
    put_flow(&place.url()).await?;
    let begun = Instant::now();
    let executions = options.count.div_ceil(TASKS);
    let mut trouble = Trouble {
        place: &place,
        folder: folder.path(),
        chance: Chance::new(options.seed),
        holders: Vec::new(),
        number: 0,
        ready: Instant::now(),
        start_took: Duration::ZERO,
    };
    let mut started = 0;
    let mut last = Instant::now();
    loop {
        trouble.hire()?;
        let waiting = waiting(&place.url()).await;
        if started < executions && waiting.is_some_and(|waiting| waiting < WAITING) {
            start(&place.url(), started).await?;
            started += 1;
            last = Instant::now();
            continue;
        }
        // The last ones are left in peace: each kill costs a lease.
        let few = waiting.is_some_and(|waiting| waiting < TASKS / 10);
        if started == executions && few && last.elapsed() > SETTLED {
            break;
        }
        if begun.elapsed() > LONGEST {
            findings.problem("the queue does not become empty");
            break;
        }
        trouble.make(&mut process, &mut findings).await?;
    }
    wait_for_ends(&place.url(), PATIENCE, &mut findings).await;
    let number = trouble.number;
    drop(trouble);
    findings.count("tasks", executions * TASKS);
    findings.count(
        "milliseconds in all",
        u64::try_from(begun.elapsed().as_millis()).unwrap_or(0),
    );
    ended_well(&place.url(), executions, &mut findings).await?;
    check::check(&log::read(folder.path(), number), executions * TASKS, &mut findings);
    findings.problems.extend(process.stop().await?);
    if !findings.problems.is_empty() {
        let kept = folder.keep();
        findings.problem(format!("the store and the logs are kept in {}", kept.display()));
    }
    Ok(findings)
}

/// Workers that come, and are killed, and a server that is.
struct Trouble<'a> {
    place: &'a Place,
    folder: &'a Path,
    chance: Chance,
    holders: Vec<Holder>,
    /// The number of the next worker.
    number: u64,
    ready: Instant,
    start_took: Duration,
}

impl Trouble<'_> {
    /// There are as many workers as there should be.
    fn hire(&mut self) -> Result<(), String> {
        while self.holders.len() < HOLDERS {
            let seed = self.chance.next();
            self.holders
                .push(Holder::start(&self.place.url(), self.folder, self.number, seed)?);
            self.number += 1;
        }
        Ok(())
    }

    /// After a pause, a process is killed.
    async fn make(&mut self, process: &mut Process, findings: &mut Findings) -> Result<(), String> {
        let pause = u64::from(self.chance.from(PAUSE.0, PAUSE.1));
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if self.chance.below(SERVER) == 0 && self.ready.elapsed() > self.start_took * LIFE {
            let begun = Instant::now();
            process.kill()?;
            *process = Process::start(self.place).await?;
            self.start_took = begun.elapsed();
            self.ready = Instant::now();
            findings.count("servers killed (SIGKILL)", 1);
        } else {
            let which = usize::try_from(self.chance.below(u32::MAX)).unwrap_or(0) % HOLDERS;
            self.holders.swap_remove(which);
            findings.count("workers killed (SIGKILL)", 1);
        }
        Ok(())
    }
}

/// Puts the flow: as many tasks as there are items.
async fn put_flow(server: &str) -> Result<(), String> {
    let task = json!({
        "type": "task", "name": "one", "resourceArn": format!("queue:{QUEUE}"), "heartbeatSeconds": LEASE,
        "retry": [{"errors": ["FnF.HeartbeatTimeout", "Holder.Failed"], "intervalSeconds": 0, "maxAttempts": 1_000_000}],
    });
    let all = json!({
        "type": "foreach", "name": "all", "iterationMapping": {"collection": "$.items", "item": "item"}, "steps": [task],
    });
    let flow = json!({"version": "v1", "type": "flow", "name": "held", "steps": [all]});
    let put = client().put(format!("{server}/v1/flows/held"));
    let put = put.header("content-type", "application/json").body(flow.to_string());
    accepted(put).await.map(drop)
}

/// Starts an execution with its share of tasks.
async fn start(server: &str, number: u64) -> Result<(), String> {
    let items: Vec<u64> = (0..TASKS).collect();
    let body = json!({"name": format!("held-{number}"), "input": {"items": items}});
    let start = client().post(format!("{server}/v1/flows/held/executions"));
    accepted(start.body(body.to_string())).await.map(drop)
}

async fn accepted(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    match status.is_success() {
        true => Ok(serde_json::from_str(&text).unwrap_or_default()),
        false => Err(format!("{status}: {text}")),
    }
}

/// The number of tasks that no worker holds.
async fn waiting(server: &str) -> Option<u64> {
    match accepted(client().get(format!("{server}/v1/queues/{QUEUE}"))).await {
        Ok(queue) => queue["waiting"].as_u64(),
        // Nothing was queued yet.
        Err(problem) => problem.contains("NoSuchQueue").then_some(0),
    }
}

/// All executions have ended as they should.
async fn ended_well(server: &str, executions: u64, findings: &mut Findings) -> Result<(), String> {
    let client = client();
    for number in 0..executions {
        let shown = accepted(client.get(format!("{server}/v1/flows/held/executions/held-{number}"))).await?;
        if shown["status"] != "Succeeded" {
            findings.problem(format!("held-{number} is {}", shown["status"]));
        }
    }
    Ok(())
}
