//! Actions of operators: deleting, and the list of what was done.

use super::{Case, Tried, message, more, notices, queueing, record, start, start_as};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    Append, AttemptLog, AuditEntry, AuditKind, AuditQuery, Broken, ExecutionRecord, Mark, Receivers, Refusal, ShardSet,
    StoreError,
};

pub(super) const CASES: &[Case] = &[
    ("what is deleted is gone", what_is_deleted_is_gone),
    ("only what has ended is deleted", only_what_has_ended_is_deleted),
    ("long histories are deleted", long_histories_are_deleted),
    ("the audit list has what was done", the_audit_list_has_what_was_done),
    ("the audit list is filtered", the_audit_list_is_filtered),
    (
        "cursors of the audit list are checked",
        cursors_of_the_audit_list_are_checked,
    ),
    ("old entries of the audit list go", old_entries_go),
    ("logs are kept until the execution goes", logs_are_kept),
];

/// What somebody did to an execution of that name at that time.
pub fn entry(by: &str, action: &str, name: &str, at: i64) -> AuditEntry {
    AuditEntry {
        time: Timestamp(at),
        by: by.into(),
        action: action.into(),
        name: name.into(),
        ..AuditEntry::default()
    }
}

/// The start of an execution that has ended.
fn ended(id: &str, name: &str) -> Append {
    start_as(
        id,
        ExecutionRecord {
            status: Status::Failed,
            awake: false,
            ended: Some(Timestamp(10)),
            ..record(name)
        },
    )
}

/// The deletion of an execution whose last event is that.
pub(super) fn deletion(id: &str, expected: u64) -> Append {
    Append {
        execution: id.into(),
        expected: EventId(expected),
        deleted: true,
        ..Append::default()
    }
}

fn entries(tried: &mut Tried<'_>, query: &AuditQuery, limit: usize) -> Vec<AuditEntry> {
    let mut query = AuditQuery { limit, ..query.clone() };
    let (mut found, mut last) = (Vec::new(), u64::MAX);
    loop {
        let page = tried.store().audit(&query).unwrap();
        assert!(page.items.len() <= limit);
        for (number, entry) in page.items {
            assert!(number < last, "{number} after {last}");
            last = number;
            found.push(entry);
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return found,
        }
    }
}

fn what_is_deleted_is_gone(tried: &mut Tried<'_>) {
    let mut full = ended("a", "named");
    full.checkpoint = Some(vec![1]);
    full.sent = vec![message("a", 2, "b")];
    full.dead = vec![queueing::dead("q", "a", 2)];
    full.notices = vec![notices::notice("ops", 2, 5), notices::notice("audit", 2, 5)];
    let told = Append {
        sent: vec![message("b", 2, "a")],
        notices: vec![notices::notice("ops", 2, 6)],
        ..start("b")
    };
    tried.append(&[full, told]);
    let deletion = Append {
        audit: vec![entry("ann", "delete", "a", 7)],
        ..deletion("a", 2)
    };
    tried.append(&[deletion]);
    assert_eq!(tried.store().record("a").unwrap(), None);
    assert!(tried.store().load("a").unwrap().is_none());
    assert_eq!(tried.store().last_turn("a").unwrap(), None);
    assert_eq!(tried.store().named("order", "named").unwrap(), None);
    assert_eq!(tried.store().counts().unwrap(), [(Status::Running, 1)]);
    assert_eq!(tried.store().dead_counts().unwrap(), []);
    assert_eq!(tried.store().notice_counts().unwrap(), [("ops".into(), 1)]);
    assert_eq!(tried.store().next_notices(&ShardSet::ALL, "ops", 9).unwrap().len(), 1);
    // Its messages to others are still pending.
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), [message("a", 2, "b")]);
    assert_eq!(
        entries(tried, &AuditQuery::default(), 9),
        [entry("ann", "delete", "a", 7)]
    );
    // Id and name are free.
    tried.append(&[start_as("a", record("named"))]);
    assert_eq!(tried.store().named("order", "named").unwrap(), Some("a".into()));
    assert_eq!(tried.store().load("a").unwrap().unwrap().checkpoint, None);
}

fn only_what_has_ended_is_deleted(tried: &mut Tried<'_>) {
    tried.append(&[start("a"), ended("b", "b")]);
    for (id, expected) in [("a", 2), ("b", 1), ("b", 3), ("c", 2), ("c", 0)] {
        let deletion = Append {
            audit: vec![entry("ann", "delete", id, 7)],
            ..deletion(id, expected)
        };
        assert_eq!(tried.refused(&[deletion]), [(0, Refusal::Conflict)], "{id} {expected}");
    }
    assert_eq!(entries(tried, &AuditQuery::default(), 9), []);
    // A later append to it in the batch finds nothing.
    let further = more("b", 2, 1);
    assert_eq!(tried.refused(&[deletion("b", 2), further]), [(1, Refusal::Conflict)]);
    assert_eq!(tried.store().record("b").unwrap(), None);
    assert!(tried.store().record("a").unwrap().is_some());
}

fn long_histories_are_deleted(tried: &mut Tried<'_>) {
    let turns = 1_500;
    let mut batch = vec![start("a")];
    batch.extend((0..turns).map(|turn| more("a", 2 + turn, 1)));
    let last = 2 + turns;
    let end = Append {
        record: ended("a", "a").record,
        ..more("a", last, 1)
    };
    batch.push(end);
    tried.append(&batch);
    tried.append(&[deletion("a", last + 1)]);
    assert_eq!(tried.store().record("a").unwrap(), None);
    assert_eq!(tried.store().turns("a", EventId(1), 9, false).unwrap(), []);
    tried.append(&[start("a")]);
    while tried.store().clear(Timestamp(i64::MIN), 10).unwrap() > 0 {}
    assert_eq!(tried.store().turns("a", EventId(1), 9, false).unwrap().len(), 1);
}

fn the_audit_list_has_what_was_done(tried: &mut Tried<'_>) {
    let full = AuditEntry {
        kind: AuditKind::Queue,
        detail: serde_json::from_str(r#"{"paused":true,"é":[1,{}]}"#).unwrap(),
        request: Some("r-1".into()),
        ..entry("ann", "set", "q", 1)
    };
    let store = tried.store();
    store.put_value("queue", "q", "{}", Some(&full)).unwrap();
    let gone = entry("ann", "reset", "q", 2);
    assert!(store.delete_value("queue", "q", Some(&gone)).unwrap());
    assert!(!store.delete_value("queue", "q", Some(&gone)).unwrap());
    let put = entry("bob", "put", "f", 3);
    let puts = |hash| store.put_flow("f", "{}", hash, Timestamp(0), Some(&put)).unwrap();
    assert_eq!([puts("1"), puts("1"), puts("2")], [(1, true), (1, false), (2, true)]);
    let hide = entry("bob", "hide", "f", 4);
    assert!(store.hide_flow("f", Some(&hide)).unwrap());
    assert!(!store.hide_flow("f", Some(&hide)).unwrap());
    // Putting the same definition brings back a hidden flow.
    let shown = entry("bob", "put", "f", 5);
    assert_eq!(
        store.put_flow("f", "{}", "2", Timestamp(0), Some(&shown)),
        Ok((2, false))
    );
    let stop = Append {
        audit: vec![entry("ann", "stop", "a", 6), entry("ann", "note", "a", 7)],
        ..more("a", 2, 1)
    };
    let refused = Append {
        audit: vec![entry("ann", "never", "a", 8)],
        ..more("a", 1, 1)
    };
    tried.append(&[start("a"), stop]);
    assert_eq!(tried.refused(&[refused]).len(), 1);
    let broken = Broken {
        since: Timestamp(0),
        cause: "it panicked".into(),
    };
    let marks = [("a".into(), Mark::Broken(broken))];
    tried.store().mark(&marks, None).unwrap();
    let release = entry("ann", "release", "a", 9);
    tried
        .store()
        .mark(&[("a".into(), Mark::Whole)], Some(&release))
        .unwrap();
    let version = |entry: AuditEntry, version: u64| entry.with("version", version);
    let mut expected = vec![
        full,
        gone,
        version(put.clone(), 1),
        version(put, 2),
        hide,
        version(shown, 2),
        entry("ann", "stop", "a", 6),
        entry("ann", "note", "a", 7),
        release,
    ];
    expected.reverse();
    for limit in [1, 2, 20] {
        assert_eq!(entries(tried, &AuditQuery::default(), limit), expected);
    }
}

fn the_audit_list_is_filtered(tried: &mut Tried<'_>) {
    let about = |kind, entry: AuditEntry| AuditEntry { kind, ..entry };
    let all = [
        entry("ann", "stop", "a", 10),
        about(AuditKind::Queue, entry("bob", "set", "a", 20)),
        about(AuditKind::Flow, entry("ann", "put", "f", 30)),
        entry("bob", "stop", "b", 40),
    ];
    for entry in &all {
        tried.store().put_value("k", "n", "t", Some(entry)).unwrap();
    }
    let any = AuditQuery::default;
    let text = |text: &str| Some(Text::from(text));
    let at = |at| Some(Timestamp(at));
    let by = |by| AuditQuery { by: text(by), ..any() };
    let of = |name, query| AuditQuery {
        name: text(name),
        ..query
    };
    let from = |time, query| AuditQuery {
        from: at(time),
        ..query
    };
    let to = |time| AuditQuery { to: at(time), ..any() };
    let stops = AuditQuery {
        action: text("stop"),
        ..any()
    };
    let executions = AuditQuery {
        kind: Some(AuditKind::Execution),
        ..any()
    };
    for (query, expected) in [
        (by("ann"), vec![30, 10]),
        (by("an"), vec![]),
        (stops, vec![40, 10]),
        (executions, vec![40, 10]),
        (of("a", any()), vec![20, 10]),
        (of("a", by("bob")), vec![20]),
        (from(20, any()), vec![40, 30, 20]),
        (to(20), vec![10]),
        (from(20, to(40)), vec![30, 20]),
        (from(40, to(20)), vec![]),
    ] {
        for limit in [1, 2, 9] {
            let times: Vec<i64> = entries(tried, &query, limit).iter().map(|entry| entry.time.0).collect();
            assert_eq!(times, expected, "{query:?} by {limit}");
        }
    }
}

fn cursors_of_the_audit_list_are_checked(tried: &mut Tried<'_>) {
    for cursor in ["zzz", "", "-1", "1e3", "99999999999999999999999", "7#", "é"] {
        let query = AuditQuery {
            cursor: Some(cursor.into()),
            limit: 9,
            ..AuditQuery::default()
        };
        assert_eq!(
            tried.store().audit(&query).err(),
            Some(StoreError::BadCursor),
            "{cursor}"
        );
    }
}

fn old_entries_go(tried: &mut Tried<'_>) {
    for at in [10, 20, 30, 40] {
        let entry = entry("ann", "stop", "a", at);
        tried.store().put_value("k", "n", "t", Some(&entry)).unwrap();
    }
    let mut clear = |before, limit| tried.store().clear_audit(Timestamp(before), limit).unwrap();
    assert_eq!(
        [clear(10, 9), clear(40, 0), clear(40, 2), clear(40, 9), clear(40, 9)],
        [0, 0, 2, 1, 0]
    );
    assert_eq!(
        entries(tried, &AuditQuery::default(), 9),
        [entry("ann", "stop", "a", 40)]
    );
}

/// A store may keep no logs. If it does, a refused append leaves none.
fn logs_are_kept(tried: &mut Tried<'_>) {
    let log = |event: u64, text: &str| AttemptLog::of(EventId(event), text.to_owned());
    let with = |append: Append, log: AttemptLog| Append {
        logs: vec![log],
        ..append
    };
    tried.append(&[with(ended("a", "one"), log(1, "first"))]);
    tried.append(&[with(more("a", 2, 1), log(3, "second"))]);
    tried.append(&[start("b")]);
    let refused = with(more("a", 1, 1), log(2, "other"));
    assert_eq!(tried.refused(&[refused]), [(0, Refusal::Conflict)]);
    let logs = |tried: &mut Tried<'_>, id: &str, from: u64, limit: usize| {
        let found = tried.store().logs(id, EventId(from), limit).unwrap();
        found.map(|logs| logs.into_iter().map(|log| (log.event.0, log.text)).collect::<Vec<_>>())
    };
    let Some(all) = logs(tried, "a", 1, 9) else {
        return;
    };
    let (first, second) = ((1, "first".to_owned()), (3, "second".to_owned()));
    assert_eq!(all, [first.clone(), second.clone()]);
    assert_eq!(logs(tried, "a", 1, 1), Some(vec![first]));
    assert_eq!(logs(tried, "a", 2, 9), Some(vec![second]));
    assert_eq!(logs(tried, "b", 1, 9), Some(Vec::new()));
    tried.append(&[deletion("a", 3)]);
    assert_eq!(logs(tried, "a", 1, 9), Some(Vec::new()));
}
