//! Every store passes the same suite, and answers random questions as the one in memory does.

#[path = "stores/told.rs"]
mod told;

use starbridge_flow::time::{Millis, Timestamp};
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_node::config::Config;
use starbridge_node::store_care::restored;
use starbridge_ports::{Append, ExecutionRecord, History, ShardSet, Store, StoreError, TaskLease, TaskLeaseChange};
use starbridge_sqlite::{Flush, Options, SqliteStore};
use starbridge_tests::faulty::{Fault, Faulty, Plan};
use starbridge_tests::stores::{Tried, cases, random, record, start, start_as, task};
use std::path::Path;

/// Without flushes: no test here pulls the plug.
fn open(path: &Path) -> Box<dyn Store> {
    let options = Options {
        flush: Flush::Never,
        ..Options::default()
    };
    Box::new(SqliteStore::open_with(path, &options).unwrap())
}

fn suite(again: bool, mut make: impl FnMut(&str) -> Box<dyn Fn() -> Box<dyn Store>>) {
    for (name, case) in cases() {
        let open = make(name);
        // Shown where one fails.
        println!("{name}");
        case(&mut Tried::new(&open, again));
    }
}

#[test]
fn memory_passes() {
    suite(false, |_| Box::new(|| Box::new(MemoryStore::new())));
}

#[test]
fn sqlite_passes() {
    let folder = tempfile::tempdir().unwrap();
    suite(false, |name| {
        let path = folder.path().join(name);
        Box::new(move || open(&path))
    });
}

#[test]
fn sqlite_passes_when_it_is_opened_anew_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    suite(true, |name| {
        let path = folder.path().join(name);
        Box::new(move || open(&path))
    });
}

#[test]
fn sqlite_answers_as_memory_does() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..8 {
        let path = folder.path().join(seed.to_string());
        let open = || open(&path);
        random::agree(seed, 150, &MemoryStore::new(), &mut Tried::new(&open, seed % 4 == 0));
    }
}

#[test]
fn a_faulty_store_is_what_it_hides_until_it_fails() {
    suite(false, |_| Box::new(|| Box::new(Faulty::new(MemoryStore::new()))));
    let failed = Err(StoreError::Unavailable("planned".to_owned()));
    for (fault, for_good, answered, kept, later) in [
        (Fault::Before, false, false, false, true),
        (Fault::Before, true, false, false, false),
        (Fault::After, false, true, true, false),
        (Fault::After, true, true, true, false),
        (Fault::Lost, false, false, true, true),
        (Fault::Lost, true, false, true, false),
    ] {
        let store = Faulty::new(MemoryStore::new());
        store.plan(Some(Plan {
            operation: 2,
            fault,
            for_good,
        }));
        assert_eq!(store.awake(&ShardSet::ALL), Ok(vec![]));
        let append = store.append(&[start("a")]);
        assert_eq!(append, if answered { Ok(vec![]) } else { failed.clone() }, "{fault:?}");
        assert_eq!(store.behind().load("a").unwrap().is_some(), kept, "{fault:?}");
        assert_eq!(store.awake(&ShardSet::ALL).is_ok(), later, "{fault:?} {for_good}");
        assert_eq!(store.operations(), 3);
        store.mend();
        assert_eq!(store.awake(&ShardSet::ALL).unwrap().len(), usize::from(kept));
    }
}

#[test]
fn restored_store_sets_aside_what_had_begun_also_what_was_asleep() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.db");
    let with = |id: &str, status, wake_at, ended| {
        let record = ExecutionRecord {
            status,
            wake_at,
            ended,
            awake: false,
            ..record(id)
        };
        start_as(id, record)
    };
    let store = open(&path);
    let appends = [
        start("awake"),
        with("asleep", Status::Running, Some(Timestamp(9_000)), None),
        with("manual", Status::Manual, None, None),
        with("undoing", Status::RollingBack, None, None),
        with("queued", Status::Queued, None, None),
        with("over", Status::Succeeded, None, Some(Timestamp(2_000))),
    ];
    assert_eq!(store.append(&appends), Ok(vec![]));
    let mut tasks = Append {
        execution: "awake".into(),
        expected: EventId(2),
        queued: vec![task("q", "awake", 1), task("q", "awake", 2), task("p", "awake", 3)],
        ..Append::default()
    };
    assert_eq!(store.append(&[tasks.clone()]), Ok(vec![]));
    let lease = TaskLease {
        worker: "w".into(),
        held: Timestamp(30),
        heartbeat: Millis(1_000),
    };
    let held = TaskLeaseChange {
        execution: "awake".into(),
        call: EventId(2),
        lease: Some(lease),
    };
    tasks.queued.clear();
    tasks.leases.push(held);
    assert_eq!(store.append(&[tasks]), Ok(vec![]));
    assert_eq!(store.leased_tasks(&ShardSet::ALL).unwrap().len(), 1);
    drop(store);
    let done = restored(Some(&path), &Config::default()).unwrap();
    let mut aside: Vec<_> = done.aside.iter().map(|one| one.id.to_string()).collect();
    aside.sort();
    assert_eq!(aside, ["asleep", "awake", "manual", "undoing"]);
    assert_eq!(done.waiting, 1);
    let store = open(&path);
    assert!(store.due(&ShardSet::ALL, Timestamp(10_000), 10).unwrap().is_empty());
    assert!(store.awake(&ShardSet::ALL).unwrap().is_empty());
    assert_eq!(
        store.depths(&ShardSet::ALL),
        Ok(vec![]),
        "no worker gets what may be done"
    );
    assert_eq!(store.leased_tasks(&ShardSet::ALL), Ok(vec![]));
    let kept = store.record("asleep").unwrap().unwrap();
    assert!(kept.broken.unwrap().cause.contains("restored"));
    drop(store);
    assert_eq!(restored(Some(&path), &Config::default()).unwrap().aside, []);
}
