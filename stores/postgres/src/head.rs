//! The end of each history, in memory for those that are being written.

use crate::fault::Failure;
use rustc_hash::FxHashMap;
use starbridge_flow::value::Text;

/// How many events a history may have in this store. A node whose limit is higher must refuse to start.
pub const MAX_EVENTS: u64 = (1 << 24) - 1;

/// The end of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The number of the execution.
    pub number: i64,
    /// The number of the last event.
    pub last: u64,
    /// The code of its status.
    pub status: usize,
    /// The version of its flow.
    pub version: u64,
}

/// Heads in two generations: a head that was not asked for during a whole generation is dropped. This approximates a
/// clock cache and costs two lookups.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    young: FxHashMap<Text, Head>,
    old: FxHashMap<Text, Head>,
}

/// How many heads one generation has.
const GENERATION_HEADS: usize = 50_000;

impl Heads {
    /// The head of an execution, if it is kept here.
    pub(crate) fn get(&mut self, execution: &Text) -> Option<Head> {
        if let Some(head) = self.young.get(execution) {
            return Some(*head);
        }
        let head = self.old.remove(execution)?;
        self.put(execution, head);
        Some(head)
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

    /// Drops all heads: what they say may not have been kept.
    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

pub(crate) const HEADS: &str = "select e.id, e.number, e.status, e.version,
        coalesce((select t.first + t.events - 1 from turns t where t.number = e.number order by t.first desc limit 1), 0)
    from unnest($1::text[]) as wanted (id) join executions e on e.id = wanted.id";

/// The id and head of a row.
pub(crate) fn of_row(row: &tokio_postgres::Row) -> Result<(Text, Head), Failure> {
    let head = Head {
        number: row.get(1),
        status: usize::try_from(row.get::<_, i16>(2)).unwrap_or_default(),
        version: row.get::<_, i64>(3).unsigned_abs(),
        last: u64::from(row.get::<_, i32>(4).unsigned_abs()),
    };
    Ok((crate::record::text(row, 0), head))
}
