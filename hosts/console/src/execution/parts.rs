//! The rows and sentences of an execution's page.

use super::view::View;
use crate::frame::Frame;
use crate::read::{count, items, next, number, path_part, pretty, span, text, time};
use crate::words::{State, has_ended, state, waits};
use crate::zone::Reader;
use starbridge_flow::value::Value;
use std::collections::BTreeMap;

/// So many bytes of an event are shown.
const EVENT_BYTES: usize = 4 * 1024;

/// So many bytes of an event are shown as they are.
const RAW_BYTES: usize = 16 * 1024;

/// Something that can be done, or why it cannot.
pub(super) struct Act {
    pub(super) name: &'static str,
    pub(super) word: &'static str,
    pub(super) sign: &'static str,
    /// Whether it takes a cause.
    pub(super) cause: bool,
    pub(super) first: bool,
    pub(super) why: Option<String>,
    pub(super) command: String,
}

/// What can be done with an execution.
pub(super) fn acts(frame: &Frame, execution: &Value, fork_at: u64) -> Vec<Act> {
    let t = frame.t();
    let status = text(execution, "status");
    let reason = execution.get("waitingFor").map_or("", |why| text(why, "reason"));
    let (ended, paused, broken) = (has_ended(status), reason == "paused", reason == "broken");
    let says = |not: bool, why: &str| not.then(|| why.to_owned());
    let command = |name: &str| format!("starbridge {name} {}", text(execution, "id"));
    let act = |name: &'static str, word, sign, cause, why: Option<String>| Act {
        name,
        word,
        sign,
        cause,
        first: false,
        why: frame.lacks("operate").or(why),
        command: command(name),
    };
    let redrive = match status {
        "Succeeded" => Some(t.has_succeeded.to_owned()),
        _ => says(!ended && !broken, t.has_not_ended),
    };
    let mut acts = vec![act("stop", t.stop, "stop", true, says(ended, t.has_ended))];
    if paused {
        acts.push(act("resume", t.resume, "run", false, None));
    } else {
        acts.push(act("pause", t.pause, "wait", true, says(ended, t.has_ended)));
    }
    if status == "RollbackFailed" {
        acts.push(act("skip", t.skip_undo, "undo", true, None));
    }
    acts.push(Act {
        first: ended || broken,
        ..act("redrive", t.redrive, "again", false, redrive)
    });
    acts.push(Act {
        command: format!("{} --event {fork_at}", command("fork")),
        ..act("fork", t.fork, "fork", false, says(fork_at == 0, t.has_not_begun))
    });
    acts
}

/// Why an execution failed, or does not go on.
pub(super) struct Why {
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) error: String,
    pub(super) step: String,
    pub(super) text: String,
    pub(super) then: String,
    pub(super) act: String,
    /// The list of those that failed alike.
    pub(super) others: Option<String>,
}

/// So many steps are named that an execution waits for.
const NAMED: usize = 5;

/// What the steps of an execution wait for that has not ended.
fn awaited(steps: &Value, t: Reader) -> Vec<Why> {
    let waiting = items(steps, "items").iter().filter_map(|step| {
        let waiting = step.get("waitingFor")?;
        let mut then = String::new();
        for (word, value, key) in [(t.since, waiting, "since"), (t.until, step, "waitsUntil")] {
            if time(value, key).is_some() {
                then.push_str(&format!("{word} {} ", t.moment(value, key)));
            }
        }
        Some(Why {
            class: if text(waiting, "reason") == "operator" {
                "wants"
            } else {
                "note"
            },
            sign: "wait",
            error: text(step, "error").to_owned(),
            step: text(step, "step").to_owned(),
            text: waits(waiting, t),
            then,
            act: String::new(),
            others: None,
        })
    });
    waiting.take(NAMED).collect()
}

/// The list of the executions of this flow that ended with the same error in the same step.
fn alike(execution: &Value) -> String {
    let pairs = ["flow", "error", "step"].map(|key| (key, text(execution, key)));
    let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", path_part(value)))
        .collect();
    format!("/executions?{}", query.join("&"))
}

/// All that is to be said first.
pub(super) fn why(execution: &Value, steps: &Value, t: Reader) -> Vec<Why> {
    let mut all = Vec::new();
    let error = text(execution, "error");
    if !error.is_empty() {
        all.push(Why {
            class: "",
            sign: "fail",
            error: error.to_owned(),
            step: text(execution, "step").to_owned(),
            text: text(execution, "cause").to_owned(),
            then: String::new(),
            act: String::new(),
            others: Some(alike(execution)),
        });
    }
    if let Some(undo) = execution.get("rollback") {
        let left: Vec<&str> = items(undo, "left").iter().filter_map(Value::as_str).collect();
        all.push(Why {
            class: "",
            sign: "left",
            error: text(undo, "error").to_owned(),
            step: text(undo, "step").to_owned(),
            text: format!("{}: {}", t.undo_failed, text(undo, "cause")),
            then: match left.is_empty() {
                true => String::new(),
                false => format!("{}: {}", t.left_to_undo, left.join(", ")),
            },
            act: String::new(),
            others: None,
        });
    }
    if let Some(waiting) = execution.get("waitingFor") {
        let reason = text(waiting, "reason");
        let wants = matches!(reason, "broken" | "manual" | "paused");
        let mut then = format!("{} {}", t.since, t.moment(waiting, "since"));
        if time(waiting, "until").is_some() {
            then.push_str(&format!(" {} {}", t.until, t.moment(waiting, "until")));
        }
        all.push(Why {
            class: if wants { "wants" } else { "note" },
            sign: if wants { "man" } else { "wait" },
            error: String::new(),
            step: String::new(),
            text: waits(waiting, t),
            then,
            act: text(waiting, "act").to_owned(),
            others: None,
        });
    } else if !has_ended(text(execution, "status")) {
        all.extend(awaited(steps, t));
    }
    all
}

/// A visit of a step.
pub(super) struct StepRow {
    pub(super) event: u64,
    pub(super) step: String,
    pub(super) path: String,
    pub(super) state: State,
    pub(super) attempts: String,
    pub(super) error: String,
    pub(super) says: String,
    pub(super) child: Option<String>,
    pub(super) undo: Option<State>,
    pub(super) entered: String,
    pub(super) took: String,
    pub(super) href: String,
    pub(super) chosen: bool,
}

impl StepRow {
    pub(super) fn all(page: &Value, view: &View<'_>, frame: &Frame) -> Vec<Self> {
        let items = items(page, "items").iter();
        items.map(|item| Self::of(item, view, frame)).collect()
    }

    fn of(item: &Value, view: &View<'_>, frame: &Frame) -> Self {
        let waiting = item.get("waitingFor");
        let child = text(item, "child");
        let until = time(item, "waitsUntil")
            .map(|_| format!(" ({} {})", frame.t().until, frame.t().moment(item, "waitsUntil")));
        let says = waiting.map_or_else(|| text(item, "cause").to_owned(), |waiting| waits(waiting, frame.t()));
        let event = number(item, "event").unwrap_or_default();
        Self {
            event,
            href: view.with_visit(event),
            chosen: view.visit == Some(event),
            step: text(item, "step").to_owned(),
            path: path(item),
            state: state(text(item, "status"), frame.t()),
            attempts: count(item, "attempts"),
            error: text(item, "error").to_owned(),
            says: format!("{says}{}", until.unwrap_or_default()),
            child: (!child.is_empty()).then(|| path_part(child)),
            // A step that is undone says so by its own state.
            undo: item
                .get("rollback")
                .filter(|_| !text(item, "status").starts_with("roll"))
                .map(|undo| state(text(undo, "status"), frame.t())),
            entered: frame.t().moment(item, "enteredTime"),
            took: span(time(item, "enteredTime"), time(item, "endedTime").or(Some(frame.now))),
        }
    }
}

/// The composites around a step, in one line.
pub(super) fn path(item: &Value) -> String {
    let around = items(item, "path").iter().filter_map(Value::as_object);
    let words = around.map(|place| {
        let parts = place.iter().map(|(_, part)| match part {
            Value::String(name) => name.to_string(),
            part => part.to_json(),
        });
        parts.collect::<Vec<_>>().join(" ")
    });
    words.collect::<Vec<_>>().join(" / ")
}

pub(super) struct EventRow {
    pub(super) id: u64,
    pub(super) time: String,
    pub(super) kind: String,
    pub(super) step: String,
    pub(super) brief: String,
    pub(super) details: String,
    pub(super) href: String,
    pub(super) chosen: bool,
}

impl EventRow {
    pub(super) fn all(page: &Value, view: &View<'_>, t: Reader) -> Vec<Self> {
        let events = items(page, "items").iter();
        let mut rows: Vec<Self> = events.map(|event| Self::of(event, view, t)).collect();
        rows.sort_by_key(|row| row.id);
        rows
    }

    fn of(event: &Value, view: &View<'_>, t: Reader) -> Self {
        let details = event
            .get("detail")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let error = details.get("error").and_then(Value::as_str).unwrap_or_default();
        let brief = match error {
            "" => details
                .iter()
                .map(|(key, _)| key.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            error => error.to_owned(),
        };
        let id = number(event, "id").unwrap_or_default();
        Self {
            id,
            href: view.at_event(Some(id)),
            chosen: view.at == Some(id),
            time: t.exact(event, "time"),
            kind: text(event, "type").to_owned(),
            step: text(event, "step").to_owned(),
            brief,
            details: match details.is_empty() {
                true => String::new(),
                false => pretty(&details.into(), EVENT_BYTES),
            },
        }
    }
}

/// Events as the API tells them: the number, the way there, whether it is chosen, and the JSON in lines.
pub(super) fn raw(page: &Value, view: &View<'_>) -> Vec<(u64, String, bool, String)> {
    let row = |event: &Value| {
        let id = number(event, "id").unwrap_or_default();
        (
            id,
            view.at_event(Some(id)),
            view.at == Some(id),
            pretty(event, RAW_BYTES),
        )
    };
    let mut rows: Vec<_> = items(page, "items").iter().map(row).collect();
    rows.sort_by_key(|row| row.0);
    rows
}

/// Links to the events before and after those that are shown.
pub(super) fn event_links(
    page: &Value,
    view: &View<'_>,
    (failed, [step, kind]): (bool, [&str; 2]),
    t: Reader,
) -> Vec<(String, &'static str)> {
    let ids = items(page, "items").iter().filter_map(|event| number(event, "id"));
    let first = ids.clone().min().unwrap_or(1);
    let last = ids.max().unwrap_or(0);
    let next = next(page).and_then(|next| next.parse::<u64>().ok());
    let from = |event: u64| {
        let here = view.further("events", &event.to_string());
        let all = [
            ("failed", if failed { "true" } else { "" }),
            ("step", step),
            ("type", kind),
        ];
        all.iter()
            .filter(|(_, value)| !value.is_empty())
            .fold(here, |here, (key, value)| format!("{here}&{key}={}", path_part(value)))
    };
    let mut links = Vec::new();
    if failed || !step.is_empty() || !kind.is_empty() {
        links.extend(next.map(|next| (from(next), t.later)));
        return links;
    }
    if first > 1 {
        links.push((from(1), t.first));
        links.push((from(first.saturating_sub(100).max(1)), t.earlier));
    }
    // A page that is read backwards ends with the latest event.
    if next.is_some_and(|next| next > last) {
        links.push((from(last + 1), t.later));
        links.push((view.further("events", ""), t.last));
    }
    links
}

/// An execution that it started.
pub(super) struct ChildRow {
    /// How many executions are between it and the one of the page.
    pub(super) depth: usize,
    pub(super) href: String,
    pub(super) name: String,
    pub(super) flow: String,
    pub(super) state: State,
    pub(super) says: String,
    pub(super) started: String,
    pub(super) took: String,
}

impl ChildRow {
    /// The executions below this one, each after the one that started it.
    pub(super) fn all(id: &str, page: &Value, frame: &Frame) -> Vec<Self> {
        let mut below: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for item in items(page, "items") {
            let parent = item.get("parent").map_or(id, |parent| text(parent, "execution"));
            below.entry(parent).or_default().push(item);
        }
        let mut rows = Vec::new();
        // INVARIANT: what is taken out of `below` is never put in again.
        let mut open: Vec<(usize, &Value)> = below
            .remove(id)
            .unwrap_or_default()
            .into_iter()
            .rev()
            .map(|item| (0, item))
            .collect();
        while let Some((depth, item)) = open.pop() {
            rows.push(Self::of(item, depth, frame));
            let children = below.remove(text(item, "id")).unwrap_or_default();
            open.extend(children.into_iter().rev().map(|child| (depth + 1, child)));
        }
        rows
    }

    fn of(item: &Value, depth: usize, frame: &Frame) -> Self {
        Self {
            depth: depth.min(6),
            href: format!("/executions/{}", path_part(text(item, "id"))),
            name: text(item, "name").to_owned(),
            flow: text(item, "flow").to_owned(),
            state: state(text(item, "status"), frame.t()),
            says: match item.get("waitingFor") {
                Some(why) => waits(why, frame.t()),
                None => text(item, "error").to_owned(),
            },
            started: frame.t().moment(item, "startedTime"),
            took: span(time(item, "startedTime"), time(item, "endedTime").or(Some(frame.now))),
        }
    }
}
