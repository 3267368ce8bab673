//! Retention: the kept data, and for how long.

use crate::on_both;
use crate::stand::{NOON, SetClock, Stand, settings};
use starbridge_dynamodb::DynamoStore;
use starbridge_flow::time::Timestamp;
use starbridge_machine::Status;
use starbridge_ports::{Append, ExecutionRecord, History, Listing, Query, Retention};
use starbridge_tests::stores::{more, record, start, start_as, turn};
use std::time::Duration;

on_both!(what_is_over_is_seen_by_nobody);

fn what_is_over_is_seen_by_nobody(stand: &Stand) {
    let (table, clock) = (stand.table(), SetClock::at(NOON));
    let mut settings = settings(&table, "one", clock.clone());
    settings.retention = Some(Duration::from_secs(60));
    let store = DynamoStore::new(stand.aws.clone(), settings);
    // The stand-ins really delete what is over by their own clock: this one is far behind.
    let ended = |append: Append| Append {
        record: Some(ExecutionRecord {
            status: Status::Succeeded,
            awake: false,
            ended: Some(Timestamp(NOON)),
            ..record("")
        }),
        ..append
    };
    let named = || start_as("n", record("the n"));
    store.append(&[start("a"), named()]).unwrap();
    let ends = [ended(more("a", 2, 1)), ended(more("n", 2, 1))];
    assert_eq!(store.append(&ends).unwrap(), []);
    clock.set(NOON + 59_000);
    assert_eq!(store.append(&[start("a")]).unwrap().len(), 1);
    let list = || {
        let query = Query {
            limit: 9,
            ..Query::default()
        };
        store.list(&query).unwrap().items.len()
    };
    assert_eq!(list(), 2);
    clock.set(NOON + 60_000);
    assert_eq!(list(), 0);
    assert_eq!(store.counts().unwrap(), []);
    assert!(store.load("a").unwrap().is_none());
    assert!(store.load_whole("a").unwrap().is_none());
    assert_eq!(store.record("a").unwrap(), None);
    assert_eq!(store.named("order", "the n").unwrap(), None);
    assert_eq!(store.append(&[more("a", 3, 1)]).unwrap().len(), 1);
    // Their places are free, also where a name leads to one that is over.
    assert_eq!(store.append(&[start("a"), start_as("m", record("the n"))]).unwrap(), []);
    let loaded = store.load("a").unwrap().unwrap();
    assert_eq!(loaded.turns, [turn(1, 2)]);
    assert_eq!(store.named("order", "the n").unwrap(), Some("m".into()));
    // A hidden execution is cleared away with all its data; the one that took its name is not.
    assert_eq!(store.clear(Timestamp(NOON + 1), 9).unwrap(), 1);
    assert_eq!(store.clear(Timestamp(NOON + 1), 9).unwrap(), 0);
    assert_eq!(store.named("order", "the n").unwrap(), Some("m".into()));
}
