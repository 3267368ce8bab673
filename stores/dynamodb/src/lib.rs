//! A store in one table of Amazon DynamoDB, which many processes use at once. An execution is given to one of them at a time.
//!
//! The store has no counters, wakes nothing and runs nothing: ask [`ExecutionLeases::stranded`] for executions without a
//! holder. Lists, counts, and due or expired executions are found by indexes, which are a moment
//! behind. Each execution's part of a batch is atomic, but the batch is not: after an error, some
//! executions of a batch may have gone on.
//!
//! Make one with [`DynamoStore::new`], create its table with [`DynamoStore::create_table`] if it does not exist, and call it
//! through the traits of `starbridge-ports`, in the order that [`starbridge_ports::History`] gives. Take executions between
//! [`ExecutionLeases::hold_until`] and [`ExecutionLeases::release`].
//!
//! Making one sends nothing, so this example runs without DynamoDB:
//!
//! ```
//! use starbridge_aws::{Aws, AwsSettings};
//! use starbridge_dynamodb::{DynamoSettings, DynamoStore};
//! use std::sync::Arc;
//!
//! # struct Fixed;
//! # impl starbridge_ports::Clock for Fixed {
//! #     fn now(&self) -> starbridge_flow::time::Timestamp {
//! #         starbridge_flow::time::Timestamp(0)
//! #     }
//! # }
//! # let clock = Arc::new(Fixed);
//! let settings = DynamoSettings {
//!     table: "starbridge".to_owned(),
//!     owner: "process-1".to_owned(),
//!     retention: None,
//!     clock,
//! };
//! let store = DynamoStore::new(Aws::new(AwsSettings::default()), settings);
//! assert_eq!(store.counted().reads, 0);
//! ```
#![warn(clippy::missing_errors_doc)]

mod append;
mod audit;
mod catalogue;
mod client;
mod errors;
mod head;
mod heartbeats;
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
mod side_writes;
mod start;
pub mod table;
mod write;

pub use client::{Counted, FaultHook};

#[cfg(doc)]
use starbridge_ports::ExecutionLeases;

use client::{DynamoClient, QueryRequest, random};
use item::text_of;
use session::Sessions;
use sha2::{Digest, Sha256};
use starbridge_aws::Aws;
use starbridge_flow::hex;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    Append, AuditEntry, Clock, History, Mark, Message, Receivers, Refusal, ShardSet, StoreError, StoredHistory,
};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Settings of a store in DynamoDB.
#[derive(Clone)]
pub struct DynamoSettings {
    /// The name of the table.
    pub table: String,
    /// A name for this process that no other process has.
    pub owner: String,
    /// How long executions are kept after they ended; `None`: forever. After that they are no
    /// longer visible, and DynamoDB may delete their heads. [`starbridge_ports::Retention`] deletes
    /// the rest.
    pub retention: Option<Duration>,
    /// The clock by which leases end.
    pub clock: Arc<dyn Clock>,
}

/// A store in one table of DynamoDB. [`DynamoStore::new`] says how to begin.
pub struct DynamoStore {
    settings: DynamoSettings,
    client: DynamoClient,
    sessions: Sessions,
    /// The end of leases that are taken now.
    until: Mutex<Option<Timestamp>>,
    /// How many executions of a batch are written concurrently.
    max_concurrent_writes: usize,
    /// Flows that are known to be in the list of flows.
    flows: Mutex<HashSet<Text>>,
}

/// The last order number that was given out. It orders starts and messages of this process even if their times are
/// equal.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How many executions of a batch are written concurrently.
const MAX_CONCURRENT_WRITES: usize = 16;

/// How many bits of an order number are below its milliseconds.
const BITS_BELOW_MILLISECOND: u32 = 20;

/// The first order number of a time.
fn order_at(at: Timestamp) -> String {
    order_text(number_at(at))
}

fn order_text(order: u64) -> String {
    format!("{order:020}")
}

fn number_at(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).min(u64::MAX >> BITS_BELOW_MILLISECOND) << BITS_BELOW_MILLISECOND
}

impl DynamoStore {
    /// A store in the table of these settings, reached by `aws`. Nothing is read before the first call. If the table
    /// does not exist, call [`DynamoStore::create_table`] first.
    pub fn new(aws: Aws, settings: DynamoSettings) -> Self {
        Self {
            client: DynamoClient::new(aws, settings.table.clone()),
            settings,
            sessions: Sessions::default(),
            until: Mutex::default(),
            max_concurrent_writes: MAX_CONCURRENT_WRITES,
            flows: Mutex::default(),
        }
    }

    /// Adds a hook for tests that injects faults between the store and DynamoDB.
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(mut self, hook: FaultHook) -> Self {
        self.client.hook = Some(hook);
        self
    }

    /// Makes the store write the executions of a batch one after the other. Some stand-ins for DynamoDB need this.
    #[doc(hidden)]
    #[must_use]
    pub fn one_by_one(mut self) -> Self {
        self.max_concurrent_writes = 1;
        self
    }

    /// How many requests and items were needed so far.
    pub fn counted(&self) -> Counted {
        self.client.counted()
    }

    fn now(&self) -> Timestamp {
        self.settings.clock.now()
    }

    /// The first of `count` new order numbers, after all that this process has given out.
    fn next_orders(&self, count: usize) -> u64 {
        let count = (count as u64).max(1);
        let now = number_at(self.now());
        let first = |last: u64| now.max(last.saturating_add(1));
        let next = |last: u64| Some(first(last).saturating_add(count - 1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.map_or(now, first)
    }

    /// A new id for a write: 32 characters, unique.
    fn write_id(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut hash = Sha256::new();
        hash.update(&self.settings.owner);
        hash.update(random().to_le_bytes());
        hash.update(NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let hash = hash.finalize();
        hex::encode(hash.get(..16).unwrap_or_default())
    }

    /// Whether a flow is known to be in the list of flows. If `is` is true, it is known from now on.
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

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        let found = self.watched(shards, false, None, None, usize::MAX)?;
        let awake = found.iter().filter(|item| item.contains_key("awake"));
        let mut ids: Vec<Text> = awake.map(record::id_of).collect();
        ids.sort();
        Ok(ids)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let filter = Some(("#wake < :at", before));
        let found = self.watched(shards, false, Some(before), filter, usize::MAX)?;
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

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        let mut audit = self.audit_ops(audit);
        marks
            .iter()
            .try_for_each(|(execution, mark)| self.mark_one(execution, mark, &std::mem::take(&mut audit)))
    }

    /// Reads the whole table. [`History::load`] gives the messages of one execution with it.
    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        let ask = QueryRequest {
            filter: Some("begins_with(#sk, :m)".to_owned()),
            values: vec![(":m", item::text("M#"))],
            ..QueryRequest::default()
        };
        let mut items = self.client.all(&ask)?;
        items.retain(|item| to.have(&record::id_of(item)));
        self.messages_in(&items)
    }
}
