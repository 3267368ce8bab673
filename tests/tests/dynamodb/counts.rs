//! The number of written items: each one costs money.

use crate::on_both;
use crate::stand::Stand;
use starbridge_dynamodb::Counted;
use starbridge_flow::time::Timestamp;
use starbridge_machine::Status;
use starbridge_ports::{Append, ExecutionRecord, History};
use starbridge_tests::stores::{message, more, record, start_as};

on_both!(writes_are_few, a_batch_is_an_item_for_each_execution);

fn since(before: Counted, now: Counted) -> (u64, u64, u64) {
    (
        now.reads - before.reads,
        now.written - before.written,
        now.transactions - before.transactions,
    )
}

/// An id in the usual form: no execution has such a name.
fn id(number: u32) -> String {
    format!("0198c0de-0000-7000-8000-{number:012}")
}

fn unnamed(number: u32) -> Append {
    start_as(&id(number), record(""))
}

fn ended() -> ExecutionRecord {
    ExecutionRecord {
        status: Status::Succeeded,
        awake: false,
        ended: Some(Timestamp(9_000)),
        ..record("")
    }
}

fn writes_are_few(stand: &Stand) {
    let store = stand.store(&stand.table(), "one");
    // The first of a flow has that flow listed.
    store.append(&[unnamed(0)]).unwrap();
    let begun = store.counted();
    store.append(&[unnamed(1)]).unwrap();
    assert_eq!(since(begun, store.counted()), (0, 1, 0));
    for turn in 0..9 {
        store.append(&[more(&id(1), 2 + turn, 1)]).unwrap();
    }
    assert_eq!(since(begun, store.counted()), (0, 10, 0));
    let end = Append {
        record: Some(ended()),
        ..more(&id(1), 11, 1)
    };
    assert_eq!(store.append(&[end]).unwrap(), []);
    assert_eq!(since(begun, store.counted()), (0, 12, 1));
    // An append that does not follow is refused without a request.
    let before = store.counted();
    assert_eq!(store.append(&[more(&id(0), 7, 1)]).unwrap().len(), 1);
    assert_eq!(since(before, store.counted()), (0, 0, 0));
    // One with a name has an item more.
    let before = store.counted();
    store.append(&[start_as(&id(2), record("daily"))]).unwrap();
    assert_eq!(since(before, store.counted()), (0, 2, 1));
    // A message is its item, and a count at who gets it.
    let before = store.counted();
    let sends = Append {
        sent: vec![message(&id(2), 3, &id(0))],
        ..more(&id(2), 2, 1)
    };
    store.append(&[sends]).unwrap();
    assert_eq!(since(before, store.counted()), (0, 3, 1));
}

/// The caller may be work of another runtime, even on its only thread.
#[tokio::test]
async fn it_can_be_asked_within_a_runtime() {
    let stand = Stand::start(starbridge_services::Kind::Ministack);
    let store = stand.store(&stand.table(), "one");
    assert_eq!(store.append(&[unnamed(1)]).unwrap(), []);
    assert!(store.load(&id(1)).unwrap().is_some());
}

fn a_batch_is_an_item_for_each_execution(stand: &Stand) {
    let store = stand.store(&stand.table(), "one");
    store.append(&[unnamed(0)]).unwrap();
    let before = store.counted();
    let batch = [
        unnamed(1),
        unnamed(2),
        more(&id(1), 2, 1),
        more(&id(2), 2, 3),
        more(&id(1), 3, 1),
        Append {
            record: Some(ended()),
            ..more(&id(1), 4, 1)
        },
    ];
    assert_eq!(store.append(&batch).unwrap(), []);
    assert_eq!(since(before, store.counted()), (0, 2, 0));
    let loaded = store.load(&id(1)).unwrap().unwrap();
    assert_eq!(loaded.turns.len(), 4);
    assert_eq!(loaded.record.ended, Some(Timestamp(9_000)));
}
