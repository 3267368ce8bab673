//! Nodes of a cluster: the built command, each as a process of its own.

use crate::stand::Stand;
use serde_json::{Value, json};
use starbridge_services::ask;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The command under test.
const PROGRAM: &str = "STARBRIDGE_COMMAND";
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// A node.
pub struct Node {
    pub name: &'static str,
    pub port: u16,
    pub link: u16,
    process: Child,
}

/// A port that is free just now.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Asks until something is so. What never comes is found by whoever runs the tests.
#[expect(clippy::disallowed_methods, reason = "a node does not say when others see it")]
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(LOOK);
    }
}

pub fn command(stand: &Stand, schema: &str, name: &str, port: u16, link: u16) -> Command {
    let program = std::env::var_os(PROGRAM).map(PathBuf::from).unwrap();
    let mut command = Command::new(program);
    command
        .args(["serve", "--node", name, "--listen", &format!("127.0.0.1:{port}")])
        .args(["--db", &format!("{}?sslmode=disable", stand.service.url())])
        .env("STARBRIDGE_STORE_SCHEMA", schema)
        .env("STARBRIDGE_CLUSTER_LISTEN", format!("127.0.0.1:{link}"))
        .env("STARBRIDGE_RUNTIME_OWNERS", "1")
        .stdin(Stdio::null());
    command
}

impl Node {
    /// Starts a node, and waits until it says that it is ready.
    pub fn start(stand: &Stand, schema: &str, name: &'static str) -> Self {
        Self::start_with(stand, schema, name, &[])
    }

    /// The same, with more in its environment.
    pub fn start_with(stand: &Stand, schema: &str, name: &'static str, more: &[(&str, &str)]) -> Self {
        let (port, link) = (port(), port());
        let mut command = command(stand, schema, name, port, link);
        let process = command.envs(more.iter().copied()).spawn().unwrap();
        let node = Self {
            name,
            port,
            link,
            process,
        };
        until(|| node.ready());
        node
    }

    /// What it says about itself, if it is ready.
    pub fn ready(&self) -> Option<String> {
        let (status, text) = self.ask("GET", "/readyz", "");
        (status == 200).then_some(text)
    }

    pub fn owns(&self) -> bool {
        self.ready().is_some_and(|said| said == "ready\n")
    }

    /// The status and the body of an answer; 0 if there is none.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let headers = ["content-type: application/json".to_owned()];
        let answer = ask(method, &url, &headers, body.as_bytes());
        answer.map_or((0, String::new()), |answer| {
            (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
        })
    }

    pub fn json(&self, path: &str) -> Value {
        let (_, text) = self.ask("GET", path, "");
        serde_json::from_str(&text).unwrap_or(json!(null))
    }

    /// One of its own metrics.
    pub fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.ask("GET", "/metrics", "");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.process.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Whether it came to its end well.
    pub fn ended_well(&mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
