//! The database goes away in the middle, and comes back.

use crate::stand::Stand;
use starbridge_ports::{Audit, AuditQuery, History, Listing, StoreError};
use starbridge_postgres::PostgresStore;
use starbridge_tests::stores::operating::entry;
use starbridge_tests::stores::{more, start};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn requests_are_refused_while_it_is_away_and_others_wait() {
    let mut stand = Stand::start();
    let store = PostgresStore::open(&stand.settings()).unwrap();
    let patient = store.patient();
    assert_eq!(store.append(&[start("a")]), Ok(vec![]));
    stand.service.stop();
    assert!(matches!(store.record("a"), Err(StoreError::Unavailable(_))));
    assert!(store.is_away());
    assert!(matches!(store.append(&[start("b")]), Err(StoreError::Unavailable(_))));
    std::thread::scope(|scope| {
        let appended = scope.spawn(|| patient.append(&[more("a", 2, 1)]));
        let read = scope.spawn(|| patient.record("a"));
        stand.service.start_again();
        assert_eq!(appended.join().unwrap(), Ok(vec![]));
        assert!(read.join().unwrap().unwrap().is_some());
    });
    assert!(!store.is_away());
    assert_eq!(store.last_turn("a").unwrap().unwrap().first.0, 3);
    assert_eq!(store.record("b"), Ok(None));
}

/// Turns, each with an entry of the audit list, which nothing keeps from being added twice, while the database is killed
/// again and again.
#[test]
fn what_was_acknowledged_is_there_once_however_the_database_ends() {
    const KILLS: u32 = 8;
    let mut stand = Stand::start();
    let settings = stand.settings();
    let store = PostgresStore::open(&settings).unwrap();
    let patient = store.patient();
    assert_eq!(patient.append(&[start("a")]), Ok(vec![]));
    let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut last = 2;
            while !over.load(Ordering::SeqCst) {
                let mut append = more("a", last, 1);
                append
                    .audit
                    .push(entry("ann", "stop", "a", i64::try_from(last).unwrap()));
                assert_eq!(patient.append(&[append]), Ok(vec![]));
                last += 1;
                acknowledged.store(last, Ordering::SeqCst);
            }
        });
        for _ in 0..KILLS {
            let before = acknowledged.load(Ordering::SeqCst);
            while acknowledged.load(Ordering::SeqCst) < before + 20 && !writer.is_finished() {
                std::thread::yield_now();
            }
            stand.service.kill();
            stand.service.start_again();
        }
        over.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
    let last = acknowledged.load(Ordering::SeqCst);
    let turns = store.load_whole("a").unwrap().unwrap().turns;
    let ends: Vec<u64> = turns.iter().skip(1).map(|turn| turn.first.0).collect();
    assert_eq!(ends, (3..=last).collect::<Vec<_>>());
    let all = AuditQuery {
        limit: 1_000_000,
        ..AuditQuery::default()
    };
    let mut entries: Vec<i64> = store
        .audit(&all)
        .unwrap()
        .items
        .iter()
        .map(|(_, entry)| entry.time.0)
        .collect();
    entries.reverse();
    let wanted: Vec<i64> = (2..i64::try_from(last).unwrap()).collect();
    assert_eq!(entries, wanted, "each entry once");
}

/// One connection is ended in the middle of what it does: the store goes on with another.
#[test]
fn a_connection_that_is_ended_is_replaced() {
    let stand = Stand::start();
    let store = PostgresStore::open(&stand.settings()).unwrap();
    let patient = store.patient();
    assert_eq!(patient.append(&[start("a")]), Ok(vec![]));
    for last in 2..12 {
        stand.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'starbridge%'");
        assert_eq!(patient.append(&[more("a", last, 1)]), Ok(vec![]));
    }
    assert_eq!(patient.load_whole("a").unwrap().unwrap().turns.len(), 11);
}

/// The connection was lost as a new stay began, and nobody answered: the process knows that stay as its own.
#[test]
fn a_stay_that_nobody_answered_for_is_the_process_s_own() {
    let stand = Stand::start();
    let settings = stand.settings();
    let store = PostgresStore::open(&settings).unwrap();
    let patient = store.patient();
    assert_eq!(patient.append(&[start("a")]), Ok(vec![]));
    let schema = &settings.schema;
    stand.sql(&format!(
        "delete from {schema}.writers;
         insert into {schema}.nodes (name, version, joined, process)
            select name, version, joined, process from {schema}.nodes order by incarnation desc limit 1;
         insert into {schema}.writers select max(incarnation), 0, false from {schema}.nodes;
         select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'starbridge%'"
    ));
    assert_eq!(patient.append(&[more("a", 2, 1)]), Ok(vec![]));
    assert_eq!(stand.sql(&format!("select count(*) from {schema}.writers")), "1");
}

/// While the database was away, somebody else had the store: what this process knows is no longer so.
#[test]
fn a_store_that_somebody_else_had_meanwhile_is_given_up() {
    let mut stand = Stand::start();
    let settings = stand.settings();
    let store = PostgresStore::open(&settings).unwrap();
    let patient = store.patient();
    assert_eq!(patient.append(&[start("a")]), Ok(vec![]));
    stand.service.stop();
    stand.service.start_again();
    let other = PostgresStore::open(&settings).unwrap();
    assert_eq!(other.append(&[more("a", 2, 1)]), Ok(vec![]));
    let said = patient.append(&[more("a", 2, 1)]);
    assert!(
        matches!(&said, Err(StoreError::Unavailable(why)) if why.contains("has taken the store")),
        "{said:?}"
    );
    drop(other);
    assert!(patient.append(&[more("a", 3, 1)]).is_err(), "for good");
}
