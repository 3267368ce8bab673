//! One visit of a step: each attempt, its data, and what differs between two of them.

use super::ExecutionParts;
use super::excerpt::{Excerpt, excerpt};
use super::parts::path;
use crate::diff::{Line, compared};
use crate::escape::visible_json;
use crate::executions::command_of;
use crate::frame::Frame;
use crate::read::{count, items, number, pretty, span, text, time};
use crate::texts::with_noun;
use crate::words::{State, has_ended, state};
use crate::zone::Reader;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;

/// So many bytes of a datum are shown.
const SHOWN: usize = 8 * 1024;

/// So many bytes of a log are shown: the last.
const SHOWN_LOG: usize = 16 * 1024;

/// An attempt in the table.
pub(super) struct Try {
    pub(super) number: String,
    pub(super) href: String,
    pub(super) chosen: bool,
    pub(super) state: State,
    pub(super) error: String,
    pub(super) cause: String,
    pub(super) resource: String,
    pub(super) worker: String,
    pub(super) sent: String,
    pub(super) took: String,
    /// When the next attempt was or is due, if this one is tried again.
    pub(super) next: String,
    pub(super) rollback: bool,
}

/// A datum of the attempt that is shown.
pub(super) struct Datum {
    pub(super) title: &'static str,
    pub(super) text: String,
    /// Its lines where another attempt had others: whether each is new.
    pub(super) lines: Vec<Line>,
}

/// A visit that is looked into.
pub(super) struct Inspector {
    pub(super) step: String,
    pub(super) path: String,
    pub(super) state: State,
    pub(super) tries: Vec<Try>,
    pub(super) left_out: Option<String>,
    pub(super) data: Vec<Datum>,
    /// The attempt that it is compared with.
    pub(super) with: String,
    pub(super) closed: String,
    /// The time line of the time that it took.
    pub(super) stretch: String,
    /// The input of a visit that a redrive enters again, and its event.
    pub(super) edit: Option<(u64, String)>,
    /// A command that calls what the attempt called; empty where there is none.
    pub(super) curl: String,
    /// The commands that show the same.
    pub(super) commands: Vec<String>,
    /// What the program of the attempt printed on stderr; empty where nothing is kept.
    pub(super) log: String,
    /// Where the step stands in the definition.
    pub(super) excerpt: Option<Excerpt>,
}

impl Inspector {
    /// Nothing, where no visit is chosen.
    pub(super) fn of(parts: &ExecutionParts<'_>, frame: &Frame) -> Option<Self> {
        let (visit, view, now, t) = (parts.visit, &parts.view, frame.now, frame.t());
        visit.as_object()?;
        let tries = items(visit, "tries");
        let chosen = view.attempt_of(tries.len()).map_or(1, |place| place + 1);
        let at = |number: usize| number.checked_sub(1).and_then(|place| tries.get(place));
        let before = chosen.checked_sub(1).and_then(at);
        Some(Self {
            step: text(visit, "step").to_owned(),
            path: path(visit),
            state: state(text(visit, "status"), t),
            tries: (1..)
                .zip(tries)
                .map(|(place, tried)| {
                    let pause = next_pause(visit, tried);
                    Try::of(tried, (view.with_attempt(place), place == chosen), pause, now, t)
                })
                .collect(),
            left_out: number(visit, "earlierLeftOut")
                .filter(|count| *count > 0)
                .map(|count| with_noun(count, t.one_left_out, t.left_out)),
            data: at(chosen).map_or_else(Vec::new, |shown| data(shown, before, t)),
            with: before.map_or_else(String::new, |before| count(before, "attempt")),
            closed: view.without_visit(),
            stretch: view.within(
                time(visit, "enteredTime"),
                Some(time(visit, "endedTime").unwrap_or(now)),
            ),
            curl: at(chosen).and_then(curl).unwrap_or_default(),
            commands: commands(view.id, visit, !text(parts.log, "text").is_empty()),
            log: last_lines(text(parts.log, "text")),
            excerpt: excerpt(parts.source, text(visit, "step")),
            edit: match frame.lacks("operate") {
                None => edited(parts.execution, visit),
                Some(_) => None,
            },
        })
    }
}

/// The commands that show what is shown of a visit.
fn commands(id: &str, visit: &Value, logged: bool) -> Vec<String> {
    let event = count(visit, "event");
    let mut commands = vec![command_of(&format!("starbridge show {id}"), &[("attempts", &event)])];
    if logged {
        let step = [("step", text(visit, "step"))];
        commands.push(command_of(&format!("starbridge logs {id}"), &step));
    }
    commands
}

/// The end of a log, from the begin of a line on.
fn last_lines(log: &str) -> String {
    if log.len() <= SHOWN_LOG {
        return log.to_owned();
    }
    let end = log
        .get(log.ceil_char_boundary(log.len() - SHOWN_LOG)..)
        .unwrap_or_default();
    let whole = end.split_once('\n').map_or(end, |(_, rest)| rest);
    format!("…\n{whole}")
}

/// The command that sends the input of an attempt to the same address, where nothing else goes with it.
fn curl(tried: &Value) -> Option<String> {
    let resource = text(tried, "resource");
    let is_http = resource.starts_with("http://") || resource.starts_with("https://");
    let input = tried.get("input")?.to_json();
    let plain =
        is_http && tried.get("sent").is_none() && tried.get("left").is_none_or(|left| left.get("sent").is_none());
    (plain && input.len() <= SHOWN).then(|| {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let (url, body) = (quoted(resource), quoted(&visible_json(&input)));
        format!("curl -H 'content-type: application/json' -d {body} {url}")
    })
}

/// The input of a visit of an execution that can be redriven, for a field. One that is too large is none to edit here.
fn edited(execution: &Value, visit: &Value) -> Option<(u64, String)> {
    let status = text(execution, "status");
    let ended = has_ended(status) && status != "Succeeded";
    let again = matches!(text(visit, "status"), "failed" | "cancelled");
    let input = items(visit, "tries").last()?.get("input")?;
    let small = input.json_len() <= SHOWN;
    (ended && again && small).then(|| {
        let event = number(visit, "event").unwrap_or_default();
        (event, visible_json(&pretty(input, 8 * SHOWN)))
    })
}

impl Try {
    fn of(tried: &Value, (href, chosen): (String, bool), pause: Option<&Value>, now: Timestamp, t: Reader) -> Self {
        let status = match text(tried, "status") {
            "open" => "running",
            status => status,
        };
        let began = time(tried, "startedTime");
        Self {
            number: count(tried, "attempt"),
            href,
            chosen,
            state: state(status, t),
            error: text(tried, "error").to_owned(),
            cause: text(tried, "cause").to_owned(),
            resource: text(tried, "resource").to_owned(),
            worker: text(tried, "worker").to_owned(),
            sent: t.exact(tried, "startedTime"),
            took: span(began, time(tried, "endedTime").or(Some(now))),
            next: pause.map_or_else(|| "–".to_owned(), |pause| t.exact(pause, "until")),
            rollback: matches!(tried.get("rollback"), Some(Value::Bool(true))),
        }
    }
}

/// The pause after an attempt, at whose end it is tried again.
fn next_pause<'a>(visit: &'a Value, tried: &Value) -> Option<&'a Value> {
    let after = number(tried, "attempt")? + 1;
    let mut pauses = items(visit, "pauses").iter();
    pauses.find(|pause| {
        text(pause, "kind") == "backoff"
            && number(pause, "attempt") == Some(after)
            && pause.get("rollback").is_some() == tried.get("rollback").is_some()
    })
}

/// The data of an attempt. What the attempt before had otherwise is marked.
fn data(shown: &Value, before: Option<&Value>, t: Reader) -> Vec<Datum> {
    let parts = [
        ("input", t.input),
        ("sent", t.sent),
        ("received", t.received),
        ("output", t.output),
    ];
    let each = parts.into_iter().filter_map(|(key, title)| {
        let written = written(shown, key)?;
        let earlier = before.and_then(|before| self::written(before, key));
        let lines = match earlier {
            Some(earlier) if earlier != written => compared(&earlier, &written),
            _ => Vec::new(),
        };
        Some(Datum {
            title,
            text: written,
            lines,
        })
    });
    each.collect()
}

/// A datum in lines; what is too large says where it is.
fn written(tried: &Value, key: &str) -> Option<String> {
    if let Some(value) = tried.get(key) {
        return Some(pretty(value, SHOWN));
    }
    let left = tried.get("left")?.get(key)?;
    Some(format!("… {} B", count(left, "bytes")))
}
