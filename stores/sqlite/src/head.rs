//! The ends of histories, kept in memory for histories that are being written.

use crate::record::Filled;
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxBuildHasher;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::GenerationCache;

/// The number of bits of a place in `turns` that hold the number of an event.
const EVENT_BITS: u32 = 24;
/// How many events a history may have in this store. A node whose limit is higher must refuse to start.
pub const MAX_EVENTS: u64 = (1 << EVENT_BITS) - 1;

/// The place of the turn that begins with this event.
pub(crate) fn place(number: i64, event: u64) -> i64 {
    (number << EVENT_BITS) | i64::try_from(event.min(MAX_EVENTS)).unwrap_or(0)
}

/// The number of the first event of the turn at this place.
pub(crate) fn event_at(place: i64) -> EventId {
    EventId(place.unsigned_abs() & MAX_EVENTS)
}

/// The end of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The number of the execution.
    pub number: i64,
    /// The number of the last event.
    pub last: u64,
    /// The code of its status.
    pub status: usize,
    /// The rarely used columns that its row may fill.
    pub filled: Filled,
}

/// The heads that are kept in memory.
pub(crate) type Heads = GenerationCache<Head, FxBuildHasher>;

/// The head of an execution, from memory or the store; `None` if there is no such execution.
pub(crate) fn head_of(heads: &mut Heads, connection: &Connection, execution: &Text) -> rusqlite::Result<Option<Head>> {
    if let Some(head) = heads.get(execution) {
        return Ok(Some(head));
    }
    let head = read(connection, execution)?;
    if let Some(head) = head {
        heads.put(execution, head);
    }
    Ok(head)
}

fn read(connection: &Connection, execution: &str) -> rusqlite::Result<Option<Head>> {
    let found: Option<(i64, usize)> = connection
        .prepare_cached("SELECT number, status FROM executions WHERE id = ?1")?
        .query_row([execution], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((number, status)) = found else {
        return Ok(None);
    };
    let last: Option<u64> = connection
        .prepare_cached("SELECT place, events FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC LIMIT 1")?
        .query_row([place(number, 0), place(number, MAX_EVENTS)], |row| {
            Ok(event_at(row.get(0)?).0 + row.get::<_, u64>(1)? - 1)
        })
        .optional()?;
    Ok(Some(Head {
        number,
        last: last.unwrap_or(0),
        status,
        filled: Filled::UNKNOWN,
    }))
}
