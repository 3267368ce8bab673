//! Bulk jobs: what one would be for, and what became of each execution of one.

use crate::escape::visible_json;
use crate::executions::{Row, command_of};
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{count, items, next, number, path_part, text};
use crate::texts::with_noun;
use crate::words::{State, state};
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::value::{Object, Value};

/// What can be done to many executions from the list.
pub const BULK_ACTIONS: [&str; 6] = ["redrive", "stop", "pause", "resume", "skip", "delete"];

/// Above so many executions their number has to be typed.
const TYPED_ABOVE: u64 = 100;

/// Whether the number of executions has to be typed. What is deleted does not come back.
pub fn is_typed(action: &str, executions: u64) -> bool {
    executions > TYPED_ABOVE || action == "delete"
}

/// What the preview of a bulk job is made of.
#[derive(Clone, Copy, Debug)]
pub struct PreviewParts<'a> {
    /// What is to be done.
    pub action: &'a str,
    /// Which executions it is for, as the API takes it.
    pub filter: Option<&'a Object>,
    /// Their ids, where they were chosen one by one.
    pub executions: Option<&'a Value>,
    /// What the API says of it.
    pub preview: &'a Value,
}

#[derive(Template)]
#[template(path = "bulk_new.html")]
struct Preview<'a> {
    f: &'a Frame,
    t: Reader,
    action: &'a str,
    word: &'static str,
    filter: Option<String>,
    executions: Option<String>,
    count: u64,
    counted: String,
    typed: bool,
    causes: bool,
    counts: Vec<(String, State, String)>,
    rows: Vec<Row>,
    command: String,
}

fn word(action: &str, t: Reader) -> &'static str {
    match action {
        "stop" => t.stop,
        "pause" => t.pause,
        "resume" => t.resume,
        "skip" => t.skip_undo,
        "delete" => t.delete,
        _ => t.redrive,
    }
}

/// What a bulk job would be for, with the form that makes it.
pub fn bulk_preview(frame: &Frame, parts: &PreviewParts<'_>) -> String {
    let t = frame.t();
    let executions = number(parts.preview, "executions").unwrap_or_default();
    let counts = items(parts.preview, "counts").iter().map(|counted| {
        let flow = text(counted, "flow").to_owned();
        (flow, state(text(counted, "status"), t), count(counted, "executions"))
    });
    let json = |value: &Value| visible_json(&value.to_json());
    written(&Preview {
        f: frame,
        t,
        action: parts.action,
        word: word(parts.action, t),
        filter: parts.filter.map(|filter| json(&filter.clone().into())),
        executions: parts.executions.map(json),
        count: executions,
        counted: with_noun(executions, t.execution_count, t.executions_count),
        typed: is_typed(parts.action, executions),
        causes: matches!(parts.action, "stop" | "pause" | "skip"),
        counts: counts.collect(),
        rows: items(parts.preview, "examples")
            .iter()
            .map(|item| Row::of(item, frame))
            .collect(),
        command: command(parts),
    })
}

/// The command that does the same; none for executions that were chosen one by one.
fn command(parts: &PreviewParts<'_>) -> String {
    let Some(filter) = parts.filter else {
        return String::new();
    };
    let action = match parts.action {
        "resume" => "unpause",
        action => action,
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (key, value) in filter {
        match value {
            Value::Array(several) => {
                let each = several.values().iter().filter_map(Value::as_str);
                pairs.extend(each.map(|value| (key.to_string(), value.to_owned())));
            }
            Value::Object(labels) => {
                let each = labels
                    .iter()
                    .map(|(label, value)| format!("{label}={}", value.to_plain_text()));
                pairs.extend(each.map(|value| ("label".to_owned(), value)));
            }
            value => pairs.push((key.to_string(), value.to_plain_text())),
        }
    }
    if pairs.is_empty() {
        return format!("starbridge bulk {action} --all --dry-run");
    }
    // An `--error` of the command is the one that executions are to end with.
    let option = |key| match (action, key) {
        ("stop", "error") => "with-error",
        ("stop", "step") => "in-step",
        (_, key) => key,
    };
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(key, value)| (option(key.as_str()), value.as_str()))
        .collect();
    command_of(&format!("starbridge bulk {action}"), &pairs) + " --dry-run"
}

/// What the page of a bulk job is made of: what the API answers.
#[derive(Clone, Copy, Debug)]
pub struct JobParts<'a> {
    /// As `GET /v1/bulk/{id}` has it.
    pub job: &'a Value,
    /// A page of its items.
    pub items: &'a Value,
    /// Only those with this result are shown; empty: all.
    pub result: &'a str,
    /// The action that was just done, in one word.
    pub done: &'a str,
}

struct Item {
    number: String,
    href: String,
    id: String,
    state: State,
    code: String,
}

#[derive(Template)]
#[template(path = "bulk_job.html")]
struct Job<'a> {
    f: &'a Frame,
    t: Reader,
    id: &'a str,
    part: String,
    said: Option<&'static str>,
    lacks: Option<String>,
    acts: Vec<(&'static str, &'static str)>,
    state: State,
    facts: Vec<(&'static str, String)>,
    share: u64,
    filter: String,
    tabs: Vec<(String, &'static str, String, bool)>,
    items: Vec<Item>,
    more: Option<String>,
    live: &'static str,
}

/// The state of a job, with "waiting" for one that waits for others.
pub(crate) fn job_state(job: &Value, t: Reader) -> State {
    let (class, sign, word) = match text(job, "state") {
        _ if job.get("waitsFor").is_some() => ("wait", "glass", t.waiting),
        "collecting" => ("wait", "glass", t.collecting),
        "running" => ("run", "run", t.running),
        "suspended" => ("wait", "wait", t.suspended),
        "cancelled" => ("stop", "stop", t.cancelled),
        _ => ("ok", "ok", t.done),
    };
    State { class, sign, word }
}

fn result_state(word: &str, t: Reader) -> State {
    let (class, sign, word) = match word {
        "open" => ("wait", "glass", t.open),
        "done" => ("ok", "ok", t.done),
        "skipped" => ("stop", "stop", t.skipped),
        _ => ("fail", "fail", t.failed),
    };
    State { class, sign, word }
}

/// What a job waits for, if it waits for others.
fn waits_for(job: &Value, t: Reader) -> Option<&'static str> {
    match text(job, "waitsFor") {
        "" => None,
        "collection" => Some(t.waits_for_collection),
        _ => Some(t.waits_for_place),
    }
}

/// The page of a bulk job.
pub fn bulk_job(frame: &Frame, parts: &JobParts<'_>) -> String {
    let t = frame.t();
    let job = parts.job;
    let id = text(job, "id");
    let part = path_part(id);
    let stands = text(job, "state");
    let acts: &[(&str, &str)] = match stands {
        "running" | "collecting" => &[("suspend", t.suspend), ("cancel", t.cancel)],
        "suspended" => &[("resume", t.resume), ("cancel", t.cancel)],
        _ => &[],
    };
    let whole = number(job, "items").unwrap_or_default();
    let open = number(job, "open").unwrap_or_default();
    let tab = |word: &'static str, shown: &'static str, key: &str| {
        let href = match word {
            "" => format!("/bulk/{part}"),
            word => format!("/bulk/{part}?result={word}"),
        };
        (href, shown, count(job, key), parts.result == word)
    };
    let tabs = vec![
        tab("", t.items, "items"),
        tab("open", t.open, "open"),
        tab("done", t.done, "done"),
        tab("skipped", t.skipped, "skipped"),
        tab("failed", t.failed, "failed"),
    ];
    let item = |item: &Value| Item {
        number: count(item, "item"),
        href: format!("/executions/{}", path_part(text(item, "execution"))),
        id: text(item, "execution").to_owned(),
        state: result_state(text(item, "result"), t),
        code: text(item, "code").to_owned(),
    };
    let mut facts = vec![
        (t.action, text(job, "action").to_owned()),
        (t.by, text(job, "by").to_owned()),
        (t.created, t.moment(job, "createdTime")),
    ];
    facts.extend(waits_for(job, t).map(|why| (t.why, why.to_owned())));
    if job.get("endedTime").is_some() {
        facts.push((t.ended, t.moment(job, "endedTime")));
    }
    written(&Job {
        f: frame,
        t,
        id,
        said: done(frame, parts.done),
        lacks: frame.lacks("operate"),
        acts: acts.to_vec(),
        state: job_state(job, t),
        facts,
        share: (whole - open.min(whole)) * 1_000 / whole.max(1),
        filter: job.get("filter").map(Value::to_json).unwrap_or_default(),
        tabs,
        items: items(parts.items, "items").iter().map(item).collect(),
        more: next(parts.items).map(|next| match parts.result {
            "" => format!("/bulk/{part}?cursor={}", path_part(&next)),
            result => format!("/bulk/{part}?result={result}&cursor={}", path_part(&next)),
        }),
        live: match stands {
            "running" | "collecting" | "suspended" => "bulk",
            _ => "",
        },
        part,
    })
}
