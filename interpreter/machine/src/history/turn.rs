//! The form in which turns are stored. It has the same facts as the exported form, but is shorter.
//!
//! A turn is a JSON array. Numbers are dense and all events of a turn have one time, so both stand beside it. An event is an
//! object: `y` type, `c` causedBy (absent: the event before), `s` step (absent: the flow), `p` path (absent: the top) as
//! `[step, "b" | "i" | "a", number]`, `r` rollback, `d` detail (absent: empty) with short member names
//! ([`super::SHORT_TYPES`], [`super::SHORT_KEYS`]).

use super::names::{long_type, short_key, short_type};
use super::read::{HistoryError, Keys, Members, error};
use super::write::{self, type_name};
use crate::event::{Child, Event, EventId, PathItem, StepPath};
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Array, Object, Value};

/// Writes the events of a turn in the stored form.
pub fn write_turn(flow: &Flow, events: &[Event]) -> String {
    let mut text = Vec::with_capacity(events.len() * 48 + 16);
    text.push(b'[');
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_short(flow, event, &mut text);
    }
    text.push(b']');
    String::from_utf8(text).unwrap_or_default()
}

fn write_short(flow: &Flow, event: &Event, text: &mut Vec<u8>) {
    text.extend_from_slice(b"{\"y\":\"");
    text.extend_from_slice(short_type(type_name(&event.detail)).as_bytes());
    text.push(b'"');
    if event.caused_by.0 + 1 != event.id.0 {
        text.extend_from_slice(b",\"c\":");
        number(event.caused_by.0, text);
    }
    if let Some(step) = event.step {
        text.extend_from_slice(b",\"s\":");
        json(&write::name(flow, step).into(), text);
    }
    if !event.path.items().is_empty() {
        text.extend_from_slice(b",\"p\":[");
        write_path(flow, &event.path, text);
        text.push(b']');
    }
    if event.rollback {
        text.extend_from_slice(b",\"r\":true");
    }
    let mut members = StoredDetail { text, any: false };
    write::detail(&mut members, flow, &event.detail);
    if members.any {
        text.push(b'}');
    }
    text.push(b'}');
}

fn write_path(flow: &Flow, path: &StepPath, text: &mut Vec<u8>) {
    for (index, item) in path.items().iter().enumerate() {
        text.extend_from_slice(if index > 0 { b",[" } else { b"[" });
        json(&write::name(flow, item.step).into(), text);
        let (kind, place): (&[u8], _) = match item.child {
            Child::Branch(place) => (b",\"b\",", Some(place)),
            Child::Iteration(place) => (b",\"i\",", Some(place)),
            Child::Arm(place) => (b",\"a\",", place),
        };
        text.extend_from_slice(kind);
        match place {
            Some(place) => number(place.into(), text),
            None => text.extend_from_slice(b"\"default\""),
        }
        text.push(b']');
    }
}

/// Writes a number. Turns are full of them, and `write!` takes several times as long.
fn number(number: u64, text: &mut Vec<u8>) {
    text.extend_from_slice(number.to_string().as_bytes());
}

fn json(value: &Value, text: &mut Vec<u8>) {
    let _ = serde_json::to_writer(text, value);
}

/// Writes a detail; the first member opens it.
struct StoredDetail<'a> {
    text: &'a mut Vec<u8>,
    any: bool,
}

impl write::Members for StoredDetail<'_> {
    fn member(&mut self, key: &'static str, value: Value) {
        self.text
            .extend_from_slice(if self.any { b",\"" } else { b",\"d\":{\"" });
        self.any = true;
        self.text.extend_from_slice(short_key(key).as_bytes());
        self.text.extend_from_slice(b"\":");
        json(&value, self.text);
    }
}

/// Reads a turn in the stored form. `first` is the number of its first event and `time` the time of all of them.
/// `flow` must be the flow that the history belongs to.
///
/// # Errors
///
/// [`HistoryError`] if the text is not JSON, a member is missing or wrong, or the flow has no such step.
pub fn read_turn(flow: &Flow, first: EventId, time: Timestamp, text: &str) -> Result<Vec<Event>, HistoryError> {
    let turn: Value =
        serde_json::from_str(text).map_err(|problem| error(format!("a turn is not readable: {problem}")))?;
    let turn = turn
        .as_array()
        .ok_or_else(|| error(format!("a turn is an array, not {}", turn.kind())))?;
    let numbered = turn.values().iter().zip(first.0..);
    numbered
        .map(|(value, id)| read_short(flow, EventId(id), time, value))
        .collect()
}

fn read_short(flow: &Flow, id: EventId, time: Timestamp, value: &Value) -> Result<Event, HistoryError> {
    let m = Members::of_event(flow, value)?;
    let nothing = Object::new();
    let detail = Members {
        flow,
        object: m.maybe("d", Members::object)?.unwrap_or(&nothing),
        keys: Keys::Short,
    };
    Ok(Event {
        id,
        caused_by: match m.maybe("c", Members::event)? {
            Some(event) => event,
            None => EventId(id.0.saturating_sub(1)),
        },
        time,
        step: m.maybe("s", Members::step)?,
        path: match m.value("p") {
            Err(_) => StepPath::default(),
            Ok(path) => read_path(&m, path)?,
        },
        rollback: m.object.contains_key("r"),
        detail: detail.detail(long_type(&m.text("y")?))?,
    })
}

fn read_path(m: &Members<'_>, path: &Value) -> Result<StepPath, HistoryError> {
    let wrong = || error("a path is an array of arrays of step, kind and number");
    let items = path.as_array().ok_or_else(wrong)?;
    let items: Result<Vec<PathItem>, HistoryError> = items
        .values()
        .iter()
        .map(|item| {
            let item = item.as_array().map(Array::values).ok_or_else(wrong)?;
            let [step, kind, number] = item else {
                return Err(wrong());
            };
            let place = number.as_number().and_then(serde_json::Number::as_u64);
            let place = place.and_then(|place| u32::try_from(place).ok());
            let child = match (kind.as_str(), place) {
                (Some("b"), Some(place)) => Child::Branch(place),
                (Some("i"), Some(place)) => Child::Iteration(place),
                (Some("a"), Some(place)) => Child::Arm(Some(place)),
                (Some("a"), None) if number.as_str() == Some("default") => Child::Arm(None),
                _ => return Err(wrong()),
            };
            Ok(PathItem {
                step: m.step_named(step.as_str().ok_or_else(wrong)?)?,
                child,
            })
        })
        .collect();
    items.map(StepPath::from)
}
