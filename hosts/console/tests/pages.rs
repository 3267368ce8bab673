//! Pages as they are written, from what the API answers. `UPDATE=1` writes them anew: look at the difference.

use starbridge_console::{
    ExecutionParts, FlowPageParts, Frame, Language, ListParts, OverviewParts, QueueParts, TABS, View, Zone, execution,
    executions, flow, overview, problem, queue, queues,
};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use std::path::Path;

fn value(json: &str) -> Value {
    Value::read_bounded(json.as_bytes(), 1 << 24).unwrap()
}

fn frame(language: Language, here: &str) -> Frame {
    Frame {
        language,
        here: here.to_owned(),
        who: Some("lin".to_owned()),
        scopes: vec!["read", "operate"],
        forgery: "0123".to_owned(),
        now: Timestamp::parse("2026-11-22T10:00:00Z").unwrap(),
        asking: 7,
        ..Frame::default()
    }
}

/// A page without the hashes of its files: a rule of the sheet changes no page.
fn without_hashes(page: &str) -> String {
    let parts = page.split('"').map(|part| match part.strip_prefix("/console/") {
        Some(file) => {
            let (stem, ending) = (file.split('.').next(), file.rsplit('.').next());
            format!("/console/{}.{}", stem.unwrap_or_default(), ending.unwrap_or_default())
        }
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("\"")
}

/// Compares a page with the file that has it.
fn is_as_kept(name: &str, page: &str) {
    let page = without_hashes(page);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        page == kept,
        "{name} is not what is kept: UPDATE=1 writes it anew\n{page}"
    );
}

const STATUSES: [&str; 13] = [
    "New",
    "Running",
    "Manual",
    "RollingBack",
    "Succeeded",
    "Failed",
    "TimedOut",
    "Stopped",
    "RollbackFailed",
    "RolledBack",
    "Delayed",
    "Blocked",
    "Queued",
];

const STEP_STATUSES: [&str; 13] = [
    "entered",
    "running",
    "waiting",
    "retrying",
    "polling",
    "manual",
    "succeeded",
    "failed",
    "caught",
    "cancelled",
    "rolledBack",
    "rollbackFailed",
    "skipped",
];

fn list() -> Value {
    let items = STATUSES.iter().enumerate().map(|(at, status)| {
        format!(
            r#"{{"id": "id-{at}", "name": "o-{at}", "flow": "order", "version": 3, "status": "{status}", "priority": 50,
            "startedTime": "2026-11-22T09:21:40.310Z", "error": "Ship.NoCarrier", "cause": "no <carrier> on Sunday", "step": "ship"}}"#
        )
    });
    let items: Vec<String> = items.collect();
    value(&format!(r#"{{"items": [{}], "next": "c 1"}}"#, items.join(",")))
}

#[test]
fn list_of_executions_is_as_kept() {
    let filter = [
        ("flow".to_owned(), "order".to_owned()),
        ("status".to_owned(), "Failed".to_owned()),
        ("label".to_owned(), "shop:it's <here>".to_owned()),
    ];
    for language in [Language::English, Language::Chinese] {
        let views = [
            ("failed in <Berlin>".to_owned(), filter.to_vec()),
            ("slow".to_owned(), vec![("step".to_owned(), "pay".to_owned())]),
        ];
        let parts = ListParts {
            filter: &filter,
            page: &list(),
            stats: &day(),
            counts: &value(r#"{"statuses": {"Running": 9, "Failed": 2, "TimedOut": 1}, "reasons": {}}"#),
            views: &views,
        };
        let page = executions(&frame(language, "/executions?flow=order"), &parts);
        is_as_kept(&format!("executions.{}.html", language.tag()), &page);
    }
}

/// The counts of a day of six quarters.
fn day() -> Value {
    let quarters = ["09:30", "09:45", "10:00", "10:15", "10:30", "10:45"];
    let quarters = quarters.iter().enumerate().map(|(at, time)| {
        let ended = at * 3;
        format!(r#"{{"time": "2026-11-22T{time}:00Z", "started": 2, "ended": {ended}, "failed": 1}}"#)
    });
    let quarters = quarters.collect::<Vec<_>>().join(",");
    value(&format!(
        r#"{{"day": {{"since": "2026-11-22T09:31:00Z", "quarters": [{quarters}]}}}}"#
    ))
}

/// The list without counts and views.
fn listed(filter: &[(String, String)], page: &Value) -> String {
    let parts = ListParts {
        filter,
        page,
        stats: &Value::Null,
        counts: &Value::Null,
        views: &[],
    };
    executions(&frame(Language::English, "/executions"), &parts)
}

#[test]
fn overview_is_as_kept() {
    let minutes = (0..60).map(|minute| {
        let (ended, failed) = match minute {
            57 => (40, 3),
            58 => (9, 0),
            59 => (1, 1),
            _ => (0, 0),
        };
        format!(
            r#"{{"time": "2026-11-22T09:{minute:02}:00Z", "started": {ended}, "ended": {ended}, "failed": {failed}}}"#
        )
    });
    let minutes = minutes.collect::<Vec<_>>().join(",");
    let stats = value(&format!(
        r#"{{"since": "2026-11-22T09:00:00Z", "to": "2026-11-22T10:00:00Z", "counts": {{"started": 50, "ended": {{"Succeeded": 46,
        "Failed": 3, "TimedOut": 1}}, "turns": 420, "events": 999, "calls": 77, "failedAttempts": 12}}, "minutes": [{minutes}],
        "failures": [{{"flow": "order", "step": "ship", "error": "Ship.<NoCarrier>", "executions": 3, "attempts": 9}},
        {{"flow": "order", "step": "pay", "error": "HTTP.503", "executions": 0, "attempts": 3}}], "otherFailures": 4, "flows":
        [{{"flow": "order", "started": 50, "ended": 50, "failed": 4, "medianMs": 319, "p95Ms": 8191}}, {{"flow": "new", "started": 1,
        "ended": 0, "failed": 0, "medianMs": null, "p95Ms": null}}], "server": {{"version": "0.1.0", "startedTime":
        "2026-11-21T09:00:00Z", "followers": 2, "waitingRequests": 1}}}}"#
    ));
    let counts = value(r#"{"statuses": {"Running": 9}, "reasons": {"queue": 5, "manual": 1, "running": 3, "key": 0}}"#);
    let queues = value(
        r#"{"items": [{"name": "packing", "waiting": 5, "held": 1, "workers": 2, "dead": 0, "ageSeconds": 75, "paused": true}]}"#,
    );
    let schedules = value(
        r#"{"items": [{"name": "later", "flow": "order", "nextTime": "2026-11-23T00:00:00Z", "paused": false},
        {"name": "off", "flow": "order", "nextTime": null, "paused": true},
        {"name": "soon", "flow": "order", "nextTime": "2026-11-22T10:05:00Z", "paused": false}]}"#,
    );
    let nothing = value(r#"{"items": [], "next": null}"#);
    for language in [Language::English, Language::Chinese] {
        let parts = OverviewParts {
            stats: &stats,
            counts: &counts,
            manual: &nothing,
            failed: &list(),
            queues: &queues,
            schedules: &schedules,
        };
        let page = overview(&frame(language, "/"), &parts);
        assert!(page.find(">soon<") < page.find(">later<") && page.find(">later<") < page.find(">off<"));
        is_as_kept(&format!("overview.{}.html", language.tag()), &page);
    }
}

#[test]
fn empty_list_says_what_next() {
    let nothing = value(r#"{"items": [], "next": null}"#);
    let more = value(r#"{"items": [], "next": "7", "looked": "2026-11-22T09:21:40Z"}"#);
    let filter = [("flow".to_owned(), "order".to_owned())];
    assert!(listed(&[], &nothing).contains("Nothing has run yet."));
    assert!(listed(&filter, &nothing).contains("No execution matches the filter."));
    let page = listed(&filter, &more);
    assert!(page.contains("Looked at those requested since 11-22 09:21:40"));
    assert!(page.contains("older ones may match") && page.contains("href=\"/executions?flow=order&amp;cursor=7\""));
}

fn visit() -> Value {
    value(
        r#"{"event": 4, "step": "ship", "path": [], "status": "failed", "tries": [
        {"attempt": 1, "status": "failed", "startedTime": "2026-11-22T09:21:41Z", "endedTime": "2026-11-22T09:21:42Z", "error":
        "HTTP.503", "cause": "<busy>", "resource": "http://a/ship", "input": {"id": 7, "n": 1}},
        {"attempt": 2, "status": "failed", "startedTime": "2026-11-22T09:21:44Z", "endedTime": "2026-11-22T09:21:45Z", "error":
        "Ship.NoCarrier", "cause": "", "resource": "http://a/ship", "input": {"id": 7, "n": 2}, "left": {"output": {"event": 9,
        "part": "output", "bytes": 70000}}}], "pauses": [{"kind": "backoff", "attempt": 2, "status": "succeeded", "startedTime":
        "2026-11-22T09:21:42Z", "endedTime": "2026-11-22T09:21:44Z", "until": "2026-11-22T09:21:44Z"}], "earlierLeftOut": 3}"#,
    )
}

fn timeline() -> Value {
    let span = |kind: &str, status: &str, from: &str, to: &str| {
        format!(
            r#"{{"kind": "{kind}", "attempt": 1, "status": "{status}", "startedTime": "2026-11-22T{from}Z", "endedTime":
            "2026-11-22T{to}Z", "error": "<E>"}}"#
        )
    };
    let spans = [
        span("attempt", "failed", "09:21:41", "09:21:42"),
        span("backoff", "succeeded", "09:21:42", "11:21:42"),
        span("attempt", "succeeded", "11:21:42", "11:21:43"),
    ];
    value(&format!(
        r#"{{"from": "2026-11-22T09:21:41Z", "to": "2026-11-22T11:21:43Z", "next": 9, "items": [
        {{"event": 4, "step": "ship", "path": [], "status": "succeeded", "enteredTime": "2026-11-22T09:21:41Z", "endedTime":
        "2026-11-22T11:21:43Z", "spans": [{}]}}, {{"event": 7, "step": "each", "path": [{{"step": "both", "branch": 1}}], "status":
        "running", "enteredTime": "2026-11-22T09:21:41Z", "endedTime": null, "spans": [], "children": 20, "bands": [[20, 1], [3, 0]]}}]}}"#,
        spans.join(",")
    ))
}

/// The page of an execution of which nothing more is known.
fn nothing_of<'a>(id: &'a str, execution: &'a Value) -> ExecutionParts<'a> {
    ExecutionParts {
        view: View {
            id,
            tab: TABS[0],
            ..View::default()
        },
        end: 12,
        incidents: &Value::Null,
        execution,
        timeline: &Value::Null,
        steps: &Value::Null,
        events: &Value::Null,
        failed_only: false,
        event_filter: ["", ""],
        events_when: "",
        visit: &Value::Null,
        iterations: &Value::Null,
        log: &Value::Null,
        source: "",
        items_only: "",
        children: &Value::Null,
        open: &Value::Null,
        manual: &Value::Null,
        awaiting: &Value::Null,
        definition: &Value::Null,
        graph: "",
        done: "",
    }
}

#[test]
fn execution_is_as_kept() {
    let rows = STEP_STATUSES.iter().enumerate().map(|(at, status)| {
        format!(
            r#"{{"event": {at}, "step": "s{at}", "path": [], "run": 1, "status": "{status}", "attempts": 2, "enteredTime":
            "2026-11-22T09:21:41Z", "endedTime": null, "waitsUntil": null, "error": null, "cause": null}}"#
        )
    });
    let rows: Vec<String> = rows.collect();
    let steps = value(&format!(r#"{{"items": [{}], "next": 12}}"#, rows.join(",")));
    let failed = value(
        r#"{"id": "id-7", "name": "o-7", "flow": "order", "version": 3, "status": "RollbackFailed", "priority": 50,
        "startedTime": "2026-11-22T09:21:40.310Z", "endedTime": "2026-11-22T09:25:52.310Z", "error": "Ship.NoCarrier",
        "cause": "no carrier", "step": "ship", "labels": {"shop": "berlin"}, "input": {"id": 7, "note": "<b>\u202e"},
        "rollback": {"step": "pay", "error": "HTTP.500", "cause": "down", "left": ["pay", "reserve"]},
        "parent": {"execution": "id-1", "event": 4}}"#,
    );
    let events = value(
        r#"{"items": [{"id": 2, "causedBy": 1, "time": "2026-11-22T09:21:41Z", "step": "s1", "path": [], "type":
        "StepFailed", "detail": {"error": "HTTP.503"}}, {"id": 1, "causedBy": 0, "time": "2026-11-22T09:21:40Z", "step": "",
        "path": [], "type": "ExecutionStarted", "detail": {}}], "next": null}"#,
    );
    let (visit, timeline) = (visit(), timeline());
    let log = value(r#"{"event": 8, "text": "no <carrier>\n"}"#);
    let children = value(
        r#"{"items": [{"id": "id-9", "name": "c<1>", "flow": "child", "status": "Running", "startedTime":
        "2026-11-22T09:21:41Z"}], "next": null}"#,
    );
    let incidents = value(
        r#"{"failures": {"count": 2, "events": [2, 12]}, "retries": {"count": 1, "events": [3]}, "pauses": {"count": 1, "events": [7]}}"#,
    );
    let parts = ExecutionParts {
        incidents: &incidents,
        steps: &steps,
        events: &events,
        visit: &visit,
        log: &log,
        source: "{\"steps\": [\n  {\"type\": \"task\",\n   \"name\": \"ship\"}\n]}",
        timeline: &timeline,
        children: &children,
        graph: "<svg class=\"flow\"></svg>",
        done: "redrive",
        ..nothing_of("id-7", &failed)
    };
    for (tab, language) in TABS
        .into_iter()
        .zip([Language::English, Language::Chinese].into_iter().cycle())
    {
        let view = View {
            id: "id-7",
            tab,
            at: Some(2),
            visit: Some(4),
            ..View::default()
        };
        let page = execution(&frame(language, "/executions/id-7"), &ExecutionParts { view, ..parts });
        assert!(!page.contains('\u{202e}') && !page.contains("<b>\u{27e8}"));
        is_as_kept(&format!("execution.{tab}.{}.html", language.tag()), &page);
    }
}

#[test]
fn step_that_asks_is_decided_by_a_form() {
    let waits = value(
        r#"{"id": "id-7", "name": "o-7", "flow": "order", "version": 3, "status": "Manual", "priority": 50,
        "startedTime": "2026-11-22T09:21:40.310Z"}"#,
    );
    let manual =
        value(r#"{"items": [{"event": 9, "step": "pay", "error": "Payment.Unclear", "cause": "?"}], "next": null}"#);
    let parts = ExecutionParts {
        manual: &manual,
        ..nothing_of("id-7", &waits)
    };
    let operates = frame(Language::English, "/executions/id-7");
    let page = execution(&operates, &parts);
    assert_eq!(page.matches("action=\"/executions/id-7/resolve\"").count(), 3);
    assert!(page.contains("name=\"event\" value=\"9\""));
    let reads = Frame {
        scopes: vec!["read"],
        ..operates
    };
    let page = execution(&reads, &parts);
    assert!(page.contains("with the scope operate") && !page.contains("name=\"action\""));
}

#[test]
fn step_that_waits_for_a_report_is_reported_by_a_form() {
    let waits = value(
        r#"{"id": "id-7", "name": "o-7", "flow": "order", "version": 3, "status": "Running", "priority": 50,
        "startedTime": "2026-11-22T09:21:40.310Z"}"#,
    );
    let awaiting = value(
        r#"{"items": [{"event": 9, "step": "approve", "waitingFor": {"reason": "callback", "text": "a report"}}, {"event": 4,
        "step": "pay", "waitingFor": {"reason": "answer", "text": "the answer"}}], "next": null}"#,
    );
    let parts = ExecutionParts {
        awaiting: &awaiting,
        ..nothing_of("id-7", &waits)
    };
    let page = execution(&frame(Language::English, "/executions/id-7"), &parts);
    // One form for each answer.
    assert_eq!(page.matches("action=\"/executions/id-7/report\"").count(), 2);
    assert!(page.contains("name=\"event\" value=\"9\"") && page.contains("approve waits for a report"));
    // A fork goes on from the event that is looked at, or the last.
    assert!(page.contains("action=\"/executions/id-7/fork\"") && page.contains("required value=\"12\""));
}

#[test]
fn failed_visit_is_entered_again_with_another_input() {
    let ended = |status: &str| {
        value(&format!(
            r#"{{"id": "id-7", "name": "o-7", "flow": "order", "version": 3, "status": "{status}", "priority": 50,
            "startedTime": "2026-11-22T09:21:40.310Z"}}"#
        ))
    };
    let (visit, failed, done) = (visit(), ended("Failed"), ended("Succeeded"));
    let view = View {
        id: "id-7",
        tab: TABS[0],
        visit: Some(4),
        ..View::default()
    };
    let page = |execution_is| {
        let parts = ExecutionParts {
            view,
            visit: &visit,
            ..nothing_of("id-7", execution_is)
        };
        execution(&frame(Language::English, "/executions/id-7"), &parts)
    };
    let form = "name=\"event\" value=\"4\"";
    assert!(page(&failed).contains(form) && page(&failed).contains("&quot;n&quot;: 2"));
    assert!(!page(&done).contains(form));
}

#[test]
fn map_of_a_foreach_has_a_cell_for_each_item_or_a_band_for_many() {
    let runs = value(
        r#"{"id": "id-7", "name": "o-7", "flow": "order", "version": 3, "status": "Running", "priority": 50,
        "startedTime": "2026-11-22T09:21:40.310Z"}"#,
    );
    let visit = visit();
    let page = |letters: &str, only| {
        let iterations = value(&format!(
            r#"{{"map": "{letters}", "counts": {{"failed": 1, "succeeded": 2, "running": 0}}, "next": 50,
            "items": [{{"number": 3, "status": "failed", "event": 12}}, {{"number": 4, "status": "notBegun"}}]}}"#
        ));
        let parts = ExecutionParts {
            view: View {
                id: "id-7",
                tab: TABS[0],
                visit: Some(4),
                ..View::default()
            },
            visit: &visit,
            iterations: &iterations,
            items_only: only,
            ..nothing_of("id-7", &runs)
        };
        execution(&frame(Language::English, "/executions/id-7"), &parts)
    };
    let few = page("srf.", "");
    for cell in [
        "class=\"b-ok\" x=\"0\"",
        "class=\"b-run\" x=\"20\"",
        "class=\"b-fail\" x=\"40\"",
        "class=\"rail\" x=\"60\"",
    ] {
        assert!(few.contains(cell), "{cell}: {few}");
    }
    assert!(
        few.contains("href=\"/executions/id-7?at=12&#38;visit=4\"") || few.contains("?at=12&amp;visit=4\""),
        "{few}"
    );
    assert!(
        few.contains("visit=4&amp;items=failed#map") && few.contains("visit=4&amp;item=50#map"),
        "{few}"
    );
    let mut letters = "s".repeat(1_000_000);
    letters.replace_range(500_000..500_001, "f");
    let many = page(&letters, "failed");
    assert_eq!(many.matches("class=\"b-fail\" x=").count(), 1, "one band");
    // Each by itself is drawn by a script, which is told where it finds how they stand.
    assert!(
        many.contains("data-letters=\"/executions/id-7/map?event=4\"")
            && many.contains("data-letter=\"f\" data-word=\"Failed\""),
        "{many}"
    );
    assert!(!few.contains("data-letters"));
    assert!(
        many.contains("1667 in each cell") && many.contains("Failed 1, Succeeded 1666"),
        "{many}"
    );
    assert!(
        many.contains("items=failed&amp;item=50#map") && many.len() < 200_000,
        "{}",
        many.len()
    );
    assert!(!page("", "").contains("id=\"map\""));
}

#[test]
fn flow_has_a_form_of_its_schema() {
    let shown = value(
        r#"{"name": "order", "version": 3, "hash": "abc", "createdTime": "2026-11-22T09:21:40Z", "maxRunning": null,
        "paused": true, "text": "{\n  \"a\": \"<new>\"\n}", "definition": {"inputSchema": {"type": "object", "required": ["id"], "properties": {
            "id": {"type": "integer", "description": "its <number>"}, "size": {"enum": ["s", "m"]},
            "express": {"type": "boolean"}, "note": {"type": "string"}, "lines": {"type": "array"}}}}}"#,
    );
    let versions = value(r#"{"items": [{"name": "order", "version": 3, "createdTime": "2026-11-22T09:21:40Z"}]}"#);
    let like = value(r#"{"id": 7, "size": "m", "express": false, "note": "a\u202eb", "lines": ["x\u202e"]}"#);
    let mut frame = frame(Language::English, "/flows/order");
    frame.scopes = vec!["read", "start"];
    let figures = value(
        r#"{"steps": [{"step": "a <step> that is gone", "since": "2026-11-21T10:00:00Z", "attempts": 1, "failed": 1, "medianMs": null,
        "p95Ms": null}, {"step": "ship", "since": "2026-11-22T09:00:00Z", "attempts": 1000, "failed": 0, "medianMs": 31, "p95Ms": 5310}]}"#,
    );
    let other = value(r#"{"version": 2, "text": "{\n  \"a\": \"<old>\"\n}"}"#);
    let parts = FlowPageParts {
        flow: &shown,
        versions: &versions,
        other: &other,
        graph: "<svg class=\"flow\"></svg>",
        stats: &figures,
        like: &like,
        done: "put",
    };
    let page = flow(&frame, &parts);
    is_as_kept("flow.en.html", &page);
}

#[test]
fn plain_pages_are_as_kept() {
    let frame = frame(Language::Chinese, "/queues");
    let listed = value(
        r#"{"items": [{"name": "fraud", "waiting": 214, "held": 0, "dead": 3, "workers": 0, "busyWorkers": 0, "ageSeconds": 252,
        "paused": true}], "next": null}"#,
    );
    is_as_kept("queues.zh-Hans.html", &queues(&frame, &listed));
    is_as_kept(
        "problem.zh-Hans.html",
        &problem(&frame, 409, "NotRunning", "it has <ended>"),
    );
}

#[test]
fn queue_shows_its_last_hour() {
    let shown = value(
        r#"{"name": "fraud", "waiting": 214, "held": 0, "dead": 3, "workers": 0, "busyWorkers": 0, "ageSeconds": 252, "minutes":
        [{"time": "2026-11-22T08:59:00Z", "waiting": 900}, {"time": "2026-11-22T09:58:00Z", "waiting": 0}, {"time":
        "2026-11-22T09:59:00Z", "waiting": 1}, {"time": "2026-11-22T10:00:00Z", "waiting": 214}]}"#,
    );
    let parts = QueueParts {
        queue: &shown,
        list: &value(r#"{"items": []}"#),
        tab: "waiting",
        done: "",
    };
    let mut frame = frame(Language::English, "/queues/fraud");
    frame.zone = Zone::parse("Asia/Kolkata").unwrap();
    is_as_kept("queue.en.html", &queue(&frame, &parts));
}

/// What is in a page by the clocks of a zone: all times but those in JSON.
#[test]
fn page_has_the_times_of_one_zone() {
    let runs = value(
        r#"{"id": "id-7", "name": "o-7", "flow": "order", "version": 3, "status": "Running", "priority": 50,
        "startedTime": "2026-11-22T17:21:40.310Z", "waitingFor": {"reason": "timer", "since": "2026-11-22T17:21:41Z", "until":
        "2026-11-22T18:00:00Z", "text": "`sleep` waits; it goes on at 2026-11-22T18:00:00.000Z"}}"#,
    );
    let timeline = timeline();
    let parts = ExecutionParts {
        timeline: &timeline,
        ..nothing_of("id-7", &runs)
    };
    let mut frame = frame(Language::English, "/executions/id-7");
    frame.zone = Zone::parse("Asia/Shanghai").unwrap();
    frame.zone_of_link = true;
    let page = execution(&frame, &parts);
    for shown in [
        "<dd>11-23 01:21:40</dd>",
        "it goes on at 11-23 02:00:00",
        "data-zone=\"Asia/Shanghai\"",
        ">UTC+8</summary>",
        "<b>Asia/Shanghai</b> (UTC+8). <a href=\"/executions/id-7\">",
        // The time line begins at 09:21:41 in UTC.
        ">17:21:41.500</text>",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(
        !page.contains("2026-11-22T18") && !page.contains(">UTC</summary>"),
        "{page}"
    );
}
