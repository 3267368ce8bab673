//! Keys of starts, and starts that are kept until their time.

use super::appending::exists;
use super::{Case, Tried, more, record, start, start_as, turn};
use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, Query, Refusal, RequestChange, ShardSet};

pub(super) const CASES: &[Case] = &[
    ("keys are unique in their flow", keys_are_unique_in_their_flow),
    ("a start is kept until it is carried out", a_start_is_kept),
    ("a start that is kept may be large", a_start_that_is_kept_may_be_large),
];

fn keys_are_unique_in_their_flow(tried: &mut Tried<'_>) {
    let keyed = |id: &str, flow: &str, key: &str, name: &str| {
        let record = ExecutionRecord {
            flow: flow.into(),
            once_key: Some(key.into()),
            ..record(name)
        };
        start_as(id, record)
    };
    let key = "a key \u{e4}/#' 7";
    let refused = tried.refused(&[
        keyed("a", "one", key, "a"),
        keyed("b", "two", key, "b"),
        keyed("c", "one", key, "c"),
        keyed("d", "one", "other", "d"),
    ]);
    let taken = Refusal::Exists {
        execution: "a".into(),
        version: 1,
        keyed: Some("a".into()),
    };
    assert_eq!(refused, [(2, taken.clone())]);
    assert!(tried.store().load("c").unwrap().is_none());
    // The one with the key goes before the one with the name.
    assert_eq!(tried.refused(&[keyed("e", "one", key, "d")]), [(0, taken.clone())]);
    for (flow, key, holder) in [
        ("one", key, Some("a")),
        ("two", key, Some("b")),
        ("one", "other", Some("d")),
        ("one", "a", None),
        ("three", key, None),
    ] {
        let found = tried.store().keyed(flow, key).unwrap();
        assert_eq!(found.as_deref(), holder, "{flow} {key}");
    }
    // It holds after the end, until the execution is cleared away.
    let ended = ExecutionRecord {
        status: Status::Succeeded,
        awake: false,
        ended: Some(Timestamp(2_000)),
        ..record("")
    };
    tried.append(&[Append {
        record: Some(ended),
        ..more("a", 2, 1)
    }]);
    assert_eq!(tried.refused(&[keyed("f", "one", key, "f")]), [(0, taken)]);
    assert_eq!(tried.store().clear(Timestamp(3_000), 9).unwrap(), 1);
    assert_eq!(tried.store().keyed("one", key).unwrap(), None);
    tried.append(&[keyed("f", "one", key, "f")]);
    assert_eq!(tried.store().keyed("one", key).unwrap(), Some("f".into()));
}

/// A start that is kept.
fn kept(id: &str, text: &str) -> Append {
    Append {
        execution: id.into(),
        record: Some(delayed(id)),
        request: RequestChange::Keep(text.to_owned()),
        ..Append::default()
    }
}

fn delayed(id: &str) -> ExecutionRecord {
    ExecutionRecord {
        status: Status::Delayed,
        awake: false,
        wake_at: Some(Timestamp(70)),
        requested: Some(Timestamp(1_000)),
        once_key: Some("k".into()),
        priority: Some(0),
        order_time: Some(-5),
        ..record(id)
    }
}

fn a_start_is_kept(tried: &mut Tried<'_>) {
    let text = r#"{"start": "it's \u0000"}"#;
    tried.append(&[kept("a", text)]);
    assert_eq!(
        tried.refused(&[kept("a", ""), start("a")]),
        [(0, exists("a", 1)), (1, Refusal::Conflict)]
    );
    assert_eq!(tried.store().record("a").unwrap(), Some(delayed("a")));
    assert_eq!(tried.store().named("order", "a").unwrap(), Some("a".into()));
    assert_eq!(tried.store().keyed("order", "k").unwrap(), Some("a".into()));
    assert_eq!(tried.store().counts().unwrap(), [(Status::Delayed, 1)]);
    assert!(tried.store().awake(&ShardSet::ALL).unwrap().is_empty());
    assert_eq!(
        tried.store().due(&ShardSet::ALL, Timestamp(71), 9).unwrap(),
        [(Timestamp(70), "a".into())]
    );
    assert_eq!(tried.store().last_turn("a").unwrap(), None);
    assert_eq!(tried.store().turn_of("a", EventId(1)).unwrap(), None);
    assert_eq!(tried.store().turns("a", EventId(1), 9, true).unwrap(), []);
    for whole in [true, false] {
        let store = tried.store();
        let loaded = if whole { store.load_whole("a") } else { store.load("a") };
        let loaded = loaded.unwrap().unwrap();
        assert_eq!((loaded.request.as_deref(), loaded.turns), (Some(text), vec![]));
    }
    // A turn that does not carry it out is another start.
    assert_eq!(tried.refused(&[start("a")]), [(0, exists("a", 1))]);
    let begun = ExecutionRecord {
        started: Timestamp(5_000),
        priority: delayed("a").priority,
        order_time: delayed("a").order_time,
        ..record("a")
    };
    let begin = Append {
        request: RequestChange::Begin,
        ..start_as("a", begun.clone())
    };
    tried.append(std::slice::from_ref(&begin));
    assert_eq!(tried.refused(&[begin]), [(0, Refusal::Conflict)]);
    let expected = ExecutionRecord {
        requested: delayed("a").requested,
        once_key: delayed("a").once_key,
        ..begun
    };
    assert_eq!(tried.store().record("a").unwrap(), Some(expected));
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!((loaded.request, loaded.turns), (None, vec![turn(1, 2)]));
    assert_eq!(tried.store().last_turn("a").unwrap(), Some(turn(1, 2)));
    tried.append(&[more("a", 2, 1)]);
    assert_eq!(
        tried.store().turns("a", EventId(9), 9, true).unwrap(),
        [turn(3, 1), turn(1, 2)]
    );
    assert_eq!(tried.store().counts().unwrap(), [(Status::Running, 1)]);
    // Nothing to carry out.
    let nowhere = Append {
        request: RequestChange::Begin,
        ..start("b")
    };
    assert_eq!(tried.refused(&[nowhere]), [(0, Refusal::Conflict)]);
}

fn a_start_that_is_kept_may_be_large(tried: &mut Tried<'_>) {
    let large = "x\u{e4}\"".repeat(300_000);
    tried.append(&[kept("a", &large)]);
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!(loaded.request.as_deref(), Some(large.as_str()));
    // Lists go by when it was asked for.
    let query = |from| Query {
        from: Some(Timestamp(from)),
        limit: 9,
        ..Query::default()
    };
    let begin = Append {
        request: RequestChange::Begin,
        ..start_as(
            "a",
            ExecutionRecord {
                started: Timestamp(9_000),
                ..record("a")
            },
        )
    };
    tried.append(&[begin]);
    assert_eq!(tried.store().list(&query(1_000)).unwrap().items.len(), 1);
    assert_eq!(tried.store().list(&query(1_001)).unwrap().items.len(), 0);
}
