//! Measures the store on this machine: `cargo bench -p starbridge-sqlite [-- FOLDER]`. Takes some minutes.
//!
//! Settings can be given by name: `page=4096 cache=64 log=4096 map=0 batch=64 sleepers=1000000 executions=100000`,
//! sizes of cache and map in MiB.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, History, Listing, Query, Receivers, Retention, ShardSet, Turn};
use starbridge_sqlite::{Options, SqliteStore};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn main() {
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut folder = std::env::temp_dir();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some((name, number)) => {
                let number = number.parse().expect("a number after `=`");
                numbers.insert(name.to_owned(), number);
            }
            // Cargo passes options of its own.
            None if argument.starts_with("--") => {}
            None => folder = PathBuf::from(argument),
        }
    }
    let number = |name: &str, usual: u64| numbers.get(name).copied().unwrap_or(usual);
    let usual = Options::default();
    let options = Options {
        page_bytes: number("page", u64::from(usual.page_bytes)) as u32,
        cache_bytes: number("cache", usual.cache_bytes >> 20) << 20,
        mapped_bytes: number("map", usual.mapped_bytes >> 20) << 20,
        log_pages: number("log", u64::from(usual.log_pages)) as u32,
        ..usual
    };
    let folder = tempfile::tempdir_in(folder).expect("a folder to measure in");
    println!("{options:?}");
    println!("one flush of 64 KiB: {:?}", flush(folder.path()));
    let executions = number("executions", 100_000);
    for batch in [64, 256] {
        for turns in [1, 2] {
            if numbers.get("batch").is_none_or(|only| *only == batch) {
                throughput(
                    &folder.path().join(format!("{batch}-{turns}.db")),
                    &options,
                    executions,
                    batch as usize,
                    turns,
                );
            }
        }
    }
    let count = number("sleepers", 1_000_000);
    if count > 0 {
        sleepers(&folder.path().join("sleepers.db"), &options, count);
    }
}

/// The mean time of a write and flush without a store.
fn flush(folder: &Path) -> Duration {
    let mut file = std::fs::File::create(folder.join("flush")).expect("a file");
    let begin = Instant::now();
    for _ in 0..50 {
        file.write_all(&[7; 65_536]).expect("written");
        file.sync_data().expect("flushed");
    }
    begin.elapsed() / 50
}

/// Ids sort by time and end randomly, as UUIDs of version 7 do.
fn id(number: u64) -> Text {
    let chance = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let chance = chance ^ (chance >> 29);
    let time = 0x0190_0000_0000 + number / 10;
    Text::from(format!(
        "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
        time >> 16,
        time & 0xffff,
        chance & 0xfff,
        (chance >> 12) & 0xfff,
        chance >> 16
    ))
}

fn record(id: &Text, now: i64) -> ExecutionRecord {
    ExecutionRecord {
        flow: "order-processing".into(),
        version: 3,
        name: id.clone(),
        status: Status::Running,
        awake: true,
        started: Timestamp(now),
        ..ExecutionRecord::default()
    }
}

fn ended(id: &Text, now: i64) -> ExecutionRecord {
    ExecutionRecord {
        status: Status::Succeeded,
        awake: false,
        ended: Some(Timestamp(now)),
        ..record(id, now)
    }
}

fn turn(first: u64, events: u32, bytes: usize, now: i64) -> Turn {
    let event = r#"{"y":2,"s":"reserve","d":{"a":1}},"#;
    let mut text = event.repeat(bytes / event.len());
    text.insert(0, '[');
    text.pop();
    text.push(']');
    Turn {
        first: EventId(first),
        events,
        time: Timestamp(now),
        text,
    }
}

/// Executions of 42 events and 1.5 KB, in one turn, or in two with 1,000 others between.
fn throughput(path: &Path, options: &Options, executions: u64, batch: usize, turns: u64) {
    const BETWEEN: u64 = 1_000;
    let store = SqliteStore::open_with(path, options).expect("a store");
    let mut appends = Vec::new();
    for number in 0..executions + if turns == 2 { BETWEEN } else { 0 } {
        let now = number as i64 / 10;
        if number < executions {
            let id = id(number);
            let (record, turn) = if turns == 1 {
                (ended(&id, now), turn(1, 42, 1_500, now))
            } else {
                (record(&id, now), turn(1, 20, 700, now))
            };
            appends.push(Append {
                execution: id,
                turn: Some(turn),
                record: Some(record),
                ..Append::default()
            });
        }
        if turns == 2 && number >= BETWEEN {
            let id = id(number - BETWEEN);
            appends.push(Append {
                expected: EventId(20),
                turn: Some(turn(21, 22, 800, now)),
                record: Some(ended(&id, now)),
                execution: id,
                ..Append::default()
            });
        }
    }
    let before = Used::now();
    let begin = Instant::now();
    let mut longest = Duration::ZERO;
    for batch in appends.chunks(batch) {
        let begin = Instant::now();
        assert_eq!(store.append(batch).expect("kept"), []);
        longest = longest.max(begin.elapsed());
    }
    let took = begin.elapsed();
    let used = Used::now().since(before);
    println!(
        "{turns} turn(s), batches of {batch}: {:.0} executions/s, longest batch {longest:.1?}",
        executions as f64 / took.as_secs_f64(),
    );
    println!(
        "  an execution: {:.1} µs of a core, {} bytes written, {} bytes in the file",
        used.seconds * 1e6 / executions as f64,
        used.written / executions,
        bytes(path) / executions
    );
    clearing(&store, executions);
}

/// Deletes all of them, like retention.
fn clearing(store: &SqliteStore, executions: u64) {
    let before = Used::now();
    let begin = Instant::now();
    let mut longest = Duration::ZERO;
    loop {
        let begin = Instant::now();
        if store.clear(Timestamp(i64::MAX), 256).expect("cleared") == 0 {
            break;
        }
        longest = longest.max(begin.elapsed());
    }
    let took = begin.elapsed();
    let used = Used::now().since(before);
    println!(
        "  cleared: {:.0} executions/s, {:.1} µs of a core, {} bytes written each, longest batch {longest:.1?}",
        executions as f64 / took.as_secs_f64(),
        used.seconds * 1e6 / executions as f64,
        used.written / executions
    );
}

/// The resources that the process has used so far, if the system tells.
#[derive(Clone, Copy)]
struct Used {
    seconds: f64,
    written: u64,
}

impl Used {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // In user mode and in system mode, in hundredths of a second.
        let ticks = [11, 12].map(|at| {
            fields
                .get(at)
                .and_then(|ticks| ticks.parse::<f64>().ok())
                .unwrap_or(0.0)
        });
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        Self {
            seconds: (ticks[0] + ticks[1]) / 100.0,
            written: written.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            seconds: self.seconds - before.seconds,
            written: self.written - before.written,
        }
    }
}

fn bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn timed<T>(what: &str, times: u32, mut work: impl FnMut(u32) -> T) -> T {
    let begin = Instant::now();
    let mut last = work(0);
    for time in 1..times {
        last = work(time);
    }
    println!("  {what}: {:.1?}", begin.elapsed() / times);
    last
}

/// Starts executions that sleep at once.
fn fall_asleep(store: &SqliteStore, count: u64) {
    let numbers: Vec<u64> = (0..count).collect();
    for batch in numbers.chunks(256) {
        let appends: Vec<Append> = batch
            .iter()
            .map(|&number| {
                let id = id(number);
                let record = ExecutionRecord {
                    awake: false,
                    // Any time within a year.
                    wake_at: Some(Timestamp((number.wrapping_mul(2_654_435_761) % 31_536_000_000) as i64)),
                    ..record(&id, number as i64)
                };
                Append {
                    execution: id,
                    turn: Some(turn(1, 12, 500, 0)),
                    record: Some(record),
                    ..Append::default()
                }
            })
            .collect();
        store.append(&appends).expect("kept");
    }
}

/// Many executions that sleep, and the effect on other work.
fn sleepers(path: &Path, options: &Options, count: u64) {
    let store = SqliteStore::open_with(path, options).expect("a store");
    let begin = Instant::now();
    fall_asleep(&store, count);
    println!(
        "{count} sleepers of 12 events and 500 bytes: {:.0} a second, {} bytes each",
        count as f64 / begin.elapsed().as_secs_f64(),
        bytes(path) / count
    );
    drop(store);
    let store = timed("open", 1, |_| SqliteStore::open_with(path, options).expect("a store"));
    timed("awake", 1, |_| store.awake(&ShardSet::ALL).expect("read"));
    timed("messages", 1, |_| store.messages(&Receivers::All).expect("read"));
    timed("counts", 1, |_| store.counts().expect("read"));
    timed("due, the first 1,000", 10, |_| {
        store.due(&ShardSet::ALL, Timestamp(i64::MAX), 1_000).expect("read")
    });
    let any = |time: u32| id(u64::from(time).wrapping_mul(7_919_117) % count);
    timed("load of one, any", 10_000, |time| store.load(&any(time)).expect("read"));
    timed("load of one, the same", 10_000, |_| store.load(&any(1)).expect("read"));
    let query = Query {
        limit: 50,
        ..Query::default()
    };
    timed("list, first page", 100, |_| store.list(&query).expect("read"));
    let running = Query {
        statuses: vec![Status::Running],
        ..query
    };
    timed("list of those that run, first page", 100, |_| {
        store.list(&running).expect("read")
    });
    timed("append of one that wakes, batches of 64", 100, |time| {
        let appends: Vec<Append> = (0..64)
            .map(|at| {
                let id = any(time * 64 + at + 20_000);
                Append {
                    expected: EventId(12),
                    turn: Some(turn(13, 22, 800, 0)),
                    record: Some(ended(&id, 5)),
                    execution: id,
                    ..Append::default()
                }
            })
            .collect();
        store.append(&appends).expect("kept")
    });
    timed("clear of 100", 10, |_| {
        store.clear(Timestamp(i64::MAX), 100).expect("cleared")
    });
}
