//! Histories in full: each event with the data that it concerns but does not carry.

use super::Node;
use super::queries::QueryResult;
use starbridge_flow::graph::Flow;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::history::write_event;
use starbridge_machine::{Event, EventData, EventId, State};
use std::collections::VecDeque;

/// How many bytes of expanded events are returned at once. At least one event is returned,
/// regardless of its size.
const EXPANDED_BYTES: usize = 16 << 20;

/// Expanded events in the requested order, and their size.
#[derive(Debug, Default)]
pub struct ExpandedEvents {
    /// As the API shows them.
    pub events: Vec<Object>,
    /// How many bytes they have as JSON.
    pub bytes: usize,
}

impl Node {
    /// At most `limit` events of an execution from one on, or fewer if they are large. Each has the
    /// data of its step from a fold of the history up to it.
    ///
    /// # Errors
    ///
    /// As [`Node::stored_events`].
    pub fn expanded_events(
        &self,
        id: &str,
        from: EventId,
        limit: usize,
        backwards: bool,
    ) -> QueryResult<ExpandedEvents> {
        let reach = u64::try_from(limit).unwrap_or(u64::MAX).saturating_sub(1);
        let (first, last) = match backwards {
            true => (from.0.saturating_sub(reach), from.0),
            false => (from.0, from.0.saturating_add(reach)),
        };
        let mut state = State::new(id, self.limits.clone());
        let mut found = VecDeque::new();
        let mut bytes = 0;
        self.each_event(id, |flow, event| {
            state.apply(flow, event);
            if event.id.0 < first {
                return true;
            }
            let expanded = expanded(flow, event, state.data_around(event));
            let size = expanded.json_len();
            if !backwards && !found.is_empty() && bytes + size > EXPANDED_BYTES {
                return false;
            }
            bytes += size;
            found.push_back((expanded, size));
            while bytes > EXPANDED_BYTES
                && found.len() > 1
                && let Some((_, size)) = found.pop_front()
            {
                bytes -= size;
            }
            event.id.0 < last
        })?;
        let events = found.into_iter().map(|(event, _)| event);
        let events = match backwards {
            true => events.rev().collect(),
            false => events.collect(),
        };
        Ok(ExpandedEvents { events, bytes })
    }
}

/// The exported form of an event, with this data where the event has none itself.
fn expanded(flow: &Flow, event: &Event, data: EventData) -> Object {
    let mut written = write_event(flow, event);
    let mut detail = written
        .get("detail")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (name, value) in [("input", data.input), ("local", data.local)] {
        if let Some(value) = value.filter(|_| detail.get(name).is_none()) {
            detail.insert(name.into(), value);
        }
    }
    written.insert("detail".into(), detail.into());
    written
}
