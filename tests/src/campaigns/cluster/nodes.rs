//! Three nodes over one database, each a process with a way of its own to it.

use super::proxy::Proxy;
use crate::client;
use serde_json::Value;
use starbridge_services::{Kind, Service};
use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];
/// The silence after which a node takes over.
pub(super) const LEASE: Duration = Duration::from_secs(2);
/// How long an answer may take: a request waits for an owner for five seconds.
pub(super) const ANSWER: Duration = Duration::from_secs(15);

/// The database, and where all is kept.
pub(super) struct Place {
    program: PathBuf,
    folder: PathBuf,
    pub(super) database: Service,
    psql: PathBuf,
}

/// A node, over all its lives.
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) port: u16,
    pub(super) proxy: Proxy,
    child: Option<Child>,
}

fn free_port() -> Result<u16, String> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    free.map(|address| address.port()).map_err(|error| error.to_string())
}

impl Place {
    pub(super) fn new(program: &Path, postgres: &Path, folder: &Path) -> Result<Self, String> {
        Ok(Self {
            program: program.to_path_buf(),
            folder: folder.to_path_buf(),
            database: Service::of_program(Kind::Postgres, postgres, &[])?,
            psql: postgres.with_file_name("psql"),
        })
    }

    /// What the database answers.
    pub(super) fn sql(&self, sql: &str) -> Result<String, String> {
        let said = Command::new(&self.psql)
            .args([
                "-X",
                "-A",
                "-t",
                "-q",
                "-h",
                "127.0.0.1",
                "-U",
                "starbridge",
                "-d",
                "postgres",
                "-p",
            ])
            .arg(self.database.port().to_string())
            .args(["-c", sql])
            .output()
            .map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    pub(super) async fn node(&self, name: &'static str, witness: u16) -> Result<Node, String> {
        let proxy = Proxy::start(self.database.port()).await?;
        let port = free_port()?;
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\ndrain_seconds = 1\n\
             [store]\nurl = \"postgres://starbridge@127.0.0.1:{}/postgres?sslmode=disable\"\n\
             [cluster]\nnode = \"{name}\"\nlisten = \"127.0.0.1:{}\"\nlease_seconds = {}\n\
             [runtime]\nowners = 1\n[log]\nlevel = \"info\"\n[http]\nprivate_addresses = true\n\
             [resources]\n\"witness:{{function}}\" = \"http://127.0.0.1:{witness}/{{function}}\"\n",
            proxy.port,
            free_port()?,
            LEASE.as_secs(),
        );
        std::fs::write(self.folder.join(format!("{name}.toml")), text).map_err(|error| error.to_string())?;
        Ok(Node {
            name,
            port,
            proxy,
            child: None,
        })
    }
}

impl Node {
    /// Starts it if it does not run. Answers whether it had to.
    pub(super) fn keep(&mut self, place: &Place) -> Result<bool, String> {
        let problem = |error: std::io::Error| error.to_string();
        if let Some(child) = &mut self.child
            && child.try_wait().map_err(problem)?.is_none()
        {
            return Ok(false);
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.folder.join(format!("{}.log", self.name)))
            .map_err(problem)?;
        let child = Command::new(&place.program)
            .args(["serve", "--config"])
            .arg(place.folder.join(format!("{}.toml", self.name)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.map_err(problem)?);
        Ok(true)
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn signal(&self, signal: &str) -> Result<(), String> {
        let Some(child) = &self.child else {
            return Ok(());
        };
        let told = Command::new("kill").args([signal, &child.id().to_string()]).status();
        told.map(drop).map_err(|error| error.to_string())
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        match self.child.take() {
            None => Ok(()),
            Some(mut child) => child
                .kill()
                .and_then(|()| child.wait())
                .map(drop)
                .map_err(|error| error.to_string()),
        }
    }

    /// The text of an answer with 200.
    pub(super) async fn get(&self, path: &str) -> Option<String> {
        let asked = client().get(format!("{}{path}", self.url())).timeout(ANSWER);
        let answer = asked.send().await.ok()?;
        match answer.status().is_success() {
            true => answer.text().await.ok(),
            false => None,
        }
    }

    /// Who has the store, as this node sees it.
    pub(super) async fn owner(&self) -> Option<String> {
        let cluster: Value = serde_json::from_str(&self.get("/v1/cluster").await?).ok()?;
        cluster["owner"].as_str().map(str::to_owned)
    }

    /// How many appends of it were refused, in this life.
    pub(super) async fn fenced(&self) -> u64 {
        let text = self.get("/metrics").await.unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("starbridge_cluster_appends_fenced_total "));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A process that stands still is killed as well.
        let _ = self.kill();
    }
}
