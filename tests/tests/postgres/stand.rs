//! A PostgreSQL, and stores in it.

use starbridge_ports::Store;
use starbridge_postgres::{PostgresSettings, PostgresStore};
use starbridge_services::{Kind, Service};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Stand {
    pub service: Service,
    schemas: AtomicU32,
}

impl Stand {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(further: &[&str]) -> Self {
        Self {
            service: Service::start_with(Kind::Postgres, further),
            schemas: AtomicU32::new(0),
        }
    }

    /// Settings for a new store.
    pub fn settings(&self) -> PostgresSettings {
        PostgresSettings {
            // Looking for certificates takes longer than all else, and nobody needs them here.
            url: format!("{}?sslmode=disable", self.service.url()),
            schema: format!("s{}", self.schemas.fetch_add(1, Ordering::SeqCst)),
            node: "tests".to_owned(),
            readers: 3,
            ..PostgresSettings::default()
        }
    }

    /// Runs SQL in its first database, and answers what it says.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in("postgres", sql)
    }

    pub fn sql_in(&self, database: &str, sql: &str) -> String {
        let said = self.psql("starbridge", database, sql).output().unwrap();
        let problem = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{sql}: {problem}");
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    /// The program `psql`, which runs SQL as a role.
    pub fn psql(&self, role: &str, database: &str, sql: &str) -> Command {
        psql_at(self.service.port(), role, database, sql)
    }
}

/// The same at a port of the loopback.
pub fn psql_at(port: u16, role: &str, database: &str, sql: &str) -> Command {
    let program = std::env::var_os(Kind::Postgres.variable()).map(PathBuf::from).unwrap();
    let mut psql = Command::new(program.with_file_name("psql"));
    psql.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"])
        .args(["-p", &port.to_string(), "-U", role, "-d", database])
        .args(["-c", sql]);
    psql
}

pub fn open(settings: &PostgresSettings) -> Box<dyn Store> {
    Box::new(PostgresStore::open(settings).unwrap_or_else(|error| panic!("{error}")))
}
