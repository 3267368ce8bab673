//! Looking up, keeping flows and small things, clearing away.

use super::{Case, Tried, message, more, record, start, start_as, turn};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent, Status};
use starbridge_ports::{Append, ExecutionRecord, Query, Receivers, RecordedFailure, StoreError};

pub(super) const CASES: &[Case] = &[
    ("turns are found by their events", turns_are_found),
    ("turns are read in pages", turns_are_read_in_pages),
    ("lists begin with the newest", lists_begin_with_the_newest),
    ("lists show what is asked for", lists_show_what_is_asked_for),
    ("names are found among many", names_are_found_among_many),
    ("families are found", families_are_found),
    ("labels are found", labels_are_found),
    ("ends are found", ends_are_found),
    ("each status is counted", each_status_is_counted),
    ("what ended long ago goes", what_ended_long_ago_goes),
    ("what belonged to it goes too", what_belonged_to_it_goes_too),
    ("flows have versions", flows_have_versions),
    ("flows are hidden", flows_are_hidden),
    ("small things are kept", small_things_are_kept),
];

fn turns_are_found(tried: &mut Tried<'_>) {
    tried.append(&[start("a"), more("a", 2, 3), start("b"), more("a", 5, 1)]);
    let mut of = |event| tried.store().turn_of("a", EventId(event)).unwrap();
    assert_eq!([of(0), of(7), of(u64::MAX)], [None, None, None]);
    assert_eq!([of(1), of(2)], [Some(turn(1, 2)), Some(turn(1, 2))]);
    assert_eq!(
        [of(3), of(5), of(6)],
        [Some(turn(3, 3)), Some(turn(3, 3)), Some(turn(6, 1))]
    );
    assert_eq!(tried.store().last_turn("a").unwrap(), Some(turn(6, 1)));
    assert_eq!(tried.store().last_turn("b").unwrap(), Some(turn(1, 2)));
    assert_eq!(tried.store().last_turn("c").unwrap(), None);
    assert_eq!(tried.store().turn_of("c", EventId(1)).unwrap(), None);
}

fn turns_are_read_in_pages(tried: &mut Tried<'_>) {
    tried.append(&[start("a"), more("a", 2, 3), more("a", 5, 1), more("a", 6, 4)]);
    tried.append(&[start("b"), start("c")]);
    let mut firsts = |from, events, backwards| {
        let turns = tried.store().turns("a", EventId(from), events, backwards).unwrap();
        let heads = tried.store().turn_heads("a", EventId(from), events, backwards).unwrap();
        assert_eq!(heads, turns.iter().map(|turn| turn.head()).collect::<Vec<_>>());
        turns.iter().map(|turn| turn.first.0).collect::<Vec<_>>()
    };
    assert_eq!(firsts(0, 100, false), [1, 3, 6, 7]);
    assert_eq!(firsts(1, 2, false), [1]);
    assert_eq!(firsts(1, 3, false), [1, 3]);
    // Of the first turn, only the events from there on count.
    assert_eq!(firsts(5, 1, false), [3]);
    assert_eq!(firsts(5, 2, false), [3, 6]);
    assert_eq!(firsts(10, 9, false), [7]);
    assert_eq!(firsts(11, 9, false), [0; 0]);
    assert_eq!(firsts(3, 0, false), [0; 0]);
    assert_eq!(firsts(u64::MAX, 100, true), [7, 6, 3, 1]);
    assert_eq!(firsts(7, 1, true), [7]);
    assert_eq!(firsts(7, 2, true), [7, 6]);
    assert_eq!(firsts(4, 2, true), [3]);
    assert_eq!(firsts(4, 3, true), [3, 1]);
    assert_eq!(firsts(0, 1, true), [1]);
    assert_eq!(tried.store().turns("none", EventId(1), 5, false).unwrap(), []);
    assert_eq!(tried.store().turn_heads("none", EventId(1), 5, false).unwrap(), []);
}

/// The ids of all pages of so many.
fn ids(tried: &mut Tried<'_>, query: &Query, limit: usize) -> Vec<Text> {
    let mut query = Query { limit, ..query.clone() };
    let mut ids = Vec::new();
    loop {
        let page = tried.store().list(&query).unwrap();
        assert!(page.items.len() <= limit);
        ids.extend(page.items.into_iter().map(|item| item.id));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return ids,
        }
    }
}

fn lists_begin_with_the_newest(tried: &mut Tried<'_>) {
    let names: Vec<Text> = (0..7).map(|number| format!("e{number}").into()).collect();
    let starts: Vec<Append> = names.iter().map(|name| start(name)).collect();
    tried.append(&starts);
    for limit in [1, 2, 3, 6, 7, 8] {
        let mut newest = ids(tried, &Query::default(), limit);
        newest.reverse();
        assert_eq!(newest, names);
    }
    let query = Query {
        limit: 7,
        ..Query::default()
    };
    let page = tried.store().list(&query).unwrap();
    assert_eq!(page.next, None);
    assert_eq!(page.items[0].record, record("e6"));
    // An execution that starts meanwhile shifts no page.
    let query = Query { limit: 2, ..query };
    let next = tried.store().list(&query).unwrap().next;
    tried.append(&[start("late")]);
    let page = tried
        .store()
        .list(&Query {
            cursor: next,
            ..query.clone()
        })
        .unwrap();
    assert_eq!(page.items[0].id, "e4");
    for cursor in ["zzz", "", "-1", "1e3", "99999999999999999999999", "7#", "é"] {
        let cursor = Some(cursor.into());
        let page = tried.store().list(&Query {
            cursor: cursor.clone(),
            ..query.clone()
        });
        assert_eq!(page.err(), Some(StoreError::BadCursor), "{cursor:?}");
    }
}

fn lists_show_what_is_asked_for(tried: &mut Tried<'_>) {
    use Status::{Failed, Manual, Running, Stopped, Succeeded};
    let named = |flow: &str, name: &str, status, at| ExecutionRecord {
        flow: flow.into(),
        status,
        started: Timestamp(at),
        ..record(name)
    };
    tried.append(&[
        start_as("1", named("one", "day-%1", Running, 10)),
        start_as("2", named("two", "day-2", Succeeded, 20)),
        start_as("3", named("one", "Day-3", Failed, 30)),
        start_as("4", named("one", "4", Succeeded, 40)),
        start_as("5", named("two", "dä", Manual, 50)),
        start_as("6", named("one", "day", Failed, 60)),
    ]);
    let all = Query::default();
    let of = |flow: &str| Query {
        flow: Some(flow.into()),
        ..Query::default()
    };
    let beginning = |name: &str| Query {
        name: Some(name.into()),
        ..Query::default()
    };
    let with = |statuses: &[Status], query: Query| Query {
        statuses: statuses.to_vec(),
        ..query
    };
    let started = |from: Option<i64>, to: Option<i64>| Query {
        from: from.map(Timestamp),
        to: to.map(Timestamp),
        ..Query::default()
    };
    for (query, expected) in [
        (all.clone(), vec!["6", "5", "4", "3", "2", "1"]),
        (of("one"), vec!["6", "4", "3", "1"]),
        (of("three"), vec![]),
        (with(&[Failed], all.clone()), vec!["6", "3"]),
        (with(&[Succeeded], all.clone()), vec!["4", "2"]),
        (
            with(&[Running, Failed, Manual, Failed], all.clone()),
            vec!["6", "5", "3", "1"],
        ),
        (with(&[Succeeded, Failed], all.clone()), vec!["6", "4", "3", "2"]),
        (with(&[Stopped], all), vec![]),
        (with(&[Failed, Running], of("one")), vec!["6", "3", "1"]),
        (with(&[Succeeded], of("one")), vec!["4"]),
        (with(&[Succeeded, Manual], of("two")), vec!["5", "2"]),
        (beginning("day"), vec!["6", "2", "1"]),
        (beginning("day-"), vec!["2", "1"]),
        (beginning("day-%"), vec!["1"]),
        (beginning("d"), vec!["6", "5", "2", "1"]),
        (beginning("dä"), vec!["5"]),
        (beginning("4"), vec!["4"]),
        (beginning(""), vec!["6", "5", "4", "3", "2", "1"]),
        (with(&[Failed], beginning("day")), vec!["6"]),
        (started(Some(30), None), vec!["6", "5", "4", "3"]),
        (started(None, Some(30)), vec!["2", "1"]),
        (started(Some(20), Some(50)), vec!["4", "3", "2"]),
    ] {
        for limit in [1, 2, 9] {
            assert_eq!(ids(tried, &query, limit), expected, "{query:?} by {limit}");
        }
    }
}

fn names_are_found_among_many(tried: &mut Tried<'_>) {
    let starts: Vec<Append> = (0..1_200)
        .map(|number| {
            let (id, name) = (format!("id-{number}"), format!("run-{number}"));
            // Every third is named after its id.
            start_as(&id, record(if number % 3 == 0 { &id } else { &name }))
        })
        .collect();
    tried.append(&starts);
    let named = |flow: Option<&str>, name: &str| Query {
        flow: flow.map(Text::from),
        name: Some(name.into()),
        ..Query::default()
    };
    for (query, expected) in [
        (named(Some("order"), "run-1150"), vec!["id-1150"]),
        (
            named(Some("order"), "run-115"),
            vec![
                "id-1159", "id-1157", "id-1156", "id-1154", "id-1153", "id-1151", "id-1150", "id-115",
            ],
        ),
        (named(Some("order"), "id-120"), vec!["id-120"]),
        (named(Some("order"), "id-1199"), vec![]),
        (named(Some("other"), "run-1150"), vec![]),
        (named(None, "run-1150"), vec!["id-1150"]),
    ] {
        assert_eq!(ids(tried, &query, 3), expected, "{query:?}");
    }
    assert_eq!(ids(tried, &named(Some("order"), "run-"), 300).len(), 800);
    assert_eq!(ids(tried, &named(Some("order"), "id-"), 300).len(), 400);
    assert_eq!(ids(tried, &named(Some("order"), ""), 300).len(), 1_200);
}

fn labels_are_found(tried: &mut Tried<'_>) {
    let labelled = |id: &str, labels: &str| {
        let labels: Object = serde_json::from_str(labels).unwrap();
        let labels = Some(labels);
        start_as(id, ExecutionRecord { labels, ..record(id) })
    };
    tried.append(&[
        labelled("1", r#"{"region":"eu","size":"l"}"#),
        labelled("2", r#"{"region":"us"}"#),
        start("3"),
        labelled("4", r#"{"size":"l","region":"eu"}"#),
        labelled("5", "{}"),
    ]);
    let ended = Append {
        record: Some(ExecutionRecord {
            status: Status::Failed,
            ..record("1")
        }),
        ..more("1", 2, 1)
    };
    tried.append(&[ended]);
    let with = |labels: &[(&str, &str)]| Query {
        labels: labels
            .iter()
            .map(|(label, value)| ((*label).into(), (*value).into()))
            .collect(),
        ..Query::default()
    };
    assert_eq!(ids(tried, &with(&[("region", "eu")]), 1), ["4", "1"]);
    assert_eq!(ids(tried, &with(&[("region", "eu"), ("size", "l")]), 1), ["4", "1"]);
    assert_eq!(ids(tried, &with(&[("region", "us"), ("size", "l")]), 1), [""; 0]);
    assert_eq!(ids(tried, &with(&[("region", "")]), 1), [""; 0]);
    let failed = Query {
        statuses: vec![Status::Failed],
        flow: Some("order".into()),
        ..with(&[("size", "l")])
    };
    assert_eq!(ids(tried, &failed, 1), ["1"]);
    assert_eq!(tried.store().record("5").unwrap().unwrap().labels, None);
}

fn ends_are_found(tried: &mut Tried<'_>) {
    tried.append(&[start("1"), start("2"), start("3"), start("4")]);
    let ended = |id: &str, error: &str, step: &str, at| Append {
        record: Some(ExecutionRecord {
            status: Status::Failed,
            ended: Some(Timestamp(at)),
            failure: Some(RecordedFailure {
                error: error.into(),
                step: step.into(),
                ..RecordedFailure::default()
            }),
            ..record(id)
        }),
        ..more(id, 2, 1)
    };
    tried.append(&[
        ended("1", "E", "pay", 5_000),
        ended("2", "E", "ship", 6_000),
        ended("3", "F", "pay", 7_000),
    ]);
    let (error, step) = (|error: &str| Some(error.into()), |step: &str| Some(step.into()));
    let with = |error, step, ended_from: Option<i64>, ended_to: Option<i64>| Query {
        error,
        step,
        ended_from: ended_from.map(Timestamp),
        ended_to: ended_to.map(Timestamp),
        ..Query::default()
    };
    for (query, expected) in [
        (with(error("E"), None, None, None), vec!["2", "1"]),
        (with(None, step("pay"), None, None), vec!["3", "1"]),
        (with(error("E"), step("pay"), None, None), vec!["1"]),
        (with(error("G"), None, None, None), vec![]),
        (with(None, None, Some(6_000), None), vec!["3", "2"]),
        (with(None, None, None, Some(6_000)), vec!["1"]),
        (with(error("E"), None, Some(5_001), Some(6_001)), vec!["2"]),
    ] {
        assert_eq!(ids(tried, &query, 1), expected);
        let failed = Query {
            statuses: vec![Status::Failed],
            flow: Some("order".into()),
            ..query
        };
        assert_eq!(ids(tried, &failed, 2), expected);
    }
}

fn families_are_found(tried: &mut Tried<'_>) {
    let child = |id: &str, parent: &str, root: &str, status| {
        let parent = Parent {
            execution: parent.into(),
            event: EventId(2),
        };
        let (parent, root) = (Some(parent), Some(root.into()));
        start_as(
            id,
            ExecutionRecord {
                parent,
                root,
                status,
                ..record(id)
            },
        )
    };
    let (runs, failed) = (Status::Running, Status::Failed);
    tried.append(&[
        start("a"),
        child("b", "a", "a", runs),
        child("c", "a", "a", failed),
        child("d", "b", "a", failed),
        start("e"),
        child("f", "e", "e", runs),
    ]);
    let parent = |id: &str| Query {
        parent: Some(id.into()),
        ..Query::default()
    };
    let root = |id: &str| Query {
        root: Some(id.into()),
        ..Query::default()
    };
    let with = |status, query| Query {
        statuses: vec![status],
        ..query
    };
    let both = Query {
        parent: Some("b".into()),
        ..root("a")
    };
    for (query, expected) in [
        (parent("a"), vec!["c", "b"]),
        (parent("b"), vec!["d"]),
        (parent("c"), vec![]),
        (parent("none"), vec![]),
        (root("a"), vec!["d", "c", "b"]),
        (root("b"), vec![]),
        (root("e"), vec!["f"]),
        (with(failed, root("a")), vec!["d", "c"]),
        (with(failed, parent("a")), vec!["c"]),
        (both, vec!["d"]),
    ] {
        for limit in [1, 2, 9] {
            assert_eq!(ids(tried, &query, limit), expected, "{query:?} by {limit}");
        }
    }
}

fn each_status_is_counted(tried: &mut Tried<'_>) {
    assert_eq!(tried.store().counts().unwrap(), []);
    let ends = |append, status| Append {
        record: Some(ExecutionRecord { status, ..record("") }),
        ..append
    };
    tried.append(&[
        start("a"),
        start("b"),
        start("c"),
        ends(more("a", 2, 1), Status::Succeeded),
    ]);
    assert_eq!(
        tried
            .refused(&[start("a"), ends(more("b", 1, 1), Status::Failed)])
            .len(),
        2
    );
    assert_eq!(
        tried.store().counts().unwrap(),
        [(Status::Running, 2), (Status::Succeeded, 1)]
    );
    tried.append(&[
        ends(more("b", 2, 1), Status::Failed),
        ends(more("c", 2, 1), Status::Succeeded),
    ]);
    assert_eq!(
        tried.store().counts().unwrap(),
        [(Status::Succeeded, 2), (Status::Failed, 1)]
    );
}

/// An execution that ended at that time.
fn ended(id: &str, at: i64) -> Append {
    start_as(
        id,
        ExecutionRecord {
            status: Status::Succeeded,
            awake: false,
            ended: Some(Timestamp(at)),
            ..record(id)
        },
    )
}

fn what_ended_long_ago_goes(tried: &mut Tried<'_>) {
    tried.append(&[ended("c", 30), ended("a", 10), start("b"), ended("d", 20)]);
    let mut clear = |before, limit| tried.store().clear(Timestamp(before), limit).unwrap();
    assert_eq!(clear(10, 9), 0);
    assert_eq!(clear(30, 1), 1);
    assert_eq!(clear(30, 9), 1);
    assert_eq!(clear(30, 9), 0);
    assert_eq!(ids(tried, &Query::default(), 9), ["b", "c"]);
    assert_eq!(
        tried.store().counts().unwrap(),
        [(Status::Running, 1), (Status::Succeeded, 1)]
    );
}

fn what_belonged_to_it_goes_too(tried: &mut Tried<'_>) {
    let labels: Object = serde_json::from_str(r#"{"k":"v"}"#).unwrap();
    let mut full = ended("a", 10);
    full.checkpoint = Some(vec![1]);
    full.sent = vec![message("a", 2, "b"), message("a", 2, "a")];
    full.record = full.record.map(|record| ExecutionRecord {
        labels: Some(labels),
        name: "named".into(),
        ..record
    });
    let b = Append {
        sent: vec![message("b", 2, "a")],
        ..start("b")
    };
    tried.append(&[full, b]);
    assert_eq!(tried.store().clear(Timestamp(11), 9).unwrap(), 1);
    assert!(tried.store().load("a").unwrap().is_none());
    assert_eq!(tried.store().last_turn("a").unwrap(), None);
    assert_eq!(tried.store().named("order", "named").unwrap(), None);
    // Its messages to others are still pending.
    assert_eq!(tried.store().messages(&Receivers::All).unwrap(), [message("a", 2, "b")]);
    let query = Query {
        labels: vec![("k".into(), "v".into())],
        ..Query::default()
    };
    assert_eq!(ids(tried, &query, 9), [""; 0]);
    // Id and name are free, and nothing of the one before comes back.
    tried.append(&[start_as("a", record("named"))]);
    let loaded = tried.store().load("a").unwrap().unwrap();
    assert_eq!(
        (loaded.record, loaded.checkpoint, loaded.turns),
        (record("named"), None, vec![turn(1, 2)])
    );
    tried.append(&[more("a", 2, 1), more("b", 2, 1)]);
}

fn flows_have_versions(tried: &mut Tried<'_>) {
    let mut put = |name, definition, hash, at| {
        tried
            .store()
            .put_flow(name, definition, hash, Timestamp(at), None)
            .unwrap()
    };
    assert_eq!(put("b", "{}", "h1", 1), (1, true));
    assert_eq!(put("b", "{} ", "h1", 2), (1, false));
    assert_eq!(put("b", "[]", "h2", 3), (2, true));
    assert_eq!(put("a", "[]", "h2", 4), (1, true));
    // Back to what an earlier one was is a new version.
    assert_eq!(put("b", "{}", "h1", 5), (3, true));
    let flows = tried.store().flows().unwrap();
    let shown = flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.version, &*flow.definition, flow.created.0));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("a", 1, "[]", 4),
            ("b", 1, "{}", 1),
            ("b", 2, "[]", 3),
            ("b", 3, "{}", 5)
        ]
    );
    assert_eq!(flows[2].hash, "h2");
    assert!(flows.iter().all(|flow| !flow.hidden));
}

fn flows_are_hidden(tried: &mut Tried<'_>) {
    assert!(!tried.store().hide_flow("a", None).unwrap());
    for (name, hash) in [("a", "1"), ("a", "2"), ("b", "1")] {
        tried.store().put_flow(name, "{}", hash, Timestamp(0), None).unwrap();
    }
    assert!(tried.store().hide_flow("a", None).unwrap());
    assert!(!tried.store().hide_flow("a", None).unwrap());
    let hidden = |tried: &mut Tried<'_>| {
        let flows = tried.store().flows().unwrap();
        flows.into_iter().map(|flow| flow.hidden).collect::<Vec<_>>()
    };
    assert_eq!(hidden(tried), [true, true, false]);
    assert_eq!(
        tried.store().put_flow("a", "{}", "2", Timestamp(9), None).unwrap(),
        (2, false)
    );
    assert_eq!(hidden(tried), [false, false, false]);
}

fn small_things_are_kept(tried: &mut Tried<'_>) {
    assert_eq!(tried.store().get_value("schedule", "a").unwrap(), None);
    for (kind, name, text) in [
        ("schedule", "b", "1"),
        ("schedule", "a", "2"),
        ("key", "a", "3"),
        ("schedule", "b", "4"),
    ] {
        tried.store().put_value(kind, name, text, None).unwrap();
    }
    assert_eq!(tried.store().get_value("schedule", "b").unwrap(), Some("4".to_owned()));
    // An existing value stays; a second put has no effect.
    assert_eq!(tried.store().put_new_value("schedule", "b", "5").unwrap(), "4");
    assert_eq!(tried.store().put_new_value("new", "b", "6").unwrap(), "6");
    assert_eq!(tried.store().get_value("new", "b").unwrap(), Some("6".to_owned()));
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(
        tried.store().list_values("schedule").unwrap(),
        [pair("a", "2"), pair("b", "4")]
    );
    assert!(tried.store().delete_value("schedule", "a", None).unwrap());
    assert!(!tried.store().delete_value("schedule", "a", None).unwrap());
    assert_eq!(tried.store().list_values("schedule").unwrap(), [pair("b", "4")]);
    assert_eq!(tried.store().list_values("key").unwrap(), [pair("a", "3")]);
    assert_eq!(tried.store().list_values("none").unwrap(), []);
}
