//! Examples on a server that is killed: flow and workers are those of `examples/`, and what they end in and leave behind has to
//! be what their README allows.

use super::PATIENCE;
use super::audit::{SET_ASIDE_AT_KILLS, redrive};
use super::process::{Place, Process};
use crate::campaigns::{Chance, Findings};
use crate::{client, data};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The server is killed at most so long after it was ready, in milliseconds: programs and workers take their time.
const LATEST: u32 = 1_000;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// An example, and what its README allows.
struct Example {
    /// Its folder below `examples/`.
    folder: &'static str,
    /// Its flows; the first one is started.
    flows: &'static [&'static str],
    /// The queues of its workers, with the program of each.
    workers: &'static [(&'static str, &'static str)],
    /// The variables of the environment that its flows set.
    variables: &'static [&'static str],
    /// The programs it can't do without.
    tools: &'static [&'static str],
    /// How many jobs run at once. Those that share a file run alone.
    together: u64,
    /// What a job is started with.
    start: fn(u64) -> Value,
    /// What is wrong with the end of a job. The folder is where its programs ran.
    wrong: fn(&Path, &Job) -> Option<String>,
}

/// A job that has ended.
#[derive(Debug)]
struct Job {
    number: u64,
    shown: Value,
}

impl Job {
    fn status(&self) -> &str {
        self.shown["status"].as_str().unwrap_or_default()
    }
}

const EXAMPLES: [Example; 5] = [
    Example {
        folder: "undo",
        flows: &["flow.json"],
        workers: &[("network", "module.sh"), ("disk", "module.sh"), ("boot", "module.sh")],
        variables: &[],
        tools: &["jq"],
        together: 4,
        start: |number| json!({"input": {"name": format!("job-{number}"), "fail": failing_module(number)}}),
        wrong: undo,
    },
    Example {
        folder: "tasks",
        flows: &["flow.json"],
        workers: &[("jobs", "job.sh")],
        variables: &[],
        tools: &["jq"],
        together: 4,
        // The same key twice: both are one.
        start: |number| json!({"onceKey": format!("{}", number / 2), "input": {"do": format!("job-{}", number / 2)}}),
        wrong: |folder, job| {
            let done = format!("job-{}", job.number / 2);
            succeeded(job, &json!({"done": done})).or_else(|| journal(folder, &[&done]))
        },
    },
    Example {
        folder: "staged",
        flows: &["flow.json"],
        workers: &[("convert", "stage.sh"), ("publish", "stage.sh")],
        variables: &[],
        tools: &["jq"],
        together: 4,
        start: |number| json!({"priority": number % 10, "input": {"file": format!("{number}.avi"), "seconds": 600}}),
        wrong: |folder, job| {
            let stages = ["convert", "publish"].map(|stage| format!("{stage} {}.avi", job.number));
            succeeded(job, &Value::Null).or_else(|| journal(folder, &stages.each_ref().map(String::as_str)))
        },
    },
    Example {
        folder: "durable",
        flows: &["flow.json"],
        workers: &[],
        variables: &[],
        tools: &[],
        // There is one file with the token.
        together: 1,
        start: |number| json!({"input": {"id": number}}),
        wrong: |_, job| succeeded(job, &json!({"reservation": "r-7", "approved": true, "parcel": "s-7"})),
    },
    Example {
        folder: "pipeline",
        flows: &["flow.json", "publish.json"],
        workers: &[],
        variables: &["WORD"],
        tools: &[],
        // There is one folder of texts.
        together: 1,
        start: |_| json!({"input": {"url": "http://texts.example/1", "word": "two"}}),
        wrong: |folder, job| {
            let published = fs::read_to_string(folder.join("texts/published.txt")).unwrap_or_default();
            let wrong = (published != "one\ntwo\nthree\n").then(|| format!("published is {published:?}"));
            succeeded(job, &json!({"published": "published.txt: 3 lines"})).or(wrong)
        },
    },
];

/// Which module is to fail.
fn failing_module(number: u64) -> &'static str {
    ["", "network", "disk", "boot"][(number % 4) as usize]
}

/// Everything is made, or what was made is taken back, or it says what is left.
fn undo(folder: &Path, job: &Job) -> Option<String> {
    let name = format!("job-{}", job.number);
    let made = ["network", "disk", "boot"].into_iter();
    let made: BTreeSet<&str> = made
        .filter(|module| folder.join(format!("made/{module}-{name}")).exists())
        .collect();
    let left = job.shown["rollback"]["left"].as_array();
    let allowed = match (job.status(), failing_module(job.number)) {
        ("Succeeded", "") => made.len() == 3,
        ("Failed", failing) => !failing.is_empty() && job.shown["error"] == "Module.Failed" && made.is_empty(),
        ("RollbackFailed", _) => {
            let left: BTreeSet<&str> = left.into_iter().flatten().filter_map(Value::as_str).collect();
            made.is_subset(&left)
        }
        _ => false,
    };
    (!allowed).then(|| format!("{made:?} are there"))
}

/// A job that has to succeed. An output of null may be any.
fn succeeded(job: &Job, output: &Value) -> Option<String> {
    let right = job.status() == "Succeeded" && (output.is_null() || job.shown["output"] == *output);
    (!right).then(|| "it has to succeed".to_owned())
}

/// Whether a job's programs have written these lines, in this order. A program that was cut off writes its line again.
fn journal(folder: &Path, lines: &[&str]) -> Option<String> {
    let journal = fs::read_to_string(folder.join("journal")).unwrap_or_default();
    let mut rest = journal.lines();
    let missing = lines.iter().find(|wanted| !rest.any(|line| line == **wanted));
    missing.map(|wanted| format!("`{wanted}` does not stand in the journal where it has to"))
}

/// The programs of an example's workers. They outlive the server.
struct Workers(Vec<Child>);

impl Workers {
    fn start(example: &Example, program: &Path, server: &str, folder: &Path) -> Result<Self, String> {
        let mut workers = Self(Vec::new());
        let program = std::path::absolute(program).map_err(|error| error.to_string())?;
        for (queue, script) in example.workers {
            let child = Command::new(&program)
                .args([
                    "worker",
                    "--queue",
                    queue,
                    "--concurrency",
                    "2",
                    "--server",
                    server,
                    "--",
                    "sh",
                ])
                .arg(folder.join(script))
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            workers.0.push(child.map_err(|error| error.to_string())?);
        }
        Ok(workers)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // It may be gone already.
            drop(worker.kill().and_then(|()| worker.wait()));
        }
    }
}

/// What those who start jobs share.
struct Desk {
    example: &'static Example,
    server: String,
    folder: PathBuf,
    next: AtomicU64,
    over: AtomicBool,
    findings: Mutex<Findings>,
}

impl Desk {
    fn count(&self, what: &str) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.count(&format!("{}: {what}", self.example.folder), 1);
    }

    fn problem(&self, job: &str, problem: &str) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.problem(format!("{} {job}: {problem}", self.example.folder));
    }

    /// Starts one job after the other, and sees each to its end.
    async fn work(&self) {
        let mut first = true;
        while first || !self.over.load(Ordering::Relaxed) {
            first = false;
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match self.job(number).await {
                Err(problem) => return self.problem(&format!("job-{number}"), &problem),
                Ok(job) => {
                    self.count(&format!("jobs that end as {}", job.status()));
                    if let Some(problem) = (self.example.wrong)(&self.folder, &job) {
                        self.problem(&format!("job-{number}"), &format!("{problem}: {}", job.shown));
                    }
                }
            }
        }
    }

    async fn job(&self, number: u64) -> Result<Job, String> {
        let begun = Instant::now();
        let mut id: Option<String> = None;
        while begun.elapsed() < PATIENCE {
            let shown = match &id {
                None => self.start(number).await?,
                Some(id) => self.ask(id).await?,
            };
            if let Some(shown) = shown {
                id = shown["id"].as_str().map(str::to_owned);
                match shown["status"].as_str() {
                    Some("Running" | "RollingBack" | "Manual" | "Queued" | "Blocked" | "Delayed") | None => {}
                    Some(_) => return Ok(Job { number, shown }),
                }
                self.help(&shown).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err("it does not come to its end".to_owned())
    }

    /// `None`: the server is not there.
    async fn start(&self, number: u64) -> Result<Option<Value>, String> {
        let mut body = (self.example.start)(number);
        // A key says which one it is; else the name does.
        if body.get("onceKey").is_none() {
            body["name"] = json!(format!("job-{number}"));
        }
        let url = format!("{}/v1/flows/{}/executions", self.server, self.flow()?);
        let request = client().post(url).body(body.to_string());
        read(request.send().await).await
    }

    async fn ask(&self, id: &str) -> Result<Option<Value>, String> {
        let url = format!("{}/v1/executions/{id}", self.server);
        read(client().get(url).send().await).await
    }

    /// The name of the flow that is started.
    fn flow(&self) -> Result<String, String> {
        let first = self.example.flows.first().copied().unwrap_or_default();
        name_of(&definition(&self.folder, first)?)
    }

    /// What people do: they answer whoever asks, and redrive what is set aside because the server was killed.
    async fn help(&self, shown: &Value) {
        if let Ok(token) = fs::read_to_string(self.folder.join("token")) {
            let url = format!("{}/v1/callbacks/{}/succeed", self.server, token.trim());
            let body = json!({"output": {"approved": true}}).to_string();
            // A token of an earlier job or life is refused; the next look finds the new one.
            drop(client().post(url).body(body).send().await);
        }
        let waiting = &shown["waitingFor"];
        let text = waiting["text"].as_str().unwrap_or_default();
        if waiting["reason"] == "broken"
            && text.starts_with(SET_ASIDE_AT_KILLS)
            && let Some(id) = shown["id"].as_str()
            && redrive(&self.server, id).await.is_ok()
        {
            self.count("jobs set aside because of kills, and redriven");
        }
    }
}

/// The answer of a server; `None` if there is none, or the server has no room just now.
async fn read(answer: Result<reqwest::Response, reqwest::Error>) -> Result<Option<Value>, String> {
    let Ok(answer) = answer else { return Ok(None) };
    let status = answer.status();
    let Ok(text) = answer.text().await else { return Ok(None) };
    if status.is_server_error() || status.as_u16() == 429 {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(format!("{status} {text}"));
    }
    serde_json::from_str(&text).map(Some).map_err(|error| error.to_string())
}

fn definition(folder: &Path, file: &str) -> Result<String, String> {
    let path = folder.join(file);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn name_of(definition: &str) -> Result<String, String> {
    let flow: Value = serde_json::from_str(definition).map_err(|error| error.to_string())?;
    Ok(flow["name"].as_str().unwrap_or_default().to_owned())
}

/// Copies a folder with its programs.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(drop)?,
        }
    }
    Ok(())
}

fn is_there(tool: &str) -> bool {
    let ran = Command::new(tool).arg("--version").stdout(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

/// Runs each example, or the one of that name, while its server is killed so often.
pub(super) async fn run(program: &Path, kills: u32, seed: u64, only: Option<&str>) -> Result<Findings, String> {
    let mut findings = Findings::default();
    if let Some(name) = only
        && EXAMPLES.iter().all(|example| example.folder != name)
    {
        let known = EXAMPLES.map(|example| example.folder).join(", ");
        return Err(format!("there is no example `{name}` here: there are {known}"));
    }
    let wanted = |example: &&Example| only.is_none_or(|only| example.folder == only);
    for example in EXAMPLES.iter().filter(wanted) {
        match example.tools.iter().find(|tool| !is_there(tool)) {
            Some(tool) => findings.problem(format!("{} needs the program `{tool}`", example.folder)),
            None => findings.add(run_one(example, program, kills, seed).await?),
        }
    }
    Ok(findings)
}

async fn run_one(example: &'static Example, program: &Path, kills: u32, seed: u64) -> Result<Findings, String> {
    let place_of_all = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = place_of_all.path().join(example.folder);
    let from = data::root().join("examples").join(example.folder);
    copy(&from, &folder).map_err(|error| format!("{}: {error}", from.display()))?;
    let place = Place::new(program, place_of_all.path())?;
    let variables = example.variables;
    place.configure_with(&format!(
        "[commands]\nfolder = \"{}\"\nvariables = {variables:?}\n",
        folder.display()
    ))?;
    let mut process = Process::start(&place).await?;
    for file in example.flows {
        let definition = definition(&folder, file)?;
        let url = format!("{}/v1/flows/{}", place.url(), name_of(&definition)?);
        read(client().put(url).body(definition).send().await).await?;
    }
    let workers = Workers::start(example, program, &place.url(), &folder)?;
    let desk = Arc::new(Desk {
        example,
        server: place.url(),
        folder,
        next: AtomicU64::new(0),
        over: AtomicBool::new(false),
        findings: Mutex::default(),
    });
    let at_work = (0..example.together).map(|_| {
        let desk = Arc::clone(&desk);
        tokio::spawn(async move { desk.work().await })
    });
    let at_work: Vec<_> = at_work.collect();
    let mut chance = Chance::new(seed);
    for _ in 0..kills {
        let after = u64::from(chance.from(1, LATEST));
        tokio::time::sleep(Duration::from_millis(after)).await;
        process.kill()?;
        desk.count("kills of its server");
        process = Process::start(&place).await?;
    }
    desk.over.store(true, Ordering::Relaxed);
    for work in at_work {
        if work.await.is_err() {
            desk.problem("jobs", "whoever starts them panicked");
        }
    }
    drop(workers);
    let stopped = process.stop().await?;
    let mut findings = std::mem::take(&mut *desk.findings.lock().unwrap_or_else(PoisonError::into_inner));
    findings.problems.extend(stopped);
    if !findings.problems.is_empty() {
        let kept = place_of_all.keep();
        findings.problem(format!(
            "the store, the log and the files are kept in {}",
            kept.display()
        ));
    }
    Ok(findings)
}
