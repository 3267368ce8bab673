//! Characters that PostgreSQL can't hold, and texts at their limits.

use crate::stand::Stand;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::EventId;
use starbridge_ports::{
    Append, AttemptLog, History, KeptNotice, KeyValue, Listing, Notices, Query, Queueing, RecordedFailure,
    RequestChange, ShardSet,
};
use starbridge_postgres::PostgresStore;
use starbridge_tests::stores::{more, record, start_as};

/// Everything that may be in a text, and what stands for the first of it.
const ANY: &str = "\0 a\0\0b \u{e000} \u{e000}0 \u{1f600} \u{10ffff} ' \\ \" \n";

#[test]
fn text_with_any_character_is_kept() {
    let stand = Stand::start();
    let store = PostgresStore::open(&stand.settings()).unwrap();
    let mut begun = record(ANY);
    begun.labels = Some([(ANY.into(), Value::from(ANY))].into_iter().collect::<Object>());
    begun.once_key = Some(ANY.into());
    begun.failure = Some(RecordedFailure {
        error: ANY.into(),
        cause: ANY.into(),
        step: ANY.into(),
    });
    let mut append = start_as("a", begun.clone());
    append.logs.push(AttemptLog {
        event: EventId(2),
        text: ANY.to_owned(),
    });
    append.notices.push(KeptNotice {
        target: ANY.into(),
        event: EventId(1),
        text: ANY.to_owned(),
        ..KeptNotice::default()
    });
    append.queued.push(starbridge_ports::QueuedTask {
        queue: ANY.into(),
        execution: "a".into(),
        call: EventId(2),
        message: ANY.to_owned(),
        ..starbridge_ports::QueuedTask::default()
    });
    assert_eq!(store.append(&[append]), Ok(vec![]));
    let kept = Append {
        execution: "b".into(),
        record: Some(record("")),
        request: RequestChange::Keep(ANY.to_owned()),
        ..Append::default()
    };
    assert_eq!(store.append(&[kept]), Ok(vec![]));
    assert_eq!(store.record("a").unwrap(), Some(begun));
    assert_eq!(store.named("order", ANY).unwrap(), Some("a".into()));
    assert_eq!(store.keyed("order", ANY).unwrap(), Some("a".into()));
    let labelled = Query {
        labels: vec![(ANY.into(), ANY.into())],
        limit: 9,
        ..Query::default()
    };
    assert_eq!(store.list(&labelled).unwrap().items.len(), 1);
    assert_eq!(store.logs("a", EventId(0), 9).unwrap().unwrap()[0].text, ANY);
    assert_eq!(store.next_notices(&ShardSet::ALL, ANY, 9).unwrap()[0].text, ANY);
    assert_eq!(store.next_tasks(ANY, 9).unwrap()[0].message, ANY);
    store.put_value(ANY, ANY, ANY, None).unwrap();
    assert_eq!(store.list_values(ANY).unwrap(), [(ANY.to_owned(), ANY.to_owned())]);
}

#[test]
fn large_turn_and_checkpoint_are_kept() {
    let stand = Stand::start();
    let store = PostgresStore::open(&stand.settings()).unwrap();
    let text = format!("[\"{}\"]", "x".repeat(64 << 20));
    let mut append = start_as("a", record(""));
    if let Some(turn) = &mut append.turn {
        turn.text.clone_from(&text);
    }
    let mut next = more("a", 2, 1);
    next.checkpoint = Some(vec![7; 9 << 20]);
    assert_eq!(store.append(&[append, next]), Ok(vec![]));
    let whole = store.load_whole("a").unwrap().unwrap();
    assert!(whole.turns[0].text == text && whole.turns.len() == 2);
    assert_eq!(
        store.load("a").unwrap().unwrap().checkpoint,
        Some((EventId(3), vec![7; 9 << 20]))
    );
}
