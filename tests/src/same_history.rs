//! Histories as they are compared: without what differs from run to run, in one order or up to the order of concurrent answers.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Members that are times, made by chance, or say how often something was put.
const LEFT_OUT: [&str; 4] = ["time", "seed", "heldTime", "version"];

/// A frame: the names of the lists it is in, outer before inner.
type Frame = Vec<String>;
/// The place of an event, independent of the order between frames: its frame, and its number there.
type Address = (Frame, usize);

/// Each event as a line, in the order of the history: without times, with ids by the order they come in.
pub fn in_order(events: &[Value]) -> Vec<String> {
    let mut names = Names::default();
    events.iter().map(|event| names.plain(event).to_string()).collect()
}

/// Each event as a line, frame by frame. Two histories have the same lines if they differ only in the order in which
/// concurrent frames went on.
///
/// Within a frame events keep their order. Between frames, `causedBy` gives the order: a cause in
/// the same frame or in one around it is named exactly. Which of several lists let another begin,
/// or the step around them end, depends on the order of answers: such a cause is named by the frame
/// that has both.
pub fn by_frame(events: &[Value]) -> Vec<String> {
    let addresses = addresses(events);
    let mut sorted: Vec<(&Address, &Value)> = events
        .iter()
        .filter_map(|event| Some((addresses.get(&event["id"].as_u64()?)?, event)))
        .collect();
    sorted.sort_by_key(|(address, _)| *address);
    let mut names = Names {
        ids: BTreeMap::new(),
        addresses: addresses.clone(),
    };
    let line = |((frame, number), event): (&Address, &Value)| {
        let mut event = event.clone();
        let members = event.as_object_mut()?;
        members.remove("id");
        for (holder, key) in [(None, "causedBy"), (Some("detail"), "of")] {
            let holder = match holder {
                None => Some(&mut *members),
                Some(holder) => members.get_mut(holder).and_then(Value::as_object_mut),
            };
            let named = holder.and_then(|holder| holder.get_mut(key));
            if let Some((named, event)) = named.and_then(|named| named.as_u64().map(|event| (named, event))) {
                *named = reference(&addresses, frame, event).into();
            }
        }
        Some(format!("{}#{number} {}", frame.join("/"), names.plain(&event)))
    };
    sorted.into_iter().filter_map(line).collect()
}

fn addresses(events: &[Value]) -> BTreeMap<u64, Address> {
    let mut lengths: BTreeMap<Frame, usize> = BTreeMap::new();
    let mut addresses = BTreeMap::new();
    for event in events {
        let frame = frame_of(event);
        let length = lengths.entry(frame.clone()).or_default();
        *length += 1;
        addresses.insert(event["id"].as_u64().unwrap_or_default(), (frame, *length));
    }
    addresses
}

/// The frame of an event. The event that begins a list is of that list: lists may begin in any order.
fn frame_of(event: &Value) -> Frame {
    let items = event["path"].as_array().into_iter().flatten();
    let mut frame: Frame = items.map(Value::to_string).collect();
    let begins = match event["type"].as_str() {
        Some("BranchEntered") => Some(("branch", &event["detail"]["branch"])),
        Some("IterationEntered") => Some(("iteration", &event["detail"]["index"])),
        _ => None,
    };
    if let Some((kind, number)) = begins {
        frame.push(serde_json::json!({"step": event["step"], kind: number}).to_string());
    }
    frame
}

/// An event as another in `frame` names it.
fn reference(addresses: &BTreeMap<u64, Address>, frame: &Frame, event: u64) -> String {
    match addresses.get(&event) {
        None => format!("event {event}"),
        Some((other, number)) if frame.starts_with(other) => format!("{}#{number}", other.join("/")),
        Some((other, _)) => {
            let common = frame.iter().zip(other).take_while(|(one, other)| one == other);
            let common: Vec<&str> = common.map(|(item, _)| item.as_str()).collect();
            format!("within {}", common.join("/"))
        }
    }
}

/// Ids by the order they come in, and where events stand that texts name.
#[derive(Default)]
struct Names {
    ids: BTreeMap<String, usize>,
    addresses: BTreeMap<u64, Address>,
}

impl Names {
    fn plain(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let kept = members.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
                let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), self.plain(value))).collect();
                kept.into()
            }
            Value::Array(items) => items.iter().map(|item| self.plain(item)).collect(),
            Value::String(text) => self.named(text).into(),
            other => other.clone(),
        }
    }

    /// A text in which ids are numbers, keys of calls name addresses, and times are all the same.
    fn named(&mut self, text: &str) -> String {
        let mut shown = String::new();
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let Some(id) = rest.get(..36).filter(|part| is_id(part)) {
                let known = self.ids.len();
                let number = *self.ids.entry(id.to_owned()).or_insert(known);
                shown.push_str(&format!("<id {number}>"));
                rest = rest.get(36..).unwrap_or_default();
                if let Some((event, after)) = event_of_key(rest).filter(|(event, _)| self.addresses.contains_key(event))
                {
                    let (frame, number) = &self.addresses[&event];
                    shown.push_str(&format!("/<{}#{number}>", frame.join("/")));
                    rest = after;
                }
            } else if let Some(after) = after_time(rest) {
                shown.push_str("<time>");
                rest = after;
            } else {
                shown.push(next);
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
            }
        }
        shown
    }
}

/// The number behind the `/` of a key, and what follows it.
fn event_of_key(text: &str) -> Option<(u64, &str)> {
    let digits = text.strip_prefix('/')?;
    let end = digits.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(digits.len());
    Some((digits.get(..end)?.parse().ok()?, digits.get(end..)?))
}

fn is_id(part: &str) -> bool {
    let hyphen = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    part.bytes().enumerate().all(|(place, byte)| match hyphen(place) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    })
}

/// The text after a time like `2026-01-02T03:04:05.678Z`, if a text begins with one.
fn after_time(text: &str) -> Option<&str> {
    let digits = |from: usize, to: usize| {
        text.get(from..to)
            .is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let begins =
        digits(0, 4) && text.get(4..5) == Some("-") && digits(5, 7) && text.get(10..11) == Some("T") && digits(11, 13);
    let end = begins.then(|| text.find('Z')).flatten().filter(|end| *end <= 24)?;
    text.get(end + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    /// A parallel step with two branches of one task, whose answers come in this order.
    fn answered(order: [usize; 2], results: [i64; 2]) -> Vec<Value> {
        let mut events = vec![
            json!({"id": 1, "causedBy": 0, "path": [], "type": "StepStarted", "step": "p", "time": "x", "detail": {}}),
        ];
        let mut add = |caused_by: u64, path: Value, kind: &str, step: &str, detail: Value| {
            let id = events.len() as u64 + 1;
            events.push(
                json!({"id": id, "causedBy": caused_by, "path": path, "type": kind, "step": step,
                "detail": detail}),
            );
            id
        };
        let path = |branch: usize| json!([{"step": "p", "branch": branch}]);
        let mut scheduled = [0; 2];
        for (branch, scheduled) in scheduled.iter_mut().enumerate() {
            let entered = add(1, json!([]), "BranchEntered", "p", json!({"branch": branch}));
            *scheduled = add(entered, path(branch), "TaskScheduled", "t", json!({"call": 1}));
        }
        let mut last = 0;
        for branch in order {
            let key = format!("{ID}/{}", scheduled[branch]);
            let detail = json!({"result": results[branch], "key": key});
            let done = add(scheduled[branch], path(branch), "TaskSucceeded", "t", detail);
            last = add(done, path(branch), "BranchExited", "p", json!({}));
        }
        add(last, json!([]), "StepSucceeded", "p", json!({"output": results}));
        events
    }

    #[test]
    fn the_order_of_concurrent_answers_is_no_difference() {
        let (one, other) = (answered([0, 1], [7, 8]), answered([1, 0], [7, 8]));
        assert_ne!(in_order(&one), in_order(&other));
        assert_eq!(by_frame(&one), by_frame(&other));
    }

    #[test]
    fn every_other_difference_is_one() {
        let usual = answered([0, 1], [7, 8]);
        assert_ne!(by_frame(&usual), by_frame(&answered([0, 1], [7, 9])), "a result");
        let mut shorter = usual.clone();
        shorter.pop();
        assert_ne!(by_frame(&usual), by_frame(&shorter), "an event less");
        let mut swapped = usual.clone();
        swapped.swap(5, 6);
        for (number, event) in swapped.iter_mut().enumerate() {
            event["id"] = (number + 1).into();
        }
        assert_ne!(by_frame(&usual), by_frame(&swapped), "the order within a frame");
        let mut elsewhere = usual.clone();
        elsewhere[5]["causedBy"] = json!(1);
        assert_ne!(by_frame(&usual), by_frame(&elsewhere), "a cause");
        let mut twice = usual;
        twice[7]["detail"]["key"] = twice[5]["detail"]["key"].clone();
        assert_ne!(by_frame(&answered([0, 1], [7, 8])), by_frame(&twice), "a key");
    }

    #[test]
    fn times_and_ids_are_no_difference() {
        let event =
            |id: &str, time: &str| vec![json!({"id": 1, "time": time, "text": format!("{id} at {time}, {id}")})];
        let one = in_order(&event(ID, "2026-01-02T03:04:05.678Z"));
        assert_eq!(one, in_order(&event(&ID.replace('0', "f"), "2027-11-12T13:14:15.000Z")));
        assert!(one[0].contains("<id 0> at <time>, <id 0>"), "{one:?}");
    }
}
