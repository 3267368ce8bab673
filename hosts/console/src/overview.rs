//! The first page: what happened in the last hour, what fails, what waits, and what comes next.

use crate::executions::Row;
use crate::frame::Frame;
use crate::plain::written;
use crate::pulse::{Bar, Figure, Line, bars, lines};
use crate::read::{count, duration, is_set, items, number, path_part, text};
use crate::texts::with_noun;
use crate::words::reason;
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::time::{Millis, Seconds};
use starbridge_flow::value::{Object, Value};

/// What the page is made of: what the API answers.
#[derive(Debug)]
pub struct OverviewParts<'a> {
    /// What was counted in the last hour.
    pub stats: &'a Value,
    /// How many executions there are, by status and by reason.
    pub counts: &'a Value,
    /// Executions that need a person.
    pub manual: &'a Value,
    /// Executions that failed lately.
    pub failed: &'a Value,
    /// As `GET /v1/queues` has them.
    pub queues: &'a Value,
    /// As `GET /v1/schedules` has them.
    pub schedules: &'a Value,
}

struct Section {
    title: &'static str,
    all: &'static str,
    rows: Vec<Row>,
}

struct Failure {
    href: String,
    flow: String,
    step: String,
    error: String,
    executions: String,
    attempts: String,
}

struct FlowFigures {
    name: String,
    part: String,
    started: String,
    failed: String,
    median: String,
    p95: String,
}

struct QueueRow {
    name: String,
    part: String,
    waiting: String,
    oldest: String,
    held: String,
    workers: String,
    dead: String,
    paused: bool,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview<'a> {
    f: &'a Frame,
    t: Reader,
    since: String,
    bars: Vec<Bar>,
    lines: Vec<Line>,
    first: String,
    last: String,
    most: u64,
    figures: Vec<Figure>,
    failures: Vec<Failure>,
    other_failures: Option<String>,
    waits: Vec<Figure>,
    flows: Vec<FlowFigures>,
    /// Whether there is no execution at all.
    nothing: bool,
    sections: Vec<Section>,
    queues: Vec<QueueRow>,
    schedules: Vec<(String, String, String, bool)>,
    server: Vec<(&'static str, String)>,
}

/// The first page.
pub fn overview(frame: &Frame, parts: &OverviewParts<'_>) -> String {
    let t = frame.t();
    let section = |title, all, page| Section {
        title,
        all,
        rows: Row::all(page, frame),
    };
    let minutes = items(parts.stats, "minutes");
    let (lines, most) = lines(minutes, t);
    let edge = |minute: Option<&Value>| minute.map(|minute| t.clock(minute, "time")).unwrap_or_default();
    let schedule = |item: &Value| {
        (
            text(item, "name").to_owned(),
            text(item, "flow").to_owned(),
            t.moment(item, "nextTime"),
            is_set(item, "paused"),
        )
    };
    let mut schedules: Vec<&Value> = items(parts.schedules, "items").iter().collect();
    schedules.sort_by_key(|item| (is_set(item, "paused"), text(item, "nextTime").to_owned()));
    written(&Overview {
        f: frame,
        t,
        since: t.moment(parts.stats, "since"),
        bars: bars(minutes, t),
        lines,
        first: edge(minutes.first()),
        last: edge(minutes.last()),
        most,
        figures: figures(parts.stats, t),
        failures: items(parts.stats, "failures")
            .iter()
            .take(8)
            .map(|item| failure(item, text(parts.stats, "since")))
            .collect(),
        other_failures: number(parts.stats, "otherFailures")
            .filter(|count| *count > 0)
            .map(|count| with_noun(count, t.other_failure, t.other_failures)),
        waits: waits(parts.counts, t),
        nothing: is_empty(parts.counts),
        flows: items(parts.stats, "flows").iter().take(8).map(flow).collect(),
        sections: vec![
            section(t.wants_a_person, "/executions?reason=manual", parts.manual),
            section(
                t.failed_lately,
                "/executions?status=Failed,TimedOut,RollbackFailed",
                parts.failed,
            ),
        ],
        queues: items(parts.queues, "items").iter().map(queue).collect(),
        schedules: schedules.into_iter().take(8).map(schedule).collect(),
        server: server(frame, parts.stats),
    })
}

/// Whether each of these counts is zero.
fn is_empty(counts: &Value) -> bool {
    let statuses = counts.get("statuses").and_then(Value::as_object);
    let is_zero = |count: &Value| count.as_number().and_then(|count| count.as_u64()) == Some(0);
    statuses.is_some_and(|statuses| statuses.iter().all(|(_, count)| is_zero(count)))
}

fn figures(stats: &Value, t: Reader) -> Vec<Figure> {
    let since = path_part(text(stats, "since"));
    let none = Value::Null;
    let counts = stats.get("counts").unwrap_or(&none);
    let ended = counts.get("ended").unwrap_or(&none);
    let failed = ["Failed", "TimedOut", "RollbackFailed"]
        .iter()
        .filter_map(|status| number(ended, status))
        .sum::<u64>();
    let figure = |class, sign, count: String, word, href: String| Figure {
        class,
        sign,
        count,
        word,
        href,
    };
    vec![
        figure(
            "run",
            "run",
            count(counts, "started"),
            t.started,
            format!("/executions?from={since}"),
        ),
        figure(
            "ok",
            "ok",
            count(ended, "Succeeded"),
            t.succeeded,
            format!("/executions?status=Succeeded&endedFrom={since}"),
        ),
        figure(
            "fail",
            "fail",
            failed.to_string(),
            t.failed,
            format!("/executions?status=Failed,TimedOut,RollbackFailed&endedFrom={since}"),
        ),
        figure(
            "caught",
            "again",
            count(counts, "failedAttempts"),
            t.failed_attempts,
            String::new(),
        ),
        figure("wait", "time", count(counts, "turns"), t.turns, String::new()),
    ]
}

fn failure(item: &Value, since: &str) -> Failure {
    let mut query = Vec::new();
    for key in ["flow", "step", "error"] {
        let value = text(item, key);
        if !value.is_empty() {
            query.push(format!("{key}={}", path_part(value)));
        }
    }
    query.push(format!("endedFrom={}", path_part(since)));
    // Attempts that were caught, or tried again with success, are in no list of ends.
    let href = match number(item, "executions") {
        None | Some(0) => format!("/executions?flow={}", path_part(text(item, "flow"))),
        Some(_) => format!("/executions?{}", query.join("&")),
    };
    Failure {
        href,
        flow: text(item, "flow").to_owned(),
        step: text(item, "step").to_owned(),
        error: text(item, "error").to_owned(),
        executions: count(item, "executions"),
        attempts: count(item, "attempts"),
    }
}

/// What does not go on, by the reason; where the store does not count reasons, by the status.
fn waits(counts: &Value, t: Reader) -> Vec<Figure> {
    let reasons = counts.get("reasons").and_then(Value::as_object);
    let mut found: Vec<(u64, Figure)> = Vec::new();
    for (word, number) in reasons.into_iter().flat_map(Object::iter) {
        let number = number
            .as_number()
            .and_then(serde_json::Number::as_u64)
            .unwrap_or_default();
        if number == 0 || word == "running" {
            continue;
        }
        let shown = reason(word, t);
        found.push((
            number,
            Figure {
                class: if matches!(word.as_str(), "manual" | "broken") {
                    "man"
                } else {
                    "wait"
                },
                sign: shown.0,
                count: number.to_string(),
                word: shown.1,
                href: format!("/executions?reason={}", path_part(word)),
            },
        ));
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.into_iter().map(|(_, figure)| figure).collect()
}

fn flow(item: &Value) -> FlowFigures {
    let span = |key: &str| match number(item, key) {
        None => "–".to_owned(),
        Some(millis) => format!("≤ {}", duration(Millis(millis))),
    };
    let name = text(item, "flow");
    FlowFigures {
        name: name.to_owned(),
        part: path_part(name),
        started: count(item, "started"),
        failed: count(item, "failed"),
        median: span("medianMs"),
        p95: span("p95Ms"),
    }
}

fn queue(item: &Value) -> QueueRow {
    let oldest = number(item, "ageSeconds").map(|age| duration(Millis::from(Seconds(age))));
    QueueRow {
        name: text(item, "name").to_owned(),
        part: path_part(text(item, "name")),
        waiting: count(item, "waiting"),
        oldest: oldest.unwrap_or_else(|| "–".to_owned()),
        held: count(item, "held"),
        workers: count(item, "workers"),
        dead: count(item, "dead"),
        paused: is_set(item, "paused"),
    }
}

fn server(frame: &Frame, stats: &Value) -> Vec<(&'static str, String)> {
    let t = frame.t();
    let none = Value::Null;
    let server = stats.get("server").unwrap_or(&none);
    let started = crate::read::time(server, "startedTime");
    vec![
        (t.version, text(server, "version").to_owned()),
        (t.started, t.moment(server, "startedTime")),
        (t.runs_for, crate::read::span(started, Some(frame.now))),
        (t.followers, count(server, "followers")),
        (t.waiting_requests, count(server, "waitingRequests")),
    ]
}
