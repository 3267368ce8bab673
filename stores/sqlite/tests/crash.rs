//! Processes that end in the middle of writing: killed, or because the disk is full. Acknowledged
//! data is stored.
//!
//! This program is its own child: with a file as its argument it appends to it until it is ended.

use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, History, Listing, Query, StoreError, Turn};
use starbridge_sqlite::{OpenError, Options, SqliteStore};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How many executions each batch has in addition to the long one.
const OTHERS: u64 = 8;

fn main() {
    if let [_, command, path] = &std::env::args().collect::<Vec<_>>()[..]
        && command == "append-to"
    {
        return append_for_ever(Path::new(path));
    }
    killed();
    println!("test killed ... ok");
    #[cfg(unix)]
    {
        taken_apart();
        println!("test taken_apart ... ok");
    }
    #[cfg(unix)]
    {
        no_more_space();
        println!("test no_more_space ... ok");
    }
}

fn append(execution: &str, first: u64) -> Append {
    let record = ExecutionRecord {
        flow: "order".into(),
        status: Status::Running,
        awake: true,
        ..ExecutionRecord::default()
    };
    Append {
        execution: execution.into(),
        expected: EventId(first - 1),
        turn: Some(Turn {
            first: EventId(first),
            events: 1,
            time: Timestamp(0),
            text: format!("[\"{}\"]", "x".repeat(1_000)),
        }),
        record: (first == 1).then_some(record),
        ..Append::default()
    }
}

/// A batch: one more event of the execution `long`, and some new executions.
fn batch(number: u64) -> Vec<Append> {
    let others = (0..OTHERS).map(|other| append(&format!("{number}-{other}"), 1));
    [append("long", number)].into_iter().chain(others).collect()
}

/// Prints the number of each acknowledged batch, and why there were no more.
fn append_for_ever(path: &Path) {
    let store = SqliteStore::open_with(path, &options()).expect("a store");
    let mut out = std::io::stdout();
    for number in last(&store) + 1.. {
        match store.append(&batch(number)) {
            Ok(refused) => {
                assert_eq!(refused, []);
                writeln!(out, "{number}").expect("the parent reads");
            }
            Err(error) => {
                // Nothing more is written, regardless of the failed batch.
                assert_eq!(store.append(&batch(number)), Err(error.clone()));
                assert!(matches!(error, StoreError::Unavailable(_)));
                return writeln!(out, "failed: {error}").expect("the parent reads");
            }
        }
    }
}

/// How long the log of a child gets before it is moved into the file.
const LOG_PAGES: &str = "LOG_PAGES";

/// By default a short log, so that it is often moved into the file.
fn options() -> Options {
    let pages = std::env::var(LOG_PAGES).ok().and_then(|pages| pages.parse().ok());
    Options {
        log_pages: pages.unwrap_or(50),
        ..Options::default()
    }
}

fn last(store: &SqliteStore) -> u64 {
    let last = store.last_turn("long").expect("readable");
    last.map_or(0, |turn| turn.first.0)
}

fn child(command: &mut Command, path: &Path) -> Child {
    let command = command.arg("append-to").arg(path);
    command.stdout(Stdio::piped()).spawn().expect("a child")
}

/// Checks that each batch is stored whole: all that were acknowledged, and at most one more.
fn check(path: &Path, acknowledged: u64) -> u64 {
    let store = SqliteStore::open(path).expect("the store can be opened again");
    let last = last(&store);
    assert!(
        (acknowledged..=acknowledged + 1).contains(&last),
        "{acknowledged} were acknowledged, {last} are there"
    );
    let long = store.load("long").expect("readable").expect("there");
    let firsts: Vec<u64> = long.turns.iter().map(|turn| turn.first.0).collect();
    assert_eq!(firsts, (1..=last).collect::<Vec<_>>());
    assert_eq!(
        store.counts().expect("readable"),
        [(Status::Running, last * OTHERS + 1)]
    );
    let query = Query {
        limit: usize::MAX,
        ..Query::default()
    };
    let mut there: Vec<String> = store
        .list(&query)
        .expect("readable")
        .items
        .iter()
        .map(|item| item.id.to_string())
        .collect();
    there.sort_unstable();
    let mut expected: Vec<String> = (1..=last)
        .flat_map(|number| batch(number).into_iter().skip(1))
        .map(|append| append.execution.to_string())
        .collect();
    expected.push("long".to_owned());
    expected.sort_unstable();
    assert_eq!(there, expected);
    last
}

fn killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut there = 0;
    for round in 0..12_u32 {
        let program = std::env::current_exe().expect("this program");
        let mut child = child(&mut Command::new(program), &path);
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut acknowledged = there;
        for _ in 0..=round * 7 % 20 {
            acknowledged = lines
                .next()
                .expect("a line")
                .expect("readable")
                .parse()
                .expect("a number");
        }
        // The child goes on writing meanwhile, so it is hit at different points.
        for _ in 0..round * 100_000 {
            std::hint::spin_loop();
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        for line in lines {
            acknowledged = line.expect("readable").parse().unwrap_or(acknowledged);
        }
        there = check(&path, acknowledged);
    }
    assert!(there >= 12);
}

/// The file and the log of a killed store belong together until a program moves the log into the
/// file.
#[cfg(unix)]
fn taken_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let log = folder.path().join("store.db-wal");
    let away = folder.path().join("away");
    let program = std::env::current_exe().expect("this program");
    // Nothing is moved before it is killed.
    let mut child = child(Command::new(program).env(LOG_PAGES, "100000"), &path);
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let line = lines.nth(4).expect("a line").expect("readable");
    let mut acknowledged = line.parse().expect("a number");
    child.kill().expect("killed");
    child.wait().expect("ended");
    // It went on until it was killed.
    for line in lines {
        acknowledged = line.expect("readable").parse().unwrap_or(acknowledged);
    }
    std::fs::rename(&log, &away).expect("moved");
    let refused = SqliteStore::open(&path).expect_err("the log is not there");
    assert!(matches!(refused, OpenError::LostLog { .. }), "{refused}");
    std::fs::rename(&away, &log).expect("moved back");
    std::fs::rename(&path, &away).expect("moved");
    let refused = SqliteStore::open(&path).expect_err("the file is not there");
    assert!(matches!(refused, OpenError::OnlyLog { .. }), "{refused}");
    assert!(log.exists() && !path.exists());
    std::fs::rename(&away, &path).expect("moved back");
    // The SQLite shell does this when it ends.
    let shell = rusqlite::Connection::open(&path).expect("a connection");
    shell
        .execute_batch("PRAGMA wal_checkpoint")
        .expect("moved into the file");
    shell.close().expect("closed");
    assert!(!log.exists());
    check(&path, acknowledged);
}

/// A limit of the system on the size of files stands for a disk that fails.
#[cfg(unix)]
fn no_more_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 4000; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().expect("this program"));
    let child = child(&mut command, &path).wait_with_output().expect("ended");
    let output = String::from_utf8(child.stdout).expect("text");
    let acknowledged = output
        .lines()
        .filter_map(|line| line.parse().ok())
        .max()
        .expect("some were kept");
    let failed = output.lines().last().expect("a line");
    assert!(
        failed.starts_with("failed: the store can't be reached: the disk of "),
        "{output}"
    );
    check(&path, acknowledged);
}
