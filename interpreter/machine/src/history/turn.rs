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
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use std::borrow::Cow;

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
    let mut reading = Reading {
        flow,
        next: first,
        time,
        path: StepPath::default(),
        items: Vec::new(),
        wrong: None,
    };
    let mut text = serde_json::Deserializer::from_str(text);
    let read = TurnSeed(&mut reading).deserialize(&mut text);
    read.and_then(|events| text.end().map(|()| events)).map_err(|problem| {
        let wrong = reading.wrong.take();
        wrong.unwrap_or_else(|| error(format!("a turn is not readable: {problem}")))
    })
}

/// Events are made as their text is read: a tree of the whole turn before that would take several times as long. Only details
/// become values.
struct Reading<'f> {
    flow: &'f Flow,
    /// The number of the next event.
    next: EventId,
    time: Timestamp,
    /// The path of the event before: most have the same one.
    path: StepPath,
    /// The composites of a path, while it is read.
    items: Vec<PathItem>,
    /// What is wrong with the event, in our words.
    wrong: Option<HistoryError>,
}

impl Reading<'_> {
    /// Keeps what is wrong, and ends the reading.
    fn known<T, E: de::Error>(&mut self, read: Result<T, HistoryError>) -> Result<T, E> {
        read.map_err(|wrong| {
            let ends = E::custom(&wrong);
            self.wrong = Some(wrong);
            ends
        })
    }

    fn step<E: de::Error>(&mut self, name: &str) -> Result<StepId, E> {
        let step = self.flow.step_named(name);
        self.known(step.ok_or_else(|| error(format!("the flow has no step `{name}`"))))
    }
}

/// The members of an event. What is missing is as [`read_turn`] has it for the stored form.
#[derive(Default)]
struct Parts {
    kind: Option<Cow<'static, str>>,
    caused_by: Option<u64>,
    step: Option<StepId>,
    path: StepPath,
    rollback: bool,
    detail: Option<Value>,
}

impl Parts {
    fn event(self, reading: &Reading<'_>) -> Result<Event, HistoryError> {
        let nothing = Object::new();
        let object = match &self.detail {
            None => &nothing,
            Some(detail) => detail
                .as_object()
                .ok_or_else(|| error(format!("`d` must be an object, not {}", detail.kind())))?,
        };
        let detail = Members {
            flow: reading.flow,
            object,
            keys: Keys::Short,
        };
        let id = reading.next;
        Ok(Event {
            id,
            caused_by: EventId(self.caused_by.unwrap_or(id.0.saturating_sub(1))),
            time: reading.time,
            step: self.step,
            path: self.path,
            rollback: self.rollback,
            detail: detail.detail(&self.kind.ok_or_else(|| error("`y` is missing"))?)?,
        })
    }
}

/// Reads a part of a turn.
macro_rules! seed {
    ($name:ident, $value:ty, $method:ident, $expecting:literal, $($visit:item)*) => {
        struct $name<'r, 'f>(&'r mut Reading<'f>);

        impl<'de> DeserializeSeed<'de> for $name<'_, '_> {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                deserializer.$method(self)
            }
        }

        impl<'de> Visitor<'de> for $name<'_, '_> {
            type Value = $value;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($expecting)
            }

            $($visit)*
        }
    };
}

seed! {
    TurnSeed, Vec<Event>, deserialize_seq, "an array of events",
    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<Vec<Event>, A::Error> {
        let mut found = Vec::new();
        while let Some(event) = events.next_element_seed(EventSeed(self.0))? {
            found.push(event);
        }
        Ok(found)
    }
}

seed! {
    EventSeed, Event, deserialize_map, "an event",
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Event, A::Error> {
        let reading = self.0;
        let mut parts = Parts::default();
        while let Some(key) = members.next_key()? {
            match key {
                Key::Kind => parts.kind = Some(members.next_value::<Kind>()?.0),
                Key::CausedBy => parts.caused_by = Some(members.next_value()?),
                Key::Step => parts.step = Some(members.next_value_seed(StepSeed(reading))?),
                Key::Path => parts.path = members.next_value_seed(PathSeed(reading))?,
                Key::Detail => parts.detail = Some(members.next_value()?),
                Key::Rollback => {
                    members.next_value::<IgnoredAny>()?;
                    parts.rollback = true;
                }
                Key::Other => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let event = parts.event(reading);
        reading.next = reading.next.next();
        reading.known(event)
    }
}

/// A member of an event.
#[derive(Deserialize)]
#[serde(field_identifier)]
enum Key {
    #[serde(rename = "y")]
    Kind,
    #[serde(rename = "c")]
    CausedBy,
    #[serde(rename = "s")]
    Step,
    #[serde(rename = "p")]
    Path,
    #[serde(rename = "r")]
    Rollback,
    #[serde(rename = "d")]
    Detail,
    /// A later version may add some.
    #[serde(other)]
    Other,
}

/// The type of an event, with its long name.
struct Kind(Cow<'static, str>);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KindVisitor)
    }
}

struct KindVisitor;

impl Visitor<'_> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the type of an event")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Kind, E> {
        Ok(Kind(
            long_type(name).map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed),
        ))
    }
}

seed! {
    StepSeed, StepId, deserialize_str, "the name of a step",
    fn visit_str<E: de::Error>(self, name: &str) -> Result<StepId, E> {
        self.0.step(name)
    }
}

seed! {
    PathSeed, StepPath, deserialize_seq, "a path",
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<StepPath, A::Error> {
        let reading = self.0;
        reading.items.clear();
        while let Some(item) = items.next_element_seed(PathItemSeed(reading))? {
            reading.items.push(item);
        }
        if reading.path.items() != reading.items {
            reading.path = StepPath::from(reading.items.clone());
        }
        Ok(reading.path.clone())
    }
}

seed! {
    PathItemSeed, PathItem, deserialize_seq, "a part of a path: step, kind and number",
    fn visit_seq<A: SeqAccess<'de>>(self, mut item: A) -> Result<PathItem, A::Error> {
        let short = |length: usize| de::Error::invalid_length(length, &"step, kind and number");
        let step = item.next_element_seed(StepSeed(self.0))?.ok_or_else(|| short(0))?;
        let kind = item.next_element::<ChildKind>()?.ok_or_else(|| short(1))?;
        let child = match kind {
            ChildKind::Branch => Child::Branch(item.next_element()?.ok_or_else(|| short(2))?),
            ChildKind::Iteration => Child::Iteration(item.next_element()?.ok_or_else(|| short(2))?),
            ChildKind::Arm => Child::Arm(item.next_element::<Arm>()?.ok_or_else(|| short(2))?.number()),
        };
        match item.next_element::<IgnoredAny>()? {
            None => Ok(PathItem { step, child }),
            Some(_) => Err(short(4)),
        }
    }
}

/// What sort of child a path leads through.
#[derive(Deserialize)]
enum ChildKind {
    #[serde(rename = "b")]
    Branch,
    #[serde(rename = "i")]
    Iteration,
    #[serde(rename = "a")]
    Arm,
}

/// An arm of a choice, as a path has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arm {
    Number(u32),
    Default(DefaultArm),
}

#[derive(Deserialize)]
enum DefaultArm {
    #[serde(rename = "default")]
    Default,
}

impl Arm {
    fn number(self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(number),
            Self::Default(DefaultArm::Default) => None,
        }
    }
}
