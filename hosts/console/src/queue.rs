//! One queue: what is set, what waits, who holds what, and what failed for good.

use crate::escape::visible_json;
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{count, duration, is_set, items, number, path_part, pretty, text, time};
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::time::{Millis, Seconds, Timestamp};
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
    fn of(task: &Value, t: Reader) -> Self {
        let id = text(task, "execution");
        let first = |keys: [&str; 3]| {
            let known = keys.into_iter().find(|key| task.get(key).is_some());
            known.map_or_else(|| "–".to_owned(), |key| t.moment(task, key))
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

/// How many tasks waited, by the minute: a bar for each.
struct Depth {
    /// Where a bar stands, how high it is, and what it says.
    bars: Vec<(i64, u64, u64, String)>,
    most: u64,
    first: String,
    last: String,
}

/// The minutes of the picture, and its size.
const MINUTES: i64 = 60;
const STEP: i64 = 10;
const HEIGHT: u64 = 60;

impl Depth {
    /// Nothing, where nothing is known.
    fn of(queue: &Value, now: Timestamp, t: Reader) -> Option<Self> {
        let minute = |time: Timestamp| time.0.div_euclid(60_000);
        let first = minute(now) - MINUTES + 1;
        let minutes = items(queue, "minutes");
        let waiting = |minute: &Value| number(minute, "waiting").unwrap_or_default();
        let most = minutes.iter().map(waiting).max()?;
        let bar = |item: &Value| {
            let place = minute(time(item, "time")?) - first;
            let high = match waiting(item) {
                0 => 1,
                count => (count.saturating_mul(HEIGHT) / most.max(1)).clamp(2, HEIGHT),
            };
            let says = format!("{}: {}", t.clock(item, "time"), waiting(item));
            (0..MINUTES)
                .contains(&place)
                .then_some((place * STEP, HEIGHT - high, high, says))
        };
        let clock = |minute: i64| t.clocks.written(Timestamp(minute * 60_000), "%H:%M");
        Some(Self {
            bars: minutes.iter().filter_map(bar).collect(),
            most,
            first: clock(first),
            last: clock(minute(now)),
        })
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
    t: Reader,
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
    depth: Option<Depth>,
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
        since: t.moment(worker, "since"),
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
        depth: Depth::of(queue, frame.now, t),
        tab: parts.tab,
        tabs: tabs
            .map(|(tab, word)| (format!("/queues/{part}?tab={tab}"), word, tab == parts.tab))
            .collect(),
        tasks: match is_of_workers {
            true => Vec::new(),
            false => listed.iter().map(|task| Task::of(task, t)).collect(),
        },
        workers: match is_of_workers {
            true => listed.iter().map(worker).collect(),
            false => Vec::new(),
        },
        part,
    })
}
