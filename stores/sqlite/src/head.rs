//! The ends of histories, kept in memory for histories that are being written.

use crate::record::Filled;
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;

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

/// Heads in two generations: a head that was not used during a whole generation is dropped. This
/// approximates a clock cache and costs two lookups.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    young: FxHashMap<Text, Head>,
    old: FxHashMap<Text, Head>,
}

/// How many heads one generation has.
const GENERATION_HEADS: usize = 50_000;

impl Heads {
    /// The head of an execution; `None` if there is no such execution.
    pub(crate) fn get(&mut self, connection: &Connection, execution: &Text) -> rusqlite::Result<Option<Head>> {
        if let Some(head) = self.young.get(execution) {
            return Ok(Some(*head));
        }
        let head = match self.old.remove(execution) {
            Some(head) => Some(head),
            None => read(connection, execution)?,
        };
        if let Some(head) = head {
            self.put(execution, head);
        }
        Ok(head)
    }

    pub(crate) fn put(&mut self, execution: &Text, head: Head) {
        if let Some(kept) = self.young.get_mut(execution) {
            *kept = head;
            return;
        }
        if self.young.len() >= GENERATION_HEADS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(execution.clone(), head);
    }

    pub(crate) fn forget(&mut self, execution: &str) {
        self.young.remove(execution);
        self.old.remove(execution);
    }

    /// Drops all heads, because their data may have been rolled back.
    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
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
