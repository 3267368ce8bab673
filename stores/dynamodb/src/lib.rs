//! A store in one table of Amazon DynamoDB, which many processes use at once. An execution is given to one of them at a time.
//!
//! It keeps no figures, wakes nobody and runs nothing: whoever uses it asks [`ExecutionLeases::stranded`] for what nobody goes on with.
//! What is listed, counted, due or to be cleared is found by indexes, which know what was written a moment later only.
//! Batches are whole by execution, not over several: after an error some executions of a batch may have gone on.

mod append;
mod beats;
mod catalogue;
mod head;
mod item;
mod lease;
mod listing;
mod load;
mod notices;
mod op;
mod payload;
mod queueing;
mod record;
mod retention;
mod session;
mod side;
mod start;
pub mod table;
mod wire;
mod words;
mod write;

pub use wire::{Counted, FaultHook};

#[cfg(doc)]
use starbridge_ports::ExecutionLeases;

use item::text_of;
use session::Sessions;
use sha2::{Digest, Sha256};
use starbridge_aws::Aws;
use starbridge_flow::hex;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Clock, History, Mark, Message, Refusal, StoreError, StoredHistory};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::{Ask, DynamoClient, random};

/// What a store in DynamoDB is told.
#[derive(Clone)]
pub struct DynamoSettings {
    /// The table's name.
    pub table: String,
    /// This process, unlike any other.
    pub owner: String,
    /// How long executions are kept after they ended; for ever, if nothing is said. After that nobody sees them any more, and
    /// DynamoDB may delete their heads: whoever wants the rest deleted too clears it ([`starbridge_ports::Retention`]).
    pub retention: Option<Duration>,
    /// What time it is: leases end by it.
    pub clock: Arc<dyn Clock>,
}

/// A store in one table of DynamoDB.
pub struct DynamoStore {
    settings: DynamoSettings,
    wire: DynamoClient,
    sessions: Sessions,
    /// Until when what is taken is held.
    until: Mutex<Option<Timestamp>>,
    /// Executions of a batch that are written side by side at most.
    side_by_side: usize,
    /// Flows that are known to be among those executions are listed by.
    flows: Mutex<HashSet<Text>>,
}

/// The last number that put something in order. Starts and messages of one process have an order even where their time is the same.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Executions of a batch that are written side by side.
const SIDE_BY_SIDE: usize = 16;

/// Bits of an order's number below its milliseconds.
const BELOW_MS: u32 = 20;

/// The first order of a time.
fn order_at(at: Timestamp) -> String {
    order_text(number_at(at))
}

fn order_text(order: u64) -> String {
    format!("{order:020}")
}

fn number_at(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).min(u64::MAX >> BELOW_MS) << BELOW_MS
}

impl DynamoStore {
    /// A store in that table, reached that way. Nothing is read before the first call.
    pub fn new(aws: Aws, settings: DynamoSettings) -> Self {
        Self {
            wire: DynamoClient::new(aws, settings.table.clone()),
            settings,
            sessions: Sessions::default(),
            until: Mutex::default(),
            side_by_side: SIDE_BY_SIDE,
            flows: Mutex::default(),
        }
    }

    /// The same with faults between it and DynamoDB.
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(mut self, hook: FaultHook) -> Self {
        self.wire.hook = Some(hook);
        self
    }

    /// The same, writing one execution of a batch after the other: there are stand-ins that can't bear it otherwise.
    #[doc(hidden)]
    #[must_use]
    pub fn one_by_one(mut self) -> Self {
        self.side_by_side = 1;
        self
    }

    /// How much was asked of DynamoDB so far.
    pub fn counted(&self) -> Counted {
        self.wire.counted()
    }

    fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// The first of so many places after all that this process has given.
    fn next_orders(&self, count: usize) -> u64 {
        let count = (count as u64).max(1);
        let now = number_at(self.now());
        let first = |last: u64| now.max(last.saturating_add(1));
        let next = |last: u64| Some(first(last).saturating_add(count - 1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.map_or(now, first)
    }

    /// What a write is known by: 32 characters that no other has.
    fn write_id(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut hash = Sha256::new();
        hash.update(&self.settings.owner);
        hash.update(random().to_le_bytes());
        hash.update(NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let hash = hash.finalize();
        hex::encode(hash.get(..16).unwrap_or_default())
    }

    /// Whether a flow is known to be listed; it is from then on, if `is`.
    fn knows_flow(&self, flow: &Text, is: bool) -> bool {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        if is {
            flows.insert(flow.clone());
        }
        flows.contains(flow)
    }
}

impl History for DynamoStore {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.append_all(batch)
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.load_one(execution)
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.load_all(execution)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        let parent = self.head(execution)?.and_then(|head| head.record.parent);
        Ok(parent.map(|parent| parent.execution))
    }

    fn awake(&self) -> Result<Vec<Text>, StoreError> {
        let found = self.watched(false, None, None, usize::MAX)?;
        let awake = found.iter().filter(|item| item.contains_key("awake"));
        let mut ids: Vec<Text> = awake.map(record::id_of).collect();
        ids.sort();
        Ok(ids)
    }

    fn due(&self, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let filter = Some(("#wake < :at", before));
        let found = self.watched(false, Some(before), filter, usize::MAX)?;
        let mut due: Vec<(Timestamp, &str, Text)> = found
            .iter()
            .filter_map(|item| {
                let started = text_of(item, table::DUE)?.split_once('#')?.1;
                Some((item::time_of(item, "wake")?, started, record::id_of(item)))
            })
            .collect();
        due.sort();
        due.truncate(limit);
        Ok(due.into_iter().map(|(at, _, id)| (at, id)).collect())
    }

    fn mark(&self, marks: &[(Text, Mark)]) -> Result<(), StoreError> {
        marks
            .iter()
            .try_for_each(|(execution, mark)| self.mark_one(execution, mark))
    }

    /// Reads the whole table: the mail of one execution comes with [`History::load`].
    fn messages(&self) -> Result<Vec<Message>, StoreError> {
        let ask = Ask {
            filter: Some("begins_with(#sk, :m)".to_owned()),
            values: vec![(":m", item::text("M#"))],
            ..Ask::default()
        };
        self.messages_in(&self.wire.all(&ask)?)
    }
}
