//! A PostgreSQL in place of the file: all scenes over it, and beside them a bare loop that writes the same rows.

use starbridge_services::{Kind, Service};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// It ends with this process.
static DATABASE: OnceLock<Service> = OnceLock::new();

/// Where Debian keeps it, if the environment names no other.
const PROGRAM: &str = "/usr/lib/postgresql/15/bin/postgres";
/// As the page for operators asks for it, as far as a machine of two cores goes.
const SETTINGS: [&str; 6] = [
    "-c",
    "max_wal_size=4GB",
    "-c",
    "shared_buffers=512MB",
    "-c",
    "checkpoint_timeout=30min",
];
/// For how long the bare loop runs.
const SECONDS: &str = "8";
/// Bytes of the events of ten `pass` steps.
const EVENTS: usize = 1_300;

fn program() -> PathBuf {
    let named = std::env::var_os(Kind::Postgres.variable());
    named.map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from)
}

/// Starts it: from now on servers keep what they keep in it.
pub fn begin() -> Result<(), String> {
    let database = Service::of_program(Kind::Postgres, &program(), &SETTINGS)?;
    // A second one would mean that this was called twice.
    DATABASE.set(database).map_err(|_| "it runs already".to_owned())
}

/// Where the store of this folder is: the URL and the schema.
pub fn place(folder: &Path) -> Option<(String, String)> {
    let database = DATABASE.get()?;
    let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
    let schema: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((format!("{}?sslmode=disable", database.url()), format!("b{schema}")))
}

fn tool(name: &str, database: &Service) -> Command {
    let mut tool = Command::new(program().with_file_name(name));
    let port = database.port().to_string();
    tool.args(["-h", "127.0.0.1", "-U", "starbridge", "-p", &port]);
    tool
}

fn sql(database: &Service, sql: &str) -> Result<String, String> {
    let said = tool("psql", database)
        .args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            "postgres",
            "-c",
            sql,
        ])
        .output()
        .map_err(|error| error.to_string())?;
    match said.status.success() {
        true => Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned()),
        false => Err(format!("{sql}: {}", String::from_utf8_lossy(&said.stderr).trim())),
    }
}

/// What it has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Bytes of its log.
    pub log: f64,
    /// Transactions that were committed.
    pub commits: f64,
    /// Seconds of processor time of all its processes.
    pub processor: f64,
}

/// `None` over a file.
pub fn done() -> Option<Done> {
    let database = DATABASE.get()?;
    // What a process counts it tells after a moment.
    let asked = "select pg_stat_force_next_flush(); select pg_current_wal_insert_lsn() - '0/0'::pg_lsn, xact_commit
        from pg_stat_database where datname = 'postgres'";
    let said = sql(database, asked).ok()?;
    let (log, commits) = said.lines().last()?.split_once('|')?;
    Some(Done {
        log: log.parse().ok()?,
        commits: commits.parse().ok()?,
        processor: processor(database),
    })
}

fn processor(database: &Service) -> f64 {
    let first = std::fs::read_to_string(database.folder().join("data/postmaster.pid")).unwrap_or_default();
    let first = first.lines().next().unwrap_or_default().to_owned();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ticks = processes.filter_map(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let is_first = process.file_name().to_str() == Some(first.as_str());
        let ticks = |range: std::ops::Range<usize>| -> f64 {
            let fields = fields.get(range).unwrap_or_default();
            fields.iter().filter_map(|field| field.parse::<f64>().ok()).sum()
        };
        match (is_first, fields.get(1) == Some(&first.as_str())) {
            // With those of its processes that have ended.
            (true, _) => Some(ticks(11..15)),
            (false, true) => Some(ticks(11..13)),
            (false, false) => None,
        }
    });
    ticks.sum::<f64>() / 100.0
}

/// A session with a snapshot, until this is dropped.
pub struct Snapshot(Child);

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn hold_a_snapshot() -> Result<Snapshot, String> {
    let database = DATABASE.get().ok_or("there is no database")?;
    let taken = "begin isolation level repeatable read; select txid_current_snapshot(); select pg_sleep(3600)";
    let session = tool("psql", database)
        .args(["-X", "-q", "-d", "postgres", "-c", taken])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let held = Snapshot(session);
    // Rows that are changed before it is there would not be dead for it.
    let asked = "select count(*) from pg_stat_activity where backend_xmin is not null and wait_event = 'PgSleep'";
    while sql(database, asked)? == "0" {
        std::thread::yield_now();
    }
    Ok(held)
}

/// Writes executions that were awake and have ended.
pub fn leave_dead_rows(schema: &str, many: usize) -> Result<(), String> {
    let database = DATABASE.get().ok_or("there is no database")?;
    sql(
        database,
        &format!(
            "insert into {schema}.executions (number, id, shard, flow, version, status, awake, started, depth, awaited, attempts,
                watched) select 1000000000 + n, gen_random_uuid()::text, n % 256, 'other', 1, 1, true, 1, 0, false, 0, false
                from generate_series(1, {many}) as n"
        ),
    )?;
    let now = "(extract(epoch from now()) * 1000)::bigint";
    sql(
        database,
        &format!("update {schema}.executions set status = 4, awake = false, ended = {now} where number > 1000000000"),
    )?;
    Ok(())
}

/// What a transaction of a node does for so many flows of ten `pass` steps, written by the database itself: nothing is sent but the
/// statements.
fn script(flows: usize) -> String {
    format!(
        "begin;\n\
         select pg_current_xact_id()::text::bigint, 1 / (select count(*) from (select 1 from bare.writers\n\
             where incarnation = 1 and writer = :client_id and not over for update) as mine);\n\
         select nextval('bare.blocks') * 10000 as base \\gset\n\
         select w.place, e.id from generate_series(1, {flows}) as w (place)\n\
             left join bare.executions e on e.flow = 'ten' and e.name = 'n' || (:base + w.place);\n\
         insert into bare.executions (number, id, shard, flow, version, status, awake, started, ended, depth, awaited,\n\
             attempts, watched) select :base + n, gen_random_uuid()::text, 7, 'ten', 1, 4, false, 1, 1, 0, false, 0, false\n\
             from generate_series(1, {flows}) as n;\n\
         insert into bare.turns select :base + n, 1, 22, 1, repeat('x', {EVENTS})::bytea from generate_series(1, {flows}) as n;\n\
         commit;\n"
    )
}

/// Says how many flows a second a loop of two connections writes that does nothing else, with so many flows in each transaction.
pub fn bare(folder: &Path, flows: usize) -> Result<(), String> {
    let (Some(database), Some((_, schema))) = (DATABASE.get(), place(folder)) else {
        return Ok(());
    };
    let tables = ["executions", "turns", "writers"]
        .map(|table| format!("create table bare.{table} (like {schema}.{table} including all);"));
    sql(
        database,
        &format!(
            "drop schema if exists bare cascade; create schema bare; {} create sequence bare.blocks;
             insert into bare.writers values (1, 0, false), (1, 1, false)",
            tables.concat()
        ),
    )?;
    let file = folder.join("bare.sql");
    std::fs::write(&file, script(flows)).map_err(|error| error.to_string())?;
    let before = done().unwrap_or_default();
    let said = tool("pgbench", database)
        .args(["-n", "-M", "prepared", "-c", "2", "-j", "1", "-T", SECONDS, "-f"])
        .arg(&file)
        .arg("postgres")
        .output()
        .map_err(|error| error.to_string())?;
    if !said.status.success() {
        return Err(String::from_utf8_lossy(&said.stderr).into_owned());
    }
    let after = done().unwrap_or_default();
    let written: f64 = sql(database, "select count(*) from bare.turns")?.parse().unwrap_or(0.0);
    let seconds: f64 = SECONDS.parse().unwrap_or(1.0);
    println!(
        "  a bare loop over two connections, {flows} flows a transaction: {:.0}/s, {:.3} ms of the database's processor each, \
         {:.2} KB of log a step",
        written / seconds,
        (after.processor - before.processor) * 1000.0 / written,
        (after.log - before.log) / 1024.0 / written / 10.0
    );
    Ok(())
}
