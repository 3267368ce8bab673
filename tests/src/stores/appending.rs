//! Appending and loading.

use super::{Case, Tried, message, more, record, start, start_as, turn};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent, Status};
use starbridge_ports::{
    Append, Broken, CULPRIT, ExecutionRecord, FailedUndo, Loading, Mark, Message, MessageBody, Query, Receivers,
    RecordedFailure, RecordedPause, Refusal, RequestChange, SUSPECT, ShardSet,
};

pub(super) const CASES: &[Case] = &[
    ("what is appended is loaded", what_is_appended_is_loaded),
    ("a record keeps its beginning", a_record_keeps_its_beginning),
    ("several are loaded together", several_are_loaded_together),
    ("a checkpoint shortens loading", a_checkpoint_shortens_loading),
    ("ids are unique", ids_are_unique),
    ("names are unique in their flow", names_are_unique_in_their_flow),
    ("a name that is an id is a name", a_name_that_is_an_id_is_a_name),
    ("histories go on where they end", histories_go_on_where_they_end),
    (
        "after a refusal nothing of that execution is kept",
        after_a_refusal_nothing_is_kept,
    ),
    ("messages are kept until they are dealt with", messages_are_kept),
    ("a message goes with its turn", a_message_goes_with_its_turn),
    ("who is awake", who_is_awake),
    ("who is due", who_is_due),
    ("what ended may go on", what_ended_may_go_on),
    ("who is set aside", who_is_set_aside),
];

fn who_is_set_aside(tried: &mut Tried<'_>) {
    tried.append(&[start("a"), start("b"), start("c")]);
    let ended = ExecutionRecord {
        status: Status::Succeeded,
        awake: false,
        ended: Some(Timestamp(9)),
        ..record("")
    };
    tried.append(&[Append {
        record: Some(ended),
        ..more("c", 2, 1)
    }]);
    let broken = Broken {
        since: Timestamp(7),
        cause: "it \"panicked\"".into(),
    };
    let attempts = |tried: &mut Tried<'_>, marks: &[Mark]| {
        let marks: Vec<_> = marks.iter().map(|mark| ("b".into(), mark.clone())).collect();
        tried.store().mark(&marks, None).unwrap();
        tried.store().record("b").unwrap().unwrap().attempts
    };
    let failed = vec![Mark::Failed; 4];
    assert_eq!(attempts(tried, &failed[..1]), 1);
    assert_eq!(attempts(tried, &failed), SUSPECT);
    assert_eq!(attempts(tried, &[Mark::Alone]), SUSPECT + 1);
    assert_eq!(attempts(tried, &[Mark::Survived]), SUSPECT);
    assert_eq!(attempts(tried, &[Mark::Survived]), SUSPECT);
    assert_eq!(attempts(tried, &[Mark::Alone, Mark::Failed, Mark::Alone]), CULPRIT);
    assert_eq!(attempts(tried, &[Mark::Survived]), SUSPECT + 1);
    let marks = ["a", "c", "nowhere"].map(|id| (id.into(), Mark::Broken(broken.clone())));
    tried.store().mark(&marks, None).unwrap();
    let query = Query {
        broken: true,
        limit: 10,
        ..Query::default()
    };
    let page = tried.store().list(&query).unwrap();
    let ids: Vec<_> = page.items.iter().map(|listed| listed.id.as_str()).collect();
    assert_eq!(ids, ["a"]);
    assert_eq!(tried.store().record("a").unwrap().unwrap().broken, Some(broken));
    assert_eq!(tried.store().awake(&ShardSet::ALL).unwrap(), ["b"]);
    assert_eq!(tried.store().due(&ShardSet::ALL, Timestamp(i64::MAX), 10).unwrap(), []);
    // It is gone on with as it was, or by a turn that brings a record.
    tried.store().mark(&[("a".into(), Mark::Whole)], None).unwrap();
    tried.append(&[Append {
        record: Some(record("")),
        ..more("b", 2, 1)
    }]);
    assert_eq!(tried.store().list(&query).unwrap().items, []);
    assert_eq!(tried.store().awake(&ShardSet::ALL).unwrap(), ["a", "b"]);
    assert_eq!(tried.store().record("b").unwrap().unwrap().attempts, 0);
}

pub(super) fn exists(execution: &str, version: u64) -> Refusal {
    Refusal::Exists {
        execution: execution.into(),
        version,
        keyed: None,
    }
}

fn what_is_appended_is_loaded(tried: &mut Tried<'_>) {
    assert!(tried.store().load("a").unwrap().is_none());
    tried.append(&[start("a"), start("b"), more("a", 2, 3)]);
    tried.append(&[more("a", 5, 1), more("b", 2, 40)]);
    let a = tried.store().load("a").unwrap().unwrap();
    assert_eq!(a.record, record("a"));
    assert_eq!(a.checkpoint, None);
    assert_eq!(a.turns, [turn(1, 2), turn(3, 3), turn(6, 1)]);
    let b = tried.store().load_whole("b").unwrap().unwrap();
    assert_eq!(b.turns, [turn(1, 2), turn(3, 40)]);
    tried.append(&[]);
}

/// A record with something in every place.
fn full() -> ExecutionRecord {
    let labels: Object = serde_json::from_str(r#"{"region":"eu","who":"Zoë \"z\""}"#).unwrap();
    ExecutionRecord {
        version: 7,
        name: "nightly 'run'".into(),
        wake_at: Some(Timestamp(5_000)),
        awake: false,
        labels: Some(labels),
        parent: Some(Parent {
            execution: "p".into(),
            event: EventId(9),
        }),
        root: Some("g".into()),
        depth: 2,
        awaited: true,
        failure: Some(RecordedFailure {
            error: "Broken".into(),
            cause: String::new().into(),
            step: "s".into(),
        }),
        rollback: Some(FailedUndo {
            step: "s".into(),
            error: "HTTP.503".into(),
            cause: "closed".into(),
            left: vec!["s".into(), "r".into()],
        }),
        forked: Some(Parent {
            execution: "o".into(),
            event: EventId(4),
        }),
        status: Status::RollingBack,
        paused: Some(RecordedPause {
            since: Timestamp(4_000),
            by: "ann \"a\"".into(),
            cause: "".into(),
        }),
        ..record("")
    }
}

fn a_record_keeps_its_beginning(tried: &mut Tried<'_>) {
    tried.append(&[start_as("a", full())]);
    assert_eq!(tried.store().record("a").unwrap(), Some(full()));
    assert_eq!(tried.store().parent_of("a").unwrap(), Some("p".into()));
    assert_eq!(tried.store().parent_of("nowhere").unwrap(), None);
    let later = ExecutionRecord {
        flow: "other".into(),
        name: "other".into(),
        started: Timestamp(9),
        version: 8,
        status: Status::RollbackFailed,
        ended: Some(Timestamp(-3)),
        ..ExecutionRecord::default()
    };
    tried.append(&[Append {
        record: Some(later.clone()),
        ..more("a", 2, 1)
    }]);
    let expected = ExecutionRecord {
        flow: full().flow,
        name: full().name,
        started: full().started,
        labels: full().labels,
        parent: full().parent,
        root: full().root,
        depth: full().depth,
        forked: full().forked,
        ..later
    };
    assert_eq!(tried.store().record("a").unwrap(), Some(expected));
    assert_eq!(tried.store().named("order", "nightly 'run'").unwrap(), Some("a".into()));
    assert_eq!(tried.store().named("other", "other").unwrap(), None);
}

fn several_are_loaded_together(tried: &mut Tried<'_>) {
    tried.append(&[start("a"), start("b"), start("c"), more("c", 2, 3)]);
    let mut checkpoint = more("b", 2, 1);
    checkpoint.checkpoint = Some(vec![1, 2]);
    tried.append(&[checkpoint, more("b", 3, 2)]);
    let mut kept = start("d");
    (kept.turn, kept.request) = (None, RequestChange::Keep("how".to_owned()));
    if let Some(record) = &mut kept.record {
        record.status = Status::Queued;
    }
    tried.append(&[kept]);
    let ids = ["c", "nobody", "a", "d", "b"].map(Text::from);
    let many = tried.store().load_many(&ids).unwrap();
    assert_eq!(many.len(), ids.len());
    let parts = |loaded: Loading| loaded.map(|found| found.map(|it| (it.record, it.checkpoint, it.turns, it.request)));
    let alone = ids.iter().map(|id| parts(tried.store().load(id)));
    let together: Vec<_> = many.into_iter().map(parts).collect();
    assert_eq!(together, alone.collect::<Vec<_>>());
    assert!(tried.store().load_many(&[]).unwrap().is_empty());
}

fn a_checkpoint_shortens_loading(tried: &mut Tried<'_>) {
    let state = |state: &[u8], append: Append| Append {
        checkpoint: Some(state.to_vec()),
        ..append
    };
    tried.append(&[start("a"), state(&[0, 255, 7], more("a", 2, 3)), more("a", 5, 1)]);
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!(loaded.checkpoint, Some((EventId(5), vec![0, 255, 7])));
    assert_eq!(loaded.turns, [turn(6, 1)]);
    let whole = tried.store().load_whole("a").unwrap().unwrap();
    assert_eq!(whole.checkpoint, None);
    assert_eq!(whole.turns.len(), 3);
    // A later one takes its place, with or without a turn.
    let alone = Append {
        execution: "a".into(),
        expected: EventId(6),
        ..Append::default()
    };
    tried.append(&[state(&[], alone)]);
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!((loaded.checkpoint, loaded.turns), (Some((EventId(6), vec![])), vec![]));
}

fn ids_are_unique(tried: &mut Tried<'_>) {
    tried.append(&[start("a")]);
    let other = ExecutionRecord {
        flow: "other".into(),
        version: 5,
        ..record("other")
    };
    let refused = tried.refused(&[start("b"), start_as("a", other), start("c")]);
    assert_eq!(refused, [(1, exists("a", 1))]);
    assert_eq!(tried.store().record("a").unwrap(), Some(record("a")));
    assert_eq!(tried.store().named("other", "other").unwrap(), None);
    assert_eq!(tried.store().awake(&ShardSet::ALL).unwrap(), ["a", "b", "c"]);
    // In one batch as well.
    assert_eq!(tried.refused(&[start("d"), start("d")]), [(1, exists("d", 1))]);
}

fn names_are_unique_in_their_flow(tried: &mut Tried<'_>) {
    let named = |id: &str, flow: &str, version| {
        let record = ExecutionRecord {
            flow: flow.into(),
            version,
            ..record("daily")
        };
        start_as(id, record)
    };
    let refused = tried.refused(&[named("a", "one", 3), named("b", "two", 1), named("c", "one", 4)]);
    assert_eq!(refused, [(2, exists("a", 3))]);
    assert!(tried.store().load("c").unwrap().is_none());
    assert_eq!(tried.refused(&[named("d", "two", 1)]), [(0, exists("b", 1))]);
    assert_eq!(tried.store().named("one", "daily").unwrap(), Some("a".into()));
    assert_eq!(tried.store().named("two", "daily").unwrap(), Some("b".into()));
    assert_eq!(tried.store().named("three", "daily").unwrap(), None);
    assert_eq!(tried.store().named("one", "a").unwrap(), None);
}

fn a_name_that_is_an_id_is_a_name(tried: &mut Tried<'_>) {
    tried.append(&[start("a"), start_as("b", record("x"))]);
    assert_eq!(tried.store().named("order", "a").unwrap(), Some("a".into()));
    let refused = tried.refused(&[start_as("c", record("a")), start("x")]);
    assert_eq!(refused, [(0, exists("a", 1)), (1, exists("b", 1))]);
    let elsewhere = |name| ExecutionRecord {
        flow: "other".into(),
        ..record(name)
    };
    tried.append(&[start_as("c", elsewhere("a")), start_as("x", elsewhere("x"))]);
    assert_eq!(tried.store().named("other", "a").unwrap(), Some("c".into()));
    assert_eq!(tried.store().named("other", "x").unwrap(), Some("x".into()));
    assert_eq!(tried.store().named("order", "x").unwrap(), Some("b".into()));
}

fn histories_go_on_where_they_end(tried: &mut Tried<'_>) {
    tried.append(&[start("a")]);
    let gap = Append {
        turn: Some(turn(5, 1)),
        ..more("a", 2, 1)
    };
    for append in [more("a", 1, 1), more("a", 3, 1), more("none", 2, 1), gap] {
        assert_eq!(tried.refused(&[append]), [(0, Refusal::Conflict)]);
    }
    assert_eq!(tried.refused(&[start("a")]), [(0, exists("a", 1))]);
    tried.append(&[more("a", 2, 1)]);
    assert_eq!(tried.refused(&[more("a", 2, 1)]), [(0, Refusal::Conflict)]);
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!(loaded.turns, [turn(1, 2), turn(3, 1)]);
}

fn after_a_refusal_nothing_is_kept(tried: &mut Tried<'_>) {
    tried.append(&[start("a")]);
    let full = Append {
        record: Some(ExecutionRecord {
            status: Status::Failed,
            awake: false,
            ..record("a")
        }),
        checkpoint: Some(vec![1]),
        sent: vec![message("a", 9, "b")],
        ..more("a", 7, 1)
    };
    // The last one would fit again, but an earlier one is missing.
    let refused = tried.refused(&[full, start("b"), more("a", 2, 1), more("b", 2, 1), more("b", 9, 1)]);
    let conflict = |position| (position, Refusal::Conflict);
    assert_eq!(refused, [conflict(0), conflict(2), conflict(4)]);
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!(
        (loaded.record, loaded.checkpoint, loaded.turns),
        (record("a"), None, vec![turn(1, 2)])
    );
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), []);
    let b = tried.store().load("b").unwrap().unwrap();
    assert_eq!(b.turns, [turn(1, 2), turn(3, 1)]);
    // Appends after a refused start are refused as well, even if they fit the other execution's
    // history.
    let refused = tried.refused(&[start("a"), more("a", 2, 1)]);
    assert_eq!(refused, [(0, exists("a", 1)), conflict(1)]);
    // A refusal is forgotten with its batch.
    tried.append(&[more("a", 2, 1)]);
}

fn messages_are_kept(tried: &mut Tried<'_>) {
    let body = MessageBody::Failed {
        call: EventId(3),
        version: 2,
        error: "E".into(),
        cause: "\"quoted\"".into(),
    };
    let told = Message {
        body,
        ..message("b", 4, "a")
    };
    let sent = |id: &str, sent: Vec<Message>| Append { sent, ..start(id) };
    tried.append(&[
        sent("a", vec![message("a", 2, "z"), message("a", 2, "b")]),
        sent("b", vec![told.clone()]),
    ]);
    let all = [message("a", 2, "z"), message("a", 2, "b"), told];
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), all);
    // Sent again it is the same one, in the same place.
    let again = Append {
        turn: None,
        sent: vec![message("a", 2, "z"), message("a", 3, "z")],
        ..more("a", 2, 1)
    };
    tried.append(&[again]);
    assert_eq!(tried.store().messages(&Receivers::All).unwrap().len(), 4);
    let dealt = Append {
        received: vec![
            message("b", 4, "a").id,
            message("a", 2, "z").id,
            message("no", 1, "one").id,
        ],
        ..more("a", 2, 1)
    };
    tried.append(&[dealt]);
    let left = [message("a", 2, "b"), message("a", 3, "z")];
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), left);
    // A message to an execution that does not exist, or no longer exists.
    let nobody = Append {
        execution: "z".into(),
        received: vec![message("a", 3, "z").id],
        ..Append::default()
    };
    tried.append(&[nobody]);
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), [message("a", 2, "b")]);
}

fn a_message_goes_with_its_turn(tried: &mut Tried<'_>) {
    let sends = Append {
        sent: vec![message("a", 2, "b")],
        ..start("a")
    };
    let receives = |append| Append {
        received: vec![message("a", 2, "b").id],
        ..append
    };
    tried.append(&[start("b")]);
    let refused = tried.refused(&[sends, receives(more("b", 1, 1))]);
    assert_eq!(refused, [(1, Refusal::Conflict)]);
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), [message("a", 2, "b")]);
    let sends = Append {
        sent: vec![message("a", 3, "b")],
        ..more("a", 2, 1)
    };
    let both = vec![message("a", 3, "b").id, message("a", 2, "b").id];
    let receives = Append {
        received: both,
        ..more("b", 2, 1)
    };
    tried.append(&[sends, receives]);
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), []);
}

fn who_is_awake(tried: &mut Tried<'_>) {
    let awake = |awake, append| Append {
        record: Some(ExecutionRecord { awake, ..record("") }),
        ..append
    };
    tried.append(&[start("c"), start("a"), start("b")]);
    assert_eq!(tried.store().awake(&ShardSet::ALL).unwrap(), ["a", "b", "c"]);
    tried.append(&[awake(false, more("a", 2, 1)), awake(true, more("b", 2, 1))]);
    assert_eq!(tried.store().awake(&ShardSet::ALL).unwrap(), ["b", "c"]);
    let alone = Append {
        turn: None,
        ..more("a", 3, 1)
    };
    tried.append(&[awake(true, alone)]);
    assert_eq!(tried.store().awake(&ShardSet::ALL).unwrap(), ["a", "b", "c"]);
}

fn who_is_due(tried: &mut Tried<'_>) {
    let asleep = |id: &str, until| {
        start_as(
            id,
            ExecutionRecord {
                awake: false,
                wake_at: Some(Timestamp(until)),
                ..record(id)
            },
        )
    };
    let for_ever = ExecutionRecord {
        awake: false,
        ..record("never")
    };
    tried.append(&[asleep("d", 30), asleep("c", 20), asleep("b", 20), asleep("a", 10)]);
    tried.append(&[start("awake"), start_as("never", for_ever)]);
    let mut due = |before, limit| {
        let due = tried.store().due(&ShardSet::ALL, Timestamp(before), limit).unwrap();
        due.iter().map(|(at, id)| format!("{id}{}", at.0)).collect::<Vec<_>>()
    };
    assert_eq!(due(30, 10), ["a10", "c20", "b20"]);
    assert_eq!(due(31, 2), ["a10", "c20"]);
    assert_eq!(due(31, 0), Vec::<String>::new());
    assert_eq!(due(10, 10), Vec::<String>::new());
    assert_eq!(due(i64::MAX, usize::MAX).len(), 4);
    let woken = Append {
        record: Some(ExecutionRecord {
            wake_at: Some(Timestamp(20)),
            ..record("c")
        }),
        ..more("c", 2, 1)
    };
    tried.append(&[woken]);
    let due = tried.store().due(&ShardSet::ALL, Timestamp(25), 9).unwrap();
    assert_eq!(due, [(Timestamp(10), "a".into()), (Timestamp(20), "b".into())]);
}

fn what_ended_may_go_on(tried: &mut Tried<'_>) {
    let ended = ExecutionRecord {
        status: Status::Failed,
        awake: false,
        ended: Some(Timestamp(2_000)),
        failure: Some(RecordedFailure::default()),
        ..record("a")
    };
    let end = Append {
        record: Some(ended),
        ..more("a", 2, 1)
    };
    tried.append(&[start("a"), end]);
    assert_eq!(tried.refused(&[start("a")]), [(0, exists("a", 1))]);
    let redriven = Append {
        record: Some(record("a")),
        ..more("a", 3, 1)
    };
    tried.append(&[redriven]);
    assert_eq!(tried.store().record("a").unwrap(), Some(record("a")));
    assert_eq!(tried.store().counts().unwrap(), [(Status::Running, 1)]);
    assert_eq!(tried.store().clear(Timestamp(i64::MAX), 9).unwrap(), 0);
}
