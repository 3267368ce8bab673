//! Reading the stored events of an execution.

use starbridge_flow::graph::Flow;
use starbridge_machine::history::read_turn;
use starbridge_machine::{Event, EventId};
use starbridge_ports::{Store, StoreError, Turn};

/// Calls `see` with each stored event of an execution, in order, until it returns false. Reads the history in parts.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if a turn does not fit the flow, or the error of the store.
pub fn each_stored_event(
    store: &dyn Store,
    flow: &Flow,
    execution: &str,
    see: impl FnMut(&Event) -> bool,
) -> Result<(), StoreError> {
    each_stored_event_between(store, flow, execution, (EventId(1), EventId(u64::MAX)), see)
}

/// Reads the events from one number to another, and little more than those.
///
/// # Errors
///
/// As [`each_stored_event`].
pub fn each_stored_event_between(
    store: &dyn Store,
    flow: &Flow,
    execution: &str,
    (from, to): (EventId, EventId),
    mut see: impl FnMut(&Event) -> bool,
) -> Result<(), StoreError> {
    const BATCH: u64 = 10_000;
    let mut next = from;
    while next <= to {
        let left = (to.0 - next.0).saturating_add(1).min(BATCH);
        let turns = store.turns(execution, next, u32::try_from(left).unwrap_or(u32::MAX), false)?;
        if turns.is_empty() {
            return Ok(());
        }
        for turn in turns {
            // The first turn may begin before.
            let wanted = next;
            for event in read_stored(flow, execution, &turn)?
                .into_iter()
                .filter(|event| event.id >= wanted && event.id <= to)
            {
                next = event.id.next();
                if !see(&event) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Reads the events of a stored turn.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the turn does not fit the flow.
pub fn read_stored(flow: &Flow, execution: &str, turn: &Turn) -> Result<Vec<Event>, StoreError> {
    let events = read_turn(flow, turn.first, turn.time, &turn.text);
    events.map_err(|error| StoreError::Corrupt(format!("execution {execution}: {error}")))
}

/// The first `most` stored events of an execution, and the rest of the last one's turn.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if a turn does not fit the flow, or the error of the store.
pub fn stored_events(store: &dyn Store, flow: &Flow, execution: &str, most: u64) -> Result<Vec<Event>, StoreError> {
    let last = match most {
        u64::MAX => u64::MAX,
        most => store
            .turn_of(execution, EventId(most))?
            .map_or(u64::MAX, |turn| turn.last().0),
    };
    let mut events: Vec<Event> = Vec::new();
    each_stored_event(store, flow, execution, |event| {
        events.push(event.clone());
        event.id.0 < last
    })?;
    Ok(events)
}
