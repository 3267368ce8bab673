//! Properties of a store in a file: ownership, earlier versions, damage.

mod set_up;

use set_up::start;
use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, History, KeyValue, Listing, Retention, ShardSet, StoreError, Turn};
use starbridge_sqlite::{Flush, MAX_EVENTS, OpenError, Options, SqliteStore};
use std::path::Path;
use std::time::Duration;

#[test]
fn store_opened_again_has_what_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.append(&[start("a"), start("b")]).unwrap(), []);
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.awake(&ShardSet::ALL).unwrap(), ["a", "b"]);
    assert_eq!(store.named("order", "a").unwrap(), Some("a".into()));
    let history = store.load("b").unwrap().unwrap();
    assert_eq!(history.turns, [start("b").turn.unwrap()]);
    assert_eq!(history.record, start("b").record.unwrap());
}

#[test]
fn lock_gives_a_store_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Taken { process: Some(process), .. } if process == std::process::id()));
    #[cfg(unix)]
    {
        let other = folder.path().join("other.db");
        std::os::unix::fs::symlink(&path, &other).unwrap();
        assert!(matches!(SqliteStore::open(&other), Err(OpenError::Taken { .. })));
    }
    drop(store);
    SqliteStore::open(&path).unwrap();
}

/// A child that was just forked keeps the lock of a store that its parent has closed.
#[test]
fn lock_that_this_process_gives_back_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    for locked in [path.clone(), folder.path().join("store.db.lock")] {
        let kept = std::fs::File::open(&locked).unwrap();
        kept.try_lock().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let path = path.clone();
        let opening = std::thread::spawn(move || sender.send(SqliteStore::open(&path).map(drop)).unwrap());
        assert!(
            receiver.recv_timeout(Duration::from_millis(50)).is_err(),
            "it does not wait for {}",
            locked.display()
        );
        drop(kept);
        receiver.recv().unwrap().unwrap();
        opening.join().unwrap();
    }
}

/// Runs a statement on the file itself.
fn alter(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn foreign_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    alter(&path, "CREATE TABLE notes (text)");
    let before = std::fs::read(&path).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("{} is not a starbridge store", path.display())
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let path = folder.path().join("text");
    std::fs::write(
        &path,
        "no database, but a text that is longer than the head of one: ".repeat(20),
    )
    .unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(OpenError::Foreign { .. })));
    // An empty file may become a store.
    let path = folder.path().join("empty");
    std::fs::write(&path, "").unwrap();
    SqliteStore::open(&path).unwrap();
}

#[test]
fn later_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    alter(&path, "PRAGMA user_version = 99");
    let refused = SqliteStore::open(&path).unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("format 99") && said.contains("up to 12"), "{said}");
}

#[test]
fn changed_migration_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    alter(&path, "UPDATE migrations SET checksum = 'other'");
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Altered { migration: 1, .. }));
}

#[test]
fn damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let starts: Vec<Append> = (0..500).map(|number| start(&format!("e{number}"))).collect();
    store.append(&starts).unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    // Everything but the first page, which lists the tables.
    bytes[8192..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    match SqliteStore::open(&path) {
        Err(OpenError::Store(StoreError::Corrupt(why))) => assert!(why.contains("backup"), "{why}"),
        Err(other) => panic!("{other}"),
        Ok(store) => assert!(matches!(store.load("e7"), Err(StoreError::Corrupt(_)))),
    }
}

#[test]
fn full_disk_keeps_nothing_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        most_pages: 120,
        ..Options::default()
    };
    let path = folder.path().join("store.db");
    let store = SqliteStore::open_with(&path, &options).unwrap();
    let mut kept = Vec::new();
    let error = (0..)
        .find_map(|number| {
            let batch: Vec<Append> = (0..50).map(|at| start(&format!("{number:03}-{at:02}"))).collect();
            match store.append(&batch) {
                Ok(_) => {
                    kept.extend(batch.into_iter().map(|append| append.execution));
                    None
                }
                Err(error) => Some(error),
            }
        })
        .unwrap();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("no space is left")));
    assert!(!kept.is_empty());
    assert_eq!(store.awake(&ShardSet::ALL).unwrap(), kept);
    assert_eq!(store.counts().unwrap(), [(Status::Running, kept.len() as u64)]);
    // The data from the failed batch is dropped.
    let ended = Append {
        turn: None,
        expected: EventId(2),
        record: Some(ExecutionRecord {
            ended: Some(Timestamp(0)),
            ..ExecutionRecord::default()
        }),
        ..start(&kept[0])
    };
    assert_eq!(store.append(&[ended]).unwrap(), []);
    assert_eq!(store.clear(Timestamp(1), 1).unwrap(), 1);
    let again = start(&format!("{:03}-00", kept.len() / 50));
    assert_eq!(store.append(std::slice::from_ref(&again)).unwrap(), []);
    assert!(store.load(&again.execution).unwrap().is_some());
    drop(store);
    // With more room it goes on where it was.
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.append(&[start("more")]).unwrap(), []);
    assert_eq!(store.awake(&ShardSet::ALL).unwrap().len(), kept.len() + 1);
}

#[test]
fn backup_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    store.append(&[start("a")]).unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy).unwrap();
    store.append(&[start("b")]).unwrap();
    // Never over an existing file.
    assert!(store.backup(&copy).is_err());
    let copy = SqliteStore::open(&copy).unwrap();
    assert_eq!(copy.awake(&ShardSet::ALL).unwrap(), ["a"]);
    assert_eq!(copy.append(&[start("c")]).unwrap(), []);
    assert_eq!(store.awake(&ShardSet::ALL).unwrap(), ["a", "b"]);
}

#[test]
fn concurrent_readers_beside_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        readers: 3,
        flush: Flush::Never,
        ..Options::default()
    };
    let store = SqliteStore::open_with(folder.path().join("store.db"), &options).unwrap();
    let mut first = start("a");
    first.record.as_mut().unwrap().version = 2;
    store.append(&[first]).unwrap();
    let reader = || {
        let mut last = 0;
        while last < 402 {
            let history = store.load("a").unwrap().unwrap();
            let events: u64 = history.turns.iter().map(|turn| u64::from(turn.events)).sum();
            // Record and turns are from one moment, and time does not go back.
            assert_eq!(history.record.version, events);
            assert!(events >= last);
            last = events;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(reader);
        }
        for expected in (2..402).step_by(2) {
            let mut append = start("a");
            append.expected = EventId(expected);
            append.record.as_mut().unwrap().version = expected + 2;
            append.turn.as_mut().unwrap().first = EventId(expected + 1);
            assert_eq!(store.append(&[append]).unwrap(), []);
        }
    });
}

#[test]
fn retention_clears_a_long_history_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let ended = |id: &str| {
        let mut append = start(id);
        append.record.as_mut().unwrap().ended = Some(Timestamp(5));
        append
    };
    let mut batch = vec![ended("long")];
    batch.extend((2..5_000).step_by(2).map(|expected| Append {
        execution: "long".into(),
        expected: EventId(expected),
        turn: Some(Turn {
            first: EventId(expected + 1),
            ..start("").turn.unwrap()
        }),
        ..Append::default()
    }));
    batch.push(ended("short"));
    assert_eq!(store.append(&batch).unwrap(), []);
    assert_eq!(store.clear(Timestamp(6), 10).unwrap(), 1);
    assert_eq!(store.named("order", "long").unwrap(), None);
    drop(store);
    // Its number is not reused as long as turns of it exist.
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.clear(Timestamp(6), 10).unwrap(), 2);
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.append(&[start("long")]).unwrap(), []);
    assert_eq!(store.load("long").unwrap().unwrap().turns.len(), 1);
    let left = || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        let sql = "SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM cleared)";
        connection
            .query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .unwrap()
    };
    assert_eq!(left().1, 1);
    // As long as something is left, the result is not 0.
    let calls = (1..).find(|_| store.clear(Timestamp(6), 10).unwrap() == 0).unwrap();
    assert!((2..10).contains(&calls));
    assert_eq!(left(), (1, 0));
}

#[test]
fn limit_of_events_of_a_history() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    let with = |events: u64| {
        let mut append = start("a");
        append.turn.as_mut().unwrap().events = u32::try_from(events).unwrap();
        append
    };
    assert_eq!(store.append(&[with(MAX_EVENTS + 1)]).unwrap().len(), 1);
    assert_eq!(store.append(&[with(MAX_EVENTS)]).unwrap(), []);
    let turn = store.turn_of("a", EventId(MAX_EVENTS)).unwrap().unwrap();
    assert_eq!(u64::from(turn.events), MAX_EVENTS);
}

#[test]
fn missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let refused = SqliteStore::open(folder.path().join("none/store.db")).unwrap_err();
    assert!(matches!(refused, OpenError::Store(StoreError::Unavailable(_))));
}

#[test]
fn key_value_survives_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    SqliteStore::open(&path)
        .unwrap()
        .put_value("key", "a", "b", None)
        .unwrap();
    assert_eq!(
        SqliteStore::open(&path)
            .unwrap()
            .get_value("key", "a")
            .unwrap()
            .as_deref(),
        Some("b")
    );
}

/// Data that is written to a deleted or moved file is lost.
#[cfg(unix)]
#[test]
fn file_taken_away_is_noticed() {
    type Take = fn(&Path);
    let wal = |path: &Path| path.with_extension("db-wal");
    let gone: Take = |path| std::fs::remove_file(path).unwrap();
    let moved: Take = |path| std::fs::rename(path, path.with_extension("old")).unwrap();
    let replaced: Take = |path| {
        std::fs::copy(path, path.with_extension("copy")).unwrap();
        std::fs::rename(path.with_extension("copy"), path).unwrap();
    };
    for take in [gone, moved, replaced] {
        for of in [Path::to_path_buf, wal] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            let store = SqliteStore::open(&path).unwrap();
            store.append(&[start("a")]).unwrap();
            take(&of(&path));
            for id in ["b", "c"] {
                let refused = store.append(&[start(id)]);
                let why = "was taken away";
                assert!(
                    matches!(&refused, Err(StoreError::Unavailable(text)) if text.contains(why)),
                    "{refused:?}"
                );
            }
        }
    }
}

#[test]
fn retention_leaves_those_between() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    let ids: Vec<String> = (0..9).map(|number| format!("e{number}")).collect();
    let mut batch: Vec<Append> = ids.iter().map(|id| start(id)).collect();
    // The second turns stand in the order of the first ones, and every third execution goes on.
    batch.extend(ids.iter().enumerate().map(|(number, id)| {
        let begun = start(id);
        Append {
            expected: EventId(2),
            turn: Some(Turn {
                first: EventId(3),
                ..begun.turn.unwrap()
            }),
            record: Some(ExecutionRecord {
                ended: (number % 3 != 1).then_some(Timestamp(5)),
                ..begun.record.unwrap()
            }),
            execution: id.as_str().into(),
            ..Append::default()
        }
    }));
    assert_eq!(store.append(&batch).unwrap(), []);
    assert_eq!(store.clear(Timestamp(6), 10).unwrap(), 6);
    for (number, id) in ids.iter().enumerate() {
        let turns = store.load(id).unwrap().map(|history| history.turns.len());
        assert_eq!(turns, (number % 3 == 1).then_some(2), "{id}");
    }
    assert_eq!(store.clear(Timestamp(6), 10).unwrap(), 0);
}
