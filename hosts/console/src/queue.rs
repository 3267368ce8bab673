//! One queue: what is set, what waits, who holds what, and what failed for good.

use crate::escape::visible_json;
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{count, duration, is_set, items, moment, number, path_part, pretty, text};
use crate::texts::Texts;
use askama::Template;
use starbridge_flow::time::{Millis, Seconds};
use starbridge_flow::value::Value;

/// What the page of a queue can list.
pub const QUEUE_TABS: [&str; 4] = ["waiting", "held", "dead", "workers"];

/// So many bytes of an input are shown.
const INPUT_BYTES: usize = 4 * 1024;

/// What the page of a queue is made of: what the API answers.
#[derive(Clone, Copy, Debug)]
pub struct QueueParts<'a> {
    /// As `GET /v1/queues/{queue}` has it.
    pub queue: &'a Value,
    /// Its tasks that stand as the tab says, or its workers.
    pub list: &'a Value,
    /// The open tab.
    pub tab: &'a str,
    /// The action that was just done, in one word.
    pub done: &'a str,
}

struct Task {
    place: String,
    href: String,
    name: String,
    flow: String,
    step: String,
    priority: String,
    attempt: String,
    since: String,
    until: String,
    worker: String,
    error: String,
    cause: String,
    input: String,
}

impl Task {
    fn of(task: &Value) -> Self {
        let id = text(task, "execution");
        let first = |keys: [&str; 3]| {
            let known = keys.into_iter().find(|key| task.get(key).is_some());
            known.map_or_else(|| "–".to_owned(), |key| moment(task, key))
        };
        Self {
            place: format!("{id}/{}", count(task, "call")),
            href: format!("/executions/{}?tab=steps", path_part(id)),
            name: text(task, "name").to_owned(),
            flow: text(task, "flow").to_owned(),
            step: text(task, "step").to_owned(),
            priority: count(task, "priority"),
            attempt: count(task, "attempt"),
            since: first(["heldTime", "time", "since"]),
            until: first(["leaseUntil", "waitUntil", "-"]),
            worker: text(task, "worker").to_owned(),
            error: text(task, "error").to_owned(),
            cause: text(task, "cause").to_owned(),
            input: match (task.get("input"), number(task, "inputBytes")) {
                (Some(input), _) => pretty(input, INPUT_BYTES),
                (None, Some(bytes)) => format!("… {bytes} B"),
                (None, None) => String::new(),
            },
        }
    }
}

struct Worker {
    name: String,
    held: String,
    since: String,
    waits: bool,
}

#[derive(Template)]
#[template(path = "queue.html")]
struct Queue<'a> {
    f: &'a Frame,
    t: &'static Texts,
    name: &'a str,
    part: String,
    said: Option<&'static str>,
    lacks: Option<String>,
    paused: bool,
    facts: Vec<(&'static str, String)>,
    max: String,
    rate: String,
    redeliver: String,
    no_workers: bool,
    tab: &'a str,
    tabs: Vec<(String, &'static str, bool)>,
    tasks: Vec<Task>,
    workers: Vec<Worker>,
}

/// The page of a queue.
pub fn queue(frame: &Frame, parts: &QueueParts<'_>) -> String {
    let t = frame.t();
    let queue = parts.queue;
    let name = text(queue, "name");
    let part = path_part(name);
    let set = |key: &str| match queue.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(value) => visible_json(&value.to_json()),
    };
    let age = number(queue, "ageSeconds").map(|age| duration(Millis::from(Seconds(age))));
    let words = [t.waiting, t.held, t.dead, t.workers];
    let tabs = QUEUE_TABS.into_iter().zip(words);
    let is_of_workers = parts.tab == "workers";
    let worker = |worker: &Value| Worker {
        name: text(worker, "worker").to_owned(),
        held: count(worker, "held"),
        since: moment(worker, "since"),
        waits: number(worker, "polls").is_some_and(|polls| polls > 0),
    };
    let listed = items(parts.list, "items");
    written(&Queue {
        f: frame,
        t,
        name,
        said: done(frame, parts.done),
        lacks: frame.lacks("operate"),
        paused: is_set(queue, "paused"),
        facts: vec![
            (t.waiting, count(queue, "waiting")),
            (t.oldest, age.unwrap_or_else(|| "–".to_owned())),
            (t.held, count(queue, "held")),
            (t.workers, count(queue, "workers")),
            (t.busy, count(queue, "busyWorkers")),
            (t.dead, count(queue, "dead")),
        ],
        max: set("maxConcurrent"),
        rate: set("ratePerSecond"),
        redeliver: set("redeliver"),
        no_workers: number(queue, "workers") == Some(0) && number(queue, "busyWorkers") == Some(0),
        tab: parts.tab,
        tabs: tabs
            .map(|(tab, word)| (format!("/queues/{part}?tab={tab}"), word, tab == parts.tab))
            .collect(),
        tasks: match is_of_workers {
            true => Vec::new(),
            false => listed.iter().map(Task::of).collect(),
        },
        workers: match is_of_workers {
            true => listed.iter().map(worker).collect(),
            false => Vec::new(),
        },
        part,
    })
}
