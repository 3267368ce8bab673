//! The server that is attacked: its process, its files, and what the system says of it.

use super::wire::{self, Answer, Request};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The token that servers with tokens know, with all scopes, and its hash.
pub(super) const TOKEN: &str = "attack-every-scope";
const TOKEN_SHA256: &str = "85ff7b77bbf7db9d91081a2d522da1995b5d4781ff22d62af799b2a5f2c96482";
/// A secret that must never appear, and its name.
pub(super) const CANARY: &str = "sk-canary-51d8c07be2f94a36";
/// A part of it that stands nowhere else.
const TRACE: &str = "51d8c07be2";
/// A server must be ready within this time.
const READY: Duration = Duration::from_secs(20);
/// Seconds that calls in flight are given when it is told to stop.
pub(super) const DRAIN_SECONDS: u64 = 2;
/// KiB of address space, so that a try that goes wrong does not take the machine with it.
const ADDRESSES: u64 = 5 << 20;

/// The place of one try.
pub(super) struct Ground {
    program: PathBuf,
    folder: tempfile::TempDir,
}

/// How a server is to be.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// More lines of `[server]`.
    pub(super) server: &'static str,
    /// More sections.
    pub(super) sections: String,
    /// Variables.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Said by the shell before the server begins.
    pub(super) before: &'static str,
    /// Whether it runs as a user without rights, where this program may choose.
    pub(super) as_nobody: bool,
    /// Whether it has a token.
    pub(super) tokens: bool,
    /// Whether its flows may call the loopback.
    pub(super) private: bool,
    /// The level of its log.
    pub(super) log: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            server: "",
            sections: String::new(),
            variables: Vec::new(),
            before: "",
            as_nobody: false,
            tokens: false,
            private: true,
            log: "info",
        }
    }
}

impl Ground {
    pub(super) fn new(program: &Path) -> Result<Self, String> {
        if !program.is_file() {
            return Err(format!("there is no program {}", program.display()));
        }
        Ok(Self {
            program: program.to_path_buf(),
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// A server as it comes.
    pub(super) async fn server(&self) -> Result<Server, String> {
        self.server_with(Setup::default()).await
    }

    /// A server, once it is ready.
    pub(super) async fn server_with(&self, setup: Setup) -> Result<Server, String> {
        let mut server = self.begin(&setup, "x")?;
        server.until_ready().await?;
        Ok(server)
    }

    /// Begins a server on the store `NAME.db`, ready or not.
    pub(super) fn begin(&self, setup: &Setup, name: &str) -> Result<Server, String> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        let database = self.path(&format!("{name}.db"));
        let mut server = Server {
            port,
            token: setup.tokens.then_some(TOKEN),
            database,
            log: self.path(&format!("{name}.{port}.log")),
            config: self.path(&format!("{name}.{port}.toml")),
            program: self.program.clone(),
            setup: setup.clone(),
            child: None,
        };
        server.configure()?;
        server.spawn()?;
        Ok(server)
    }
}

/// A server, over its lives.
pub(super) struct Server {
    port: u16,
    token: Option<&'static str>,
    database: PathBuf,
    log: PathBuf,
    config: PathBuf,
    program: PathBuf,
    setup: Setup,
    child: Option<Child>,
}

impl Server {
    fn configure(&self) -> Result<(), String> {
        let Setup {
            server,
            sections,
            private,
            log,
            ..
        } = &self.setup;
        let tokens = format!(
            "[[tokens]]\nname = \"all\"\nsha256 = \"{TOKEN_SHA256}\"\n\
             scopes = [\"read\", \"start\", \"worker\", \"operate\", \"admin\"]\n"
        );
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\ndrain_seconds = {DRAIN_SECONDS}\n{server}\n\
             [store]\npath = \"{}\"\n[http]\nprivate_addresses = {private}\n[log]\nlevel = \"{log}\"\n\
             {sections}\n{}",
            self.port,
            self.database.display(),
            if self.setup.tokens { tokens.as_str() } else { "" },
        );
        std::fs::write(&self.config, text).map_err(|error| error.to_string())
    }

    /// Starts the process; the shell sets its limits and becomes it.
    fn spawn(&mut self) -> Result<(), String> {
        let problem = |error: std::io::Error| error.to_string();
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let becomes = if self.setup.as_nobody {
            become_nobody(&self.config)?
        } else {
            ""
        };
        let before = self.setup.before;
        let script = format!("ulimit -v {ADDRESSES}; {before}\nexec {becomes} \"$0\" serve --config \"$1\"");
        let child = Command::new("sh")
            .args(["-c", &script])
            .arg(&self.program)
            .arg(&self.config)
            .envs(self.setup.variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.map_err(problem)?)
            .spawn();
        self.child = Some(child.map_err(problem)?);
        Ok(())
    }

    /// Waits until it is ready; an error has its last words.
    pub(super) async fn until_ready(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < READY {
            if self.get("/readyz").await.status == 200 {
                return Ok(());
            }
            if let Some(status) = self.ended()? {
                return Err(format!("the server did not start: {status}: {}", self.last_words()));
            }
            pause(20).await;
        }
        Err(format!("the server was not ready in time: {}", self.last_words()))
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// A file of the store, by what follows its name.
    pub(super) fn file(&self, suffix: &str) -> PathBuf {
        let mut name = self.database.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    }

    pub(super) fn log(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    pub(super) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().rev().take(2).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        let child = self.child.as_mut().ok_or("the server was never started")?;
        child.try_wait().map_err(|error| error.to_string())
    }

    /// How it ended, if it does in time.
    pub(super) async fn wait(&mut self, patience: Duration) -> Result<Option<ExitStatus>, String> {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            pause(20).await;
        }
        Ok(None)
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // It may be gone already.
            drop(child.kill().and_then(|()| child.wait()));
        }
    }

    /// Any other signal, by its name.
    pub(super) fn signal(&self, name: &str) -> Result<(), String> {
        let sent = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        sent.map(drop).map_err(|error| error.to_string())
    }

    /// Starts it again after its end, over the same files.
    pub(super) async fn again(&mut self) -> Result<(), String> {
        self.spawn()?;
        self.until_ready().await
    }

    fn status_of(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Its memory, in MB.
    pub(super) fn memory(&self) -> u64 {
        self.memory_kb() >> 10
    }

    /// Its memory, in KB.
    pub(super) fn memory_kb(&self) -> u64 {
        self.status_of("VmRSS")
    }

    /// Forgets the most memory it had so far.
    pub(super) fn forget_peak(&self) {
        // If the system refuses, the peak counts from the start.
        drop(std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5"));
    }

    /// The most memory it had, in MB.
    pub(super) fn peak(&self) -> u64 {
        self.status_of("VmHWM") >> 10
    }

    pub(super) fn threads(&self) -> u64 {
        self.status_of("Threads")
    }

    /// A request with what every request has.
    pub(super) fn request(&self, method: &str, path: &str) -> Request {
        let request = Request::new(method, path, self.port);
        match self.token {
            Some(token) => request.header("Authorization", &format!("Bearer {token}")),
            None => request,
        }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        wire::send(self.port, &self.request("GET", path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&self.request("POST", path).body(body.to_string())).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(&self.request("PUT", path).body(body.to_string())).await
    }

    pub(super) async fn send(&self, request: &Request) -> Answer {
        wire::send(self.port, request).await
    }

    /// Puts a flow of these steps.
    pub(super) async fn flow(&self, name: &str, steps: &Value) -> Result<(), String> {
        let definition = json!({"version": "v1", "type": "flow", "steps": steps});
        let answer = self.put(&format!("/v1/flows/{name}"), &definition).await;
        answer.well(&format!("the flow `{name}`"))
    }

    /// Puts a flow of one task that calls this.
    pub(super) async fn calling(&self, name: &str, url: &str) -> Result<(), String> {
        let task = json!({"type": "task", "name": "a", "resourceArn": url});
        self.flow(name, &json!([task])).await
    }

    /// Starts an execution and answers its id.
    pub(super) async fn start(&self, flow: &str, input: &Value) -> Result<String, String> {
        let answer = self
            .post(&format!("/v1/flows/{flow}/executions"), &json!({"input": input}))
            .await;
        answer.well(&format!("a start of `{flow}`"))?;
        Ok(answer.json()["id"].as_str().unwrap_or_default().to_owned())
    }

    /// The execution as it is shown, once it has ended or the time is over.
    pub(super) async fn end_of(&self, id: &str, patience: Duration) -> Value {
        let begun = Instant::now();
        loop {
            let shown = self.get(&format!("/v1/executions/{id}")).await.json();
            let status = shown["status"].as_str().unwrap_or("Running");
            let on_its_way = matches!(status, "Running" | "RollingBack" | "Manual");
            if !on_its_way || begun.elapsed() > patience {
                return shown;
            }
            pause(30).await;
        }
    }

    /// Starts an execution and waits for its end.
    pub(super) async fn outcome(&self, flow: &str, input: &Value) -> Result<Value, String> {
        let id = self.start(flow, input).await?;
        Ok(self.end_of(&id, Duration::from_secs(10)).await)
    }

    pub(super) async fn history(&self, id: &str) -> Value {
        self.get(&format!("/v1/executions/{id}/history?limit=1000"))
            .await
            .json()
    }

    /// The details of an execution's events of a kind.
    pub(super) async fn events(&self, id: &str, kind: &str) -> Vec<Value> {
        let history = self.history(id).await;
        let events = history["items"].as_array().cloned().unwrap_or_default();
        events.into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The first task of a queue, once there is one.
    pub(super) async fn hold(&self, queue: &str) -> Result<Value, String> {
        let body = json!({"worker": "w", "waitSeconds": 5});
        let answer = self.post(&format!("/v1/queues/{queue}/hold"), &body).await;
        answer.well("a hold")?;
        match answer.json()["tasks"].get(0) {
            Some(task) => Ok(task.clone()),
            None => Err(format!("the queue `{queue}` has no task")),
        }
    }

    /// Reports a task as done.
    pub(super) async fn succeed(&self, task: &Value, output: &Value) -> Answer {
        let token = task["token"].as_str().unwrap_or_default();
        self.post(&format!("/v1/callbacks/{token}/succeed"), &json!({"output": output}))
            .await
    }

    /// The places where the canary appears: answers about the execution, the log, the files of the
    /// store.
    pub(super) async fn leaks(&self, id: &str) -> Vec<String> {
        let mut leaks = Vec::new();
        for part in ["", "/history?limit=1000", "/state", "/steps"] {
            let answer = self.get(&format!("/v1/executions/{id}{part}")).await;
            if shows_canary(&answer.text) {
                leaks.push(format!(
                    "the secret stands in the execution's {}",
                    if part.is_empty() { "answer" } else { part }
                ));
            }
        }
        if shows_canary(&self.log()) {
            leaks.push("the secret stands in the log".to_owned());
        }
        for suffix in ["", "-wal"] {
            let bytes = std::fs::read(self.file(suffix)).unwrap_or_default();
            if bytes.windows(TRACE.len()).any(|part| part == TRACE.as_bytes()) {
                leaks.push(format!("the secret stands in x.db{suffix}"));
            }
        }
        leaks
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Hands the folder of a try to the user without rights; answers the shell command that switches to
/// that user. A process that is not root keeps its user.
fn become_nobody(file: &Path) -> Result<&'static str, String> {
    let folder = file.parent().ok_or("the configuration stands nowhere")?;
    let owner = std::fs::metadata(folder).map_err(|error| error.to_string())?.uid();
    if owner != 0 {
        return Ok("");
    }
    let handed = Command::new("chown").args(["-R", "65534:65534"]).arg(folder).status();
    match handed {
        Ok(status) if status.success() => Ok("setpriv --reuid=65534 --regid=65534 --clear-groups"),
        _ => Err(format!("{} can't be handed to another user", folder.display())),
    }
}

/// Whether a text shows the secret.
pub(super) fn shows_canary(text: &str) -> bool {
    text.contains(TRACE)
}

/// Waits for something outside that has no other way to be waited for.
pub(super) async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
