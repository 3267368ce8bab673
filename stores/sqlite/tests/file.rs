//! What is particular to a store in a file: who owns it, what it was, what becomes of it.

use starbridge_fdl::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, History, Listing, Record, Turn};
use starbridge_sqlite::{OpenError, SqliteStore};

fn start(id: &str) -> Append {
    Append {
        execution: id.into(),
        turn: Some(Turn {
            first: EventId(1),
            events: 2,
            time: Timestamp(1_000),
            text: "[{},{}]".to_owned(),
        }),
        record: Some(Record {
            flow: "order".into(),
            version: 1,
            name: id.into(),
            status: Status::Running,
            awake: true,
            started: Timestamp(1_000),
            ..Record::default()
        }),
        ..Append::default()
    }
}

#[test]
fn what_is_kept_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.append(&[start("a"), start("b")]).unwrap(), []);
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.awake().unwrap(), ["a", "b"]);
    assert_eq!(store.named("order", "a").unwrap(), Some("a".into()));
    let history = store.load("b").unwrap().unwrap();
    assert_eq!(history.turns, [start("b").turn.unwrap()]);
    assert_eq!(history.record, start("b").record.unwrap());
}

#[test]
fn a_store_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let refused = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Taken { process: Some(process), .. } if process == std::process::id()));
    drop(store);
    SqliteStore::open(&path).unwrap();
}
