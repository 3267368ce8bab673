//! Notices that are still to be delivered.

use super::{Case, Tried, more, start};
use starbridge_flow::time::Timestamp;
use starbridge_machine::EventId;
use starbridge_ports::{Append, KeptNotice, NextNotice, NoticeChange, ShardSet};

pub(super) const CASES: &[Case] = &[
    ("notices are kept with their turn", notices_are_kept_with_their_turn),
    ("a refused turn tells nothing", a_refused_turn_tells_nothing),
    ("none overtakes another of its execution", none_overtakes_another),
    ("what is due first comes first", what_is_due_first_comes_first),
    ("a notice outlives its execution", a_notice_outlives_its_execution),
    ("a target's notices are forgotten", a_targets_notices_are_forgotten),
];

pub(super) fn notice(target: &str, event: u64, time: i64) -> KeptNotice {
    KeptNotice {
        target: target.into(),
        event: EventId(event),
        time: Timestamp(time),
        text: format!("{{\"event\":{event},\"cause\":\"Zoë's \\u0000\"}}"),
    }
}

pub(super) fn change(target: &str, execution: &str, event: u64, again: Option<(i64, u32)>) -> NoticeChange {
    NoticeChange {
        target: target.into(),
        execution: execution.into(),
        event: EventId(event),
        again: again.map(|(due, failures)| (Timestamp(due), failures)),
    }
}

fn with(notices: &[KeptNotice], append: Append) -> Append {
    Append {
        notices: notices.to_vec(),
        ..append
    }
}

/// Execution, event, due time and failures of the next notices.
fn next(tried: &mut Tried<'_>, target: &str, limit: usize) -> Vec<(String, u64, i64, u32)> {
    let next = tried.store().next_notices(&ShardSet::ALL, target, limit).unwrap();
    let seen = next
        .iter()
        .map(|next| (next.execution.to_string(), next.event.0, next.due.0, next.failures));
    seen.collect()
}

fn seen(execution: &str, event: u64, due: i64, failures: u32) -> (String, u64, i64, u32) {
    (execution.to_owned(), event, due, failures)
}

fn changed(tried: &mut Tried<'_>, changes: &[NoticeChange]) {
    tried.store().change_notices(changes).unwrap();
}

fn notices_are_kept_with_their_turn(tried: &mut Tried<'_>) {
    let both = [notice("ops", 2, 50), notice("audit", 2, 50)];
    tried.append(&[with(&both, start("a"))]);
    let expected = NextNotice {
        execution: "a".into(),
        event: EventId(2),
        due: Timestamp(50),
        failures: 0,
        text: both[0].text.clone(),
    };
    assert_eq!(
        tried.store().next_notices(&ShardSet::ALL, "ops", 9).unwrap(),
        [expected]
    );
    assert_eq!(next(tried, "nobody", 9), []);
    // The same again changes nothing.
    let again = KeptNotice {
        text: "other".to_owned(),
        ..notice("ops", 2, 60)
    };
    tried.append(&[with(&[again], more("a", 2, 1))]);
    assert_eq!(
        tried.store().next_notices(&ShardSet::ALL, "ops", 9).unwrap()[0].text,
        both[0].text
    );
    let counts = tried.store().notice_counts().unwrap();
    assert_eq!(counts, [("audit".into(), 1), ("ops".into(), 1)]);
}

fn a_refused_turn_tells_nothing(tried: &mut Tried<'_>) {
    tried.append(&[start("a")]);
    let stale = with(&[notice("ops", 2, 50)], more("a", 1, 1));
    let taken = with(&[notice("ops", 2, 50)], start("a"));
    assert_eq!(tried.refused(&[stale, taken]).len(), 2);
    assert_eq!(tried.store().notice_counts().unwrap(), []);
}

fn none_overtakes_another(tried: &mut Tried<'_>) {
    tried.append(&[
        with(&[notice("ops", 2, 10), notice("audit", 2, 10)], start("a")),
        with(&[notice("ops", 3, 20)], more("a", 2, 1)),
        with(&[notice("ops", 4, 30)], more("a", 3, 1)),
    ]);
    changed(tried, &[change("ops", "a", 2, Some((900, 1)))]);
    assert_eq!(next(tried, "ops", 9), [seen("a", 2, 900, 1)]);
    // A change for a notice that is not next, or that does not exist, changes nothing.
    changed(tried, &[change("ops", "a", 3, None), change("ops", "a", 7, None)]);
    assert_eq!(next(tried, "ops", 9), [seen("a", 2, 900, 1)]);
    changed(tried, &[change("ops", "a", 2, None)]);
    assert_eq!(next(tried, "ops", 9), [seen("a", 4, 30, 0)]);
    changed(tried, &[change("ops", "a", 4, None)]);
    assert_eq!(next(tried, "ops", 9), []);
    assert_eq!(next(tried, "audit", 9), [seen("a", 2, 10, 0)]);
    tried.append(&[with(&[notice("ops", 5, 40)], more("a", 4, 1))]);
    assert_eq!(next(tried, "ops", 9), [seen("a", 5, 40, 0)]);
}

fn what_is_due_first_comes_first(tried: &mut Tried<'_>) {
    tried.append(&[
        with(&[notice("ops", 2, 30)], start("a")),
        with(&[notice("ops", 2, 10)], start("b")),
        with(&[notice("ops", 2, 10)], start("c")),
    ]);
    let all = [seen("b", 2, 10, 0), seen("c", 2, 10, 0), seen("a", 2, 30, 0)];
    assert_eq!(next(tried, "ops", 9), all);
    assert_eq!(next(tried, "ops", 2), all[..2]);
    changed(tried, &[change("ops", "b", 2, Some((31, 4)))]);
    assert_eq!(
        next(tried, "ops", 9),
        [seen("c", 2, 10, 0), seen("a", 2, 30, 0), seen("b", 2, 31, 4)]
    );
}

fn a_notice_outlives_its_execution(tried: &mut Tried<'_>) {
    let mut ended = with(&[notice("ops", 2, 10)], start("a"));
    if let Some(record) = &mut ended.record {
        record.ended = Some(Timestamp(5));
        record.awake = false;
    }
    tried.append(&[ended]);
    while tried.store().clear(Timestamp(6), 10).unwrap() > 0 {}
    assert!(tried.store().record("a").unwrap().is_none());
    assert_eq!(next(tried, "ops", 9), [seen("a", 2, 10, 0)]);
}

fn a_targets_notices_are_forgotten(tried: &mut Tried<'_>) {
    tried.append(&[
        with(&[notice("ops", 1, 10), notice("ops", 2, 10)], start("a")),
        with(&[notice("ops", 2, 10), notice("audit", 2, 10)], start("b")),
    ]);
    assert_eq!(tried.store().forget_notices("ops", 1).unwrap(), 1);
    // The one after it is next.
    assert_eq!(next(tried, "ops", 9), [seen("a", 2, 10, 0), seen("b", 2, 10, 0)]);
    assert_eq!(tried.store().forget_notices("ops", 9).unwrap(), 2);
    assert_eq!(tried.store().forget_notices("ops", 9).unwrap(), 0);
    assert_eq!(tried.store().notice_counts().unwrap(), [("audit".into(), 1)]);
}
