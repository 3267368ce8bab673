//! Several processes on one table: each execution is with one of them at a time.

use crate::faults::Plan;
use crate::on_both;
use crate::stand::{NOON, SetClock, Stand};
use starbridge_flow::time::Timestamp;
use starbridge_ports::{Append, ExecutionLeases, ExecutionRecord, History, Refusal, ShardSet, StoreError};
use starbridge_tests::stores::{message, more, record, start};

on_both!(
    who_lost_an_execution_can_not_write_it,
    who_sleeps_is_free,
    mail_keeps_an_execution,
    messages_are_left_for_who_has_it,
    executions_are_stranded,
    a_lost_answer_is_no_conflict,
);

/// On one stand-in only: the other looks at an item and changes it with no lock, so that two conditions hold at once there.
#[test]
fn of_several_that_load_one_has_it() {
    of_those_that_load_one_has_it(&Stand::start(starbridge_services::Kind::Ministack));
}

const LEASE: i64 = 15 * 60 * 1_000;

fn sleeps(append: Append, wake_at: Option<i64>) -> Append {
    let record = ExecutionRecord {
        awake: false,
        wake_at: wake_at.map(Timestamp),
        ..record("")
    };
    Append {
        record: Some(record),
        ..append
    }
}

fn who_lost_an_execution_can_not_write_it(stand: &Stand) {
    let (table, clock) = (stand.table(), SetClock::at(NOON));
    let (one, two) = (
        stand.store_with(&table, "one", clock.clone()),
        stand.store_with(&table, "two", clock.clone()),
    );
    one.append(&[start("a"), more("a", 2, 1)]).unwrap();
    let until = Timestamp(NOON + LEASE);
    assert_eq!(two.load("a").unwrap_err(), StoreError::Held(until));
    assert_eq!(two.append(&[more("a", 3, 1)]).unwrap(), [(0, Refusal::Conflict)]);
    // To look at it is no taking.
    assert_eq!(two.load_whole("a").unwrap().unwrap().turns.len(), 2);
    clock.set(NOON + LEASE + 1);
    let loaded = two.load("a").unwrap().unwrap();
    assert_eq!(loaded.turns.len(), 2);
    // With a record or without, what the one before writes now comes too late.
    assert_eq!(one.append(&[more("a", 3, 1)]).unwrap(), [(0, Refusal::Conflict)]);
    assert_eq!(two.append(&[more("a", 3, 1)]).unwrap(), []);
    assert_eq!(two.load_whole("a").unwrap().unwrap().turns.len(), 3);
    assert!(matches!(one.load("a"), Err(StoreError::Held(_))));
    // The other way round, with a change of the record.
    one.append(&[start("b")]).unwrap();
    clock.set(NOON + 3 * LEASE);
    two.load("b").unwrap();
    assert_eq!(
        one.append(&[sleeps(more("b", 2, 1), None)]).unwrap(),
        [(0, Refusal::Conflict)]
    );
    let alone = Append {
        turn: None,
        sent: vec![message("b", 2, "a")],
        ..more("b", 2, 1)
    };
    one.append(std::slice::from_ref(&alone)).unwrap();
    assert_eq!(two.append(&[alone]).unwrap(), []);
}

fn who_sleeps_is_free(stand: &Stand) {
    let table = stand.table();
    let (one, two) = (stand.store(&table, "one"), stand.store(&table, "two"));
    one.append(&[start("a"), start("b")]).unwrap();
    assert!(matches!(two.load("a"), Err(StoreError::Held(_))));
    assert_eq!(one.append(&[sleeps(more("a", 2, 1), None)]).unwrap(), []);
    assert!(two.load("a").unwrap().is_some());
    assert!(matches!(one.load("a"), Err(StoreError::Held(_))));
    assert_eq!(two.append(&[more("a", 3, 1)]).unwrap(), []);
    assert_eq!(two.release("a"), Ok(true));
    assert_eq!(two.release("a"), Ok(true));
    assert!(one.load("a").unwrap().is_some());
    // An ended execution is read without taking its lease.
    let ended = ExecutionRecord {
        status: starbridge_machine::Status::Failed,
        awake: false,
        ended: Some(Timestamp(5)),
        ..record("")
    };
    let end = Append {
        record: Some(ended),
        ..more("b", 2, 1)
    };
    assert_eq!(one.append(&[end]).unwrap(), []);
    for store in [&two, &one] {
        assert!(store.load("b").unwrap().is_some());
    }
    // The owner that continues it holds it.
    let again = Append {
        record: Some(record("")),
        ..more("b", 3, 1)
    };
    assert_eq!(two.append(&[again]).unwrap(), []);
    assert!(matches!(one.load("b"), Err(StoreError::Held(_))));
    assert_eq!(two.append(&[more("b", 4, 1)]).unwrap(), []);
}

fn mail_keeps_an_execution(stand: &Stand) {
    let table = stand.table();
    let (one, two) = (stand.store(&table, "one"), stand.store(&table, "two"));
    one.append(&[start("a")]).unwrap();
    let sends = Append {
        sent: vec![message("b", 2, "a")],
        ..start("b")
    };
    two.append(&[sends]).unwrap();
    assert_eq!(one.append(&[sleeps(more("a", 2, 1), None)]).unwrap(), []);
    assert!(matches!(two.load("a"), Err(StoreError::Held(_))));
    assert_eq!(one.release("a"), Ok(false));
    assert_eq!(one.messages_for("a").unwrap(), [message("b", 2, "a")]);
    let seen = Append {
        received: vec![message("b", 2, "a").id],
        ..sleeps(more("a", 3, 1), None)
    };
    assert_eq!(one.append(&[seen]).unwrap(), []);
    let loaded = two.load("a").unwrap().unwrap();
    assert_eq!((loaded.turns.len(), loaded.messages), (3, vec![]));
}

fn messages_are_left_for_who_has_it(stand: &Stand) {
    let (table, clock) = (stand.table(), SetClock::at(NOON));
    let (one, two) = (
        stand.store_with(&table, "one", clock.clone()),
        stand.store_with(&table, "two", clock.clone()),
    );
    assert_eq!(two.leave_message(&message("x", 1, "a")), Ok(false));
    one.append(&[start("a")]).unwrap();
    assert_eq!(two.leave_message(&message("x", 1, "a")), Ok(true));
    assert_eq!(two.leave_message(&message("x", 1, "a")), Ok(true));
    assert_eq!(one.leave_message(&message("y", 1, "a")), Ok(false));
    assert_eq!(two.leave_message(&message("w", 1, "a")), Ok(true));
    assert_eq!(one.release("a"), Ok(false));
    let mail = [message("x", 1, "a"), message("w", 1, "a")];
    assert_eq!(one.messages_for("a").unwrap(), mail);
    assert_eq!(one.release("a"), Ok(true));
    assert_eq!(two.leave_message(&message("z", 1, "a")), Ok(false));
    assert_eq!(two.load("a").unwrap().unwrap().messages, mail);
    assert_eq!(one.leave_message(&message("z", 1, "a")), Ok(true));
    clock.set(NOON + LEASE);
    assert_eq!(one.leave_message(&message("v", 1, "a")), Ok(false));
    assert_eq!(one.leave_message(&message("z", 1, "a")), Ok(false));
}

fn of_those_that_load_one_has_it(stand: &Stand) {
    let (table, clock) = (stand.table(), SetClock::at(NOON));
    let maker = stand.store_with(&table, "maker", clock.clone());
    let ids: Vec<String> = (0..6).map(|number| format!("e{number}")).collect();
    for (number, id) in ids.iter().enumerate() {
        maker.append(&[start(id)]).unwrap();
        if number % 2 == 0 {
            assert_eq!(maker.release(id), Ok(true));
        }
    }
    // Half of them are free, those of the others are over.
    clock.set(NOON + LEASE + 1);
    let stores = ["one", "two", "three"].map(|owner| stand.store_with(&table, owner, clock.clone()));
    for id in &ids {
        let won: usize = std::thread::scope(|scope| {
            let racing: Vec<_> = stores
                .iter()
                .map(|store| {
                    scope.spawn(|| match store.load(id) {
                        Ok(Some(_)) => 1,
                        Err(StoreError::Held(_)) => 0,
                        other => panic!("{other:?}"),
                    })
                })
                .collect();
            racing.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1, "{id}");
        let kept: usize = stores
            .iter()
            .map(|store| usize::from(store.append(&[more(id, 2, 1)]).unwrap().is_empty()))
            .sum();
        assert_eq!(kept, 1, "{id}");
    }
}

fn executions_are_stranded(stand: &Stand) {
    let (table, clock) = (stand.table(), SetClock::at(NOON));
    let (one, two) = (
        stand.store_with(&table, "one", clock.clone()),
        stand.store_with(&table, "two", clock.clone()),
    );
    one.hold_until(Timestamp(NOON + 1_000));
    one.append(&[start("held")]).unwrap();
    one.append(&[start("free"), start("asleep"), start("for ever"), start("mail")])
        .unwrap();
    assert_eq!(one.release("free"), Ok(true));
    one.append(&[
        sleeps(more("asleep", 2, 1), Some(NOON + 500)),
        sleeps(more("for ever", 2, 1), None),
    ])
    .unwrap();
    two.leave_message(&message("x", 1, "mail")).unwrap();
    one.append(&[sleeps(more("mail", 2, 1), Some(NOON + 100))]).unwrap();
    let stranded = |at, limit| {
        let found = two.stranded(Timestamp(at), limit).unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(stranded(NOON, 9), [""; 0]);
    assert_eq!(stranded(NOON + 1, 9), ["free"]);
    assert_eq!(stranded(NOON + 501, 9), ["free", "asleep"]);
    assert_eq!(stranded(NOON + 501, 1), ["free"]);
    let mut all = stranded(NOON + 1_001, 9);
    all.sort();
    assert_eq!(all, ["asleep", "free", "held", "mail"]);
    clock.set(NOON + 1_001);
    for id in all {
        two.hold_until(Timestamp(NOON + 9_000));
        assert!(two.load(&id).unwrap().is_some());
    }
    assert_eq!(stranded(NOON + 1_002, 9), [""; 0]);
    assert_eq!(two.awake(&ShardSet::ALL).unwrap(), ["free", "held"]);
    // One that sleeps for good is to see to its mail, whether or not its sender wakes it.
    let sends = Append {
        sent: vec![message("held", 2, "for ever"), message("held", 2, "asleep")],
        ..more("held", 2, 1)
    };
    assert_eq!(two.append(&[sends]).unwrap(), []);
    assert_eq!(stranded(NOON + 1_002, 9), ["for ever"]);
    assert_eq!(two.load("for ever").unwrap().unwrap().messages.len(), 1);
    assert_eq!(two.release("for ever"), Ok(true));
    assert_eq!(stranded(NOON + 1_002, 9), [""; 0]);
}

/// Each kind of write is done without an answer, and done again.
fn a_lost_answer_is_no_conflict(stand: &Stand) {
    let table = stand.table();
    let lossy = |owner: &str, what| {
        let plan = Plan::lose_one(what);
        (stand.store(&table, owner).with_faults(plan.hook()), plan)
    };
    let lost = |plan: &Plan| assert_eq!(plan.faults(), 1);
    let named = |id: &str| {
        let append = start(id);
        let record = append.record.clone().map(|record| ExecutionRecord {
            name: format!("the {id}").into(),
            ..record
        });
        Append { record, ..append }
    };
    let (one, plan) = lossy("one", "PutItem");
    assert_eq!(one.append(&[start("a")]).unwrap(), []);
    lost(&plan);
    let (one, plan) = lossy("one", "TransactWriteItems");
    assert_eq!(one.append(&[named("n")]).unwrap(), []);
    lost(&plan);
    let (one, plan) = lossy("one", "PutItem");
    assert_eq!(one.append(&[more("a", 2, 1)]).unwrap(), []);
    lost(&plan);
    let (one, plan) = lossy("one", "TransactWriteItems");
    assert_eq!(one.append(&[sleeps(more("a", 3, 1), None)]).unwrap(), []);
    lost(&plan);
    let (two, plan) = lossy("two", "UpdateItem");
    assert_eq!(two.load("a").unwrap().unwrap().turns.len(), 3);
    lost(&plan);
    let (one, plan) = lossy("one", "TransactWriteItems");
    assert_eq!(one.leave_message(&message("x", 1, "a")), Ok(true));
    lost(&plan);
    assert_eq!(two.messages_for("a").unwrap().len(), 1);
    assert_eq!(two.release("a"), Ok(true));
}
