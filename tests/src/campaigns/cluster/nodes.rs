//! Three nodes over one database and its synchronous standby, each a process with ways of its own to both, and one to itself.

use super::proxy::{Goal, Proxy, Way};
use crate::client;
use serde_json::Value;
use starbridge_services::{Kind, Service};
use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];
/// The silence after which a node takes over.
pub(super) const LEASE: Duration = Duration::from_secs(2);
/// How long an answer may take: a request waits for an owner for five seconds.
pub(super) const ANSWER: Duration = Duration::from_secs(15);

/// What both databases are told. A standby that was cut off comes back at once.
const DATABASE: [&str; 4] = [
    "-c",
    "synchronous_standby_names=*",
    "-c",
    "wal_retrieve_retry_interval=100ms",
];
/// The clock of each node, by its name.
const CLOCKS: [(&str, &str); 2] = [("b", "+3600s"), ("c", "-3600s")];

/// The databases, and where all is kept.
pub(super) struct Place {
    program: PathBuf,
    folder: PathBuf,
    faketime: Option<PathBuf>,
    pub(super) database: Service,
    standby: Service,
    /// Where both are: nodes know two addresses, and the first database is at the one of this index.
    goals: [Goal; 2],
    first: usize,
    psql: PathBuf,
}

/// A node, over all its lives.
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) port: u16,
    databases: [Proxy; 2],
    pub(super) link: Proxy,
    child: Option<Child>,
}

fn free_port() -> Result<u16, String> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    free.map(|address| address.port()).map_err(|error| error.to_string())
}

impl Place {
    pub(super) fn new(program: &Path, postgres: &Path, faketime: Option<&Path>, folder: &Path) -> Result<Self, String> {
        let database = Service::of_program(Kind::Postgres, postgres, &DATABASE)?;
        let standby = database.standby("standby", &DATABASE)?;
        Ok(Self {
            program: program.to_path_buf(),
            folder: folder.to_path_buf(),
            faketime: faketime.map(Path::to_path_buf),
            goals: [&database, &standby].map(|at| Goal::new(at.port().into())),
            first: 0,
            database,
            standby,
            psql: postgres.with_file_name("psql"),
        })
    }

    /// The database is gone for good, its standby takes over, and another standby follows that one.
    pub(super) fn promote(&mut self) -> Result<(), String> {
        self.database.kill();
        self.standby.promote()?;
        let next = self.standby.standby("standby", &DATABASE)?;
        self.goals[self.first].store(next.port(), Ordering::SeqCst);
        self.first = 1 - self.first;
        self.database = std::mem::replace(&mut self.standby, next);
        Ok(())
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
        let [first, second] = &self.goals;
        let databases = [Proxy::start(first.clone()).await?, Proxy::start(second.clone()).await?];
        let (port, listens) = (free_port()?, free_port()?);
        let link = Proxy::start(Goal::new(listens.into())).await?;
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\ndrain_seconds = 1\n\
             [store]\nurl = \"postgres://starbridge@127.0.0.1:{},127.0.0.1:{}/postgres?sslmode=disable&target_session_attrs=read-write\"\n\
             [cluster]\nnode = \"{name}\"\nlisten = \"127.0.0.1:{listens}\"\nadvertise = \"127.0.0.1:{}\"\nlease_seconds = {}\n\
             [runtime]\nowners = 1\n[log]\nlevel = \"info\"\n[http]\nprivate_addresses = true\n\
             [resources]\n\"witness:{{function}}\" = \"http://127.0.0.1:{witness}/{{function}}\"\n",
            databases[0].port,
            databases[1].port,
            link.port,
            LEASE.as_secs(),
        );
        std::fs::write(self.folder.join(format!("{name}.toml")), text).map_err(|error| error.to_string())?;
        Ok(Node {
            name,
            port,
            databases,
            link,
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
        let mut command = Command::new(&place.program);
        let clock = CLOCKS.iter().find(|(name, _)| *name == self.name);
        if let (Some(library), Some((_, off))) = (&place.faketime, clock) {
            command.env("LD_PRELOAD", library).env("FAKETIME", off);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let child = command
            .args(["serve", "--config"])
            .arg(place.folder.join(format!("{}.toml", self.name)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.map_err(problem)?);
        Ok(true)
    }

    /// What becomes of its connections to the database.
    pub(super) fn database(&self, way: Way) {
        self.databases.iter().for_each(|proxy| proxy.is_now(way));
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
