//! Examples on a server that is killed: flow and workers are those of `examples/`, and what they end in and leave behind has to
//! be what their README allows.

use super::PATIENCE;
use super::audit::{SET_ASIDE_AT_KILLS, redrive};
use super::cases::{EXAMPLES, Example, Job, says};
use super::process::{Place, Process};
use crate::campaigns::{Chance, Findings};
use crate::{client, data};
use serde_json::{Value, json};
use starbridge_services::{Kind, Service};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The server is killed at most so long after it was ready, in milliseconds: programs and workers take their time.
const LATEST: u32 = 1_000;
/// How many examples are run in a slice. Which ones, the seed says.
const IN_A_SLICE: usize = 5;
/// The address of an example's functions, as its files have it.
const FUNCTIONS: &str = "127.0.0.1:9000";
/// Where the programs of an example find their server.
const SERVER: &str = "STARBRIDGE_SERVER";
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The programs of an example's workers and functions. They outlive the server.
struct Workers(Vec<Child>);

impl Workers {
    fn start(
        example: &Example,
        program: &Path,
        (server, redis): (&str, &str),
        functions: Option<u16>,
        folder: &Path,
    ) -> Result<Self, String> {
        let mut workers = Self(Vec::new());
        let program = std::path::absolute(program).map_err(|error| error.to_string())?;
        for (name, script) in example.consumers {
            workers.add(Command::new("sh").args([script, name]).env("REDIS_URL", redis), folder)?;
        }
        for script in example.scripts {
            workers.add(Command::new("python3").arg(script).env(SERVER, server), folder)?;
        }
        for script in example.functions {
            let mut command = match script.strip_suffix(".json") {
                Some(_) => answering(script, functions)?,
                None => Command::new("python3"),
            };
            workers.add(command.arg(script).env(SERVER, server), folder)?;
        }
        for (queue, script) in example.workers {
            let mut worker = Command::new(&program);
            worker.args([
                "worker",
                "--queue",
                queue,
                "--concurrency",
                "2",
                "--server",
                server,
                "--",
                "sh",
            ]);
            workers.add(worker.arg(folder.join(script)), folder)?;
        }
        Ok(workers)
    }

    fn add(&mut self, command: &mut Command, folder: &Path) -> Result<(), String> {
        let silent = command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        let child = silent.stderr(Stdio::null()).spawn();
        let told = |error| format!("{}: {error}", command.get_program().display());
        self.0.push(child.map_err(told)?);
        Ok(())
    }
}

/// The program that answers from a file, at that port.
fn answering(file: &str, port: Option<u16>) -> Result<Command, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name("functions");
    if !program.is_file() {
        return Err(format!("{file} needs `{}`: build it first", program.display()));
    }
    let mut command = Command::new(program);
    command.args(["--port", &port.unwrap_or_default().to_string()]);
    Ok(command)
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
        let url = format!("{}/v1/flows/{}/executions", self.server, self.flow(number)?);
        let request = client().post(url).body(body.to_string());
        read(request.send().await).await
    }

    async fn ask(&self, id: &str) -> Result<Option<Value>, String> {
        let url = format!("{}/v1/executions/{id}", self.server);
        read(client().get(url).send().await).await
    }

    /// The name of the flow that a job is of.
    fn flow(&self, number: u64) -> Result<String, String> {
        let flows = self.example.flows;
        let turns = if self.example.by_turns { flows.len() } else { 1 };
        let turn = usize::try_from(number).unwrap_or_default() % turns.max(1);
        name_of(&definition(&self.folder, flows.get(turn).copied().unwrap_or_default())?)
    }

    /// Repairs what is broken, and has the step that asks tried again.
    async fn resolve(&self, id: &str) -> Result<(), String> {
        let broken = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for file in broken.filter(|file| file.file_name().to_string_lossy().starts_with("broken-")) {
            // Somebody else may repair it just now.
            drop(fs::remove_file(file.path()));
        }
        let execution = format!("{}/v1/executions/{id}", self.server);
        let steps = read(client().get(format!("{execution}/steps")).send().await).await?;
        let asks = |row: &&Value| row["status"] == "manual";
        let rows = steps.as_ref().and_then(|steps| steps["items"].as_array());
        if let Some(event) = rows.and_then(|rows| rows.iter().find(asks)?["event"].as_u64()) {
            let url = format!("{execution}/steps/{event}/resolve");
            let answer = client()
                .post(url)
                .body(json!({"action": "retry"}).to_string())
                .send()
                .await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                self.count("steps that asked an operator");
            }
        }
        Ok(())
    }

    /// What people do: they answer whoever asks, and redrive what is set aside because the server was killed.
    async fn help(&self, shown: &Value) {
        if shown["status"] == "Manual"
            && let Some(id) = shown["id"].as_str()
            && let Err(problem) = self.resolve(id).await
        {
            self.problem(id, &problem);
        }
        if let Ok(token) = fs::read_to_string(self.folder.join("token")) {
            let url = format!("{}/v1/callbacks/{}/succeed", self.server, token.trim());
            let body = json!({"output": {"approved": true}}).to_string();
            // A token of an earlier job or life is refused; the next look finds the new one.
            drop(client().post(url).body(body).send().await);
        }
        self.click(shown).await;
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

impl Desk {
    /// Somebody opens the mails and clicks. Links of an earlier payment or question are refused.
    async fn click(&self, shown: &Value) {
        let number = shown["input"]["id"].as_u64().unwrap_or_default();
        for mail in fs::read_dir(self.folder.join("mail")).into_iter().flatten().flatten() {
            let mail = fs::read_to_string(mail.path()).unwrap_or_default();
            let asks = mail.starts_with(&format!("May payment {number} "));
            let link = mail.lines().find_map(|line| line.strip_prefix(says(number)));
            if let Some(link) = link.filter(|_| asks) {
                drop(client().post(link.trim()).send().await);
            }
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
    if let Some(name) = definition.lines().find_map(|line| line.strip_prefix("name: ")) {
        return Ok(name.to_owned());
    }
    let flow: Value = serde_json::from_str(definition).map_err(|error| error.to_string())?;
    Ok(flow["name"].as_str().unwrap_or_default().to_owned())
}

/// Waits until the functions of an example listen.
async fn until_listening(port: u16) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .is_ok()
        {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err("its functions do not listen".to_owned())
}

/// Gives the functions of an example, in this copy of it, a port that is free, and returns it.
fn move_functions(example: &Example, folder: &Path) -> Result<u16, String> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    let programs = example.flows.iter().chain(example.functions);
    for file in programs.chain(&example.config) {
        let moved = definition(folder, file)?
            .replace(FUNCTIONS, &format!("127.0.0.1:{port}"))
            .replace("(\"127.0.0.1\", 9000)", &format!("(\"127.0.0.1\", {port})"));
        fs::write(folder.join(file), moved).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(port)
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

/// The programs that the examples need.
#[derive(Clone, Copy)]
pub(super) struct Programs<'a> {
    pub(super) starbridge: &'a Path,
    pub(super) redis: Option<&'a Path>,
}

/// Runs each example, or the one of that name, while its server is killed so often. `few`: only some, which the seed chooses.
pub(super) async fn run(
    programs: Programs<'_>,
    (kills, few): (u32, bool),
    seed: u64,
    only: Option<&str>,
) -> Result<Findings, String> {
    let mut findings = Findings::default();
    if let Some(name) = only
        && EXAMPLES.iter().all(|example| example.folder != name)
    {
        let known = EXAMPLES.map(|example| example.folder).join(", ");
        return Err(format!("there is no example `{name}` here: there are {known}"));
    }
    let at_once = usize::try_from(seed).unwrap_or_default() % EXAMPLES.len();
    let in_turn = EXAMPLES.iter().cycle().skip(at_once).take(match few && only.is_none() {
        true => IN_A_SLICE,
        false => EXAMPLES.len(),
    });
    let wanted = |example: &&Example| only.is_none_or(|only| example.folder == only);
    for example in in_turn.filter(wanted) {
        match example.tools.iter().find(|tool| !is_there(tool)) {
            Some(tool) => findings.problem(format!("{} needs the program `{tool}`", example.folder)),
            None => findings.add(run_one(example, programs, kills, seed).await?),
        }
    }
    Ok(findings)
}

/// The Redis of an example with consumers.
fn redis_of(example: &Example, program: Option<&Path>) -> Result<Option<Service>, String> {
    if example.consumers.is_empty() {
        return Ok(None);
    }
    let program = program.ok_or_else(|| format!("{} needs a Redis: `--redis` is missing", example.folder))?;
    Service::of_program(Kind::Redis, program, &[]).map(Some)
}

/// What the server of an example is told beside what each is told.
fn sections(example: &Example, folder: &Path, redis: &str) -> Result<String, String> {
    let variables = example.variables;
    let own = example
        .config
        .map(|file| definition(folder, file))
        .transpose()?
        .unwrap_or_default();
    let streams = match redis {
        "" => String::new(),
        url => format!("[redis]\nurl = \"{url}\"\nreply_stream = \"replies\"\n"),
    };
    Ok(format!(
        "[commands]\nfolder = \"{}\"\nvariables = {variables:?}\n[http]\nprivate_addresses = true\n{streams}{own}",
        folder.display()
    ))
}

async fn run_one(example: &'static Example, programs: Programs<'_>, kills: u32, seed: u64) -> Result<Findings, String> {
    let program = programs.starbridge;
    let place_of_all = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = place_of_all.path().join(example.folder);
    let from = data::root().join("examples").join(example.folder);
    copy(&from, &folder).map_err(|error| format!("{}: {error}", from.display()))?;
    let place = Place::new(program, place_of_all.path())?;
    let functions = match example.functions.is_empty() {
        true => None,
        false => Some(move_functions(example, &folder)?),
    };
    let service = redis_of(example, programs.redis)?;
    let redis = service.as_ref().map(Service::url).unwrap_or_default();
    place.configure_with(&sections(example, &folder, &redis)?)?;
    let mut process = Process::start(&place).await?;
    for file in example.flows {
        let definition = definition(&folder, file)?;
        let url = format!("{}/v1/flows/{}", place.url(), name_of(&definition)?);
        read(client().put(url).body(definition).send().await).await?;
    }
    let workers = Workers::start(example, program, (&place.url(), &redis), functions, &folder)?;
    if let Some(port) = functions {
        until_listening(port).await?;
    }
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
