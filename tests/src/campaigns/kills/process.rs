//! The server's process.

use crate::client;
use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Calls in flight are given so long when the server is told to stop.
const DRAIN_SECONDS: u64 = 1;
/// A server must be ready, or gone, within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// The address and files of a server, over all its lives.
#[derive(Clone, Debug)]
pub(in crate::campaigns) struct Place {
    program: PathBuf,
    folder: PathBuf,
    database: PathBuf,
    port: u16,
}

impl Place {
    pub(in crate::campaigns) fn new(program: &Path, folder: &Path) -> Result<Self, String> {
        if !program.is_file() {
            return Err(format!("there is no program {}", program.display()));
        }
        // Free just now; the server takes it at once.
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        Ok(Self {
            program: program.to_path_buf(),
            folder: folder.to_path_buf(),
            database: folder.join("flows.db"),
            port: free.map_err(|error| error.to_string())?.port(),
        })
    }

    pub(in crate::campaigns) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(in crate::campaigns) fn database(&self) -> PathBuf {
        self.database.clone()
    }

    /// The same server with its store elsewhere.
    pub(in crate::campaigns) fn keeping(mut self, database: PathBuf) -> Self {
        self.database = database;
        self
    }

    pub(in crate::campaigns) fn configure(&self, witness: u16) -> Result<(), String> {
        self.configure_with(&format!(
            "[runtime]\nhot_executions = 20\n\
             [http]\nprivate_addresses = true\n\
             [resources]\n\"witness:{{function}}\" = \"http://127.0.0.1:{witness}/{{function}}\"\n\
             [[notifications]]\nname = \"witness\"\nto = \"http://127.0.0.1:{witness}/notified\"\n"
        ))
    }

    /// The same with these sections beside those that each server needs.
    pub(super) fn configure_with(&self, sections: &str) -> Result<(), String> {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\ndrain_seconds = {DRAIN_SECONDS}\n\
             [store]\npath = \"{}\"\n\
             [log]\nlevel = \"warn\"\n{sections}",
            self.port,
            self.database().display(),
        );
        std::fs::write(self.folder.join("serve.toml"), text).map_err(|error| error.to_string())
    }
}

/// One life of a server.
#[derive(Debug)]
pub(in crate::campaigns) struct Process {
    child: Child,
}

impl Process {
    /// Starts a server and waits until it is ready.
    pub(in crate::campaigns) async fn start(place: &Place) -> Result<Self, String> {
        let problem = |error: std::io::Error| error.to_string();
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.folder.join("serve.log"))
            .map_err(problem)?;
        let child = Command::new(&place.program)
            .args(["serve", "--config"])
            .arg(place.folder.join("serve.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(problem)?;
        let mut process = Self { child };
        let ready = format!("{}/readyz", place.url());
        let client = client();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(answer) = client.get(&ready).send().await
                && answer.status().is_success()
            {
                return Ok(process);
            }
            if let Some(status) = process.child.try_wait().map_err(problem)? {
                return Err(format!("the server did not start: {status}\n{}", place.last_words()));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        drop(process.kill());
        Err(format!("the server was not ready in time\n{}", place.last_words()))
    }

    /// SIGKILL: the process does nothing more.
    pub(in crate::campaigns) fn kill(&mut self) -> Result<(), String> {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        ended.map(drop).map_err(|error| error.to_string())
    }

    /// SIGTERM: the process may bring things to their end. Answers what was wrong with that.
    pub(in crate::campaigns) async fn stop(&mut self) -> Result<Vec<String>, String> {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        told.map_err(|error| error.to_string())?;
        let bound = Duration::from_secs(DRAIN_SECONDS + 3);
        let begun = Instant::now();
        if let Some(status) = self.wait(bound).await? {
            let problem = (!status.success()).then(|| format!("SIGTERM: the server ended with {status}"));
            return Ok(problem.into_iter().collect());
        }
        let waits = self.threads();
        let ended = self.wait(PATIENCE).await?;
        self.kill()?;
        Ok(vec![match ended {
            None => format!("SIGTERM: the server went on; its threads: {waits}"),
            Some(_) => format!("SIGTERM: it took {:?}; its threads: {waits}", begun.elapsed()),
        }])
    }

    /// What each thread waits for in the kernel, if the system shows it: this tells a slow flush
    /// from a lock.
    fn threads(&self) -> String {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let tasks = tasks.into_iter().flatten().flatten().map(|task| {
            let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            format!("{} in {}", read("comm").trim(), read("wchan"))
        });
        tasks.collect::<Vec<_>>().join(", ")
    }

    /// How it ended, if it does in time.
    pub(in crate::campaigns) async fn wait(&mut self, patience: Duration) -> Result<Option<ExitStatus>, String> {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Ok(Some(status));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(None)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.kill());
    }
}

impl Place {
    /// The last lines of the server's log.
    pub(in crate::campaigns) fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("serve.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(10).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}
