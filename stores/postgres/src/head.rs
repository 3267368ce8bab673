//! The end of each history, in memory for those that are being written.

use crate::fault::Failure;
use rustc_hash::FxBuildHasher;
use starbridge_flow::value::Text;
use starbridge_ports::GenerationCache;

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

/// The heads that are kept in memory.
pub(crate) type Heads = GenerationCache<Head, FxBuildHasher>;

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
