//! A process of a simulation: a shard and what a host keeps beside it.

use super::outside::Key;
use super::shelter::{Refusals, Shelter};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Epochs, History, Incarnation, Receivers, ShardSet, StoreError};
use starbridge_runtime::{ExecutionSeed, FlowTable, ResourceMap, Shard, StartRequest, child_id, load};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many processes share the executions.
pub(super) const SEATS: u8 = 3;

/// A process.
pub(super) struct Process {
    pub(super) shard: Shard,
    /// Its stay in the store. Another process may have ended it.
    pub(super) incarnation: Incarnation,
    /// Batches that have not reached the store.
    pub(super) unwritten: VecDeque<Vec<Append>>,
    /// Batches whose answer has not come.
    pub(super) under_way: usize,
    pub(super) answers: VecDeque<Refusals>,
    pub(super) sleepers: BTreeSet<(Timestamp, Text)>,
    /// Reports that are acknowledged when their mark comes back.
    pub(super) marks: BTreeMap<u64, Key>,
    /// Shards that another seat gets when their mark comes back.
    pub(super) leaving: BTreeMap<u64, (ShardSet, usize)>,
    pub(super) next_mark: u64,
    /// Names by the id they were given.
    pub(super) starts: BTreeMap<Text, String>,
    /// When it is to look for timers, in true milliseconds.
    pub(super) wake: Option<u64>,
}

impl Process {
    pub(super) fn new(
        flows: &FlowTable,
        limits: &Arc<Limits>,
        (seat, incarnation): (u8, Incarnation),
        id_source: &Arc<AtomicU64>,
    ) -> Self {
        let id_source = Arc::clone(id_source);
        let seed = move |request: &StartRequest, _: Timestamp| ExecutionSeed {
            id: match &request.parent {
                Some(parent) => child_id(parent),
                None => id_of(id_source.fetch_add(1, Ordering::Relaxed), seat),
            },
            seed: 7,
        };
        let mut shard = Shard::new(flows.clone(), ResourceMap::default(), limits.clone(), seed);
        shard.own(ShardSet::NONE);
        Self {
            shard,
            incarnation,
            unwritten: VecDeque::new(),
            under_way: 0,
            answers: VecDeque::new(),
            sleepers: BTreeSet::new(),
            marks: BTreeMap::new(),
            leaving: BTreeMap::new(),
            next_mark: 0,
            starts: BTreeMap::new(),
            wake: None,
        }
    }

    /// Appends for claimed shards under these epochs.
    pub(super) fn append_under(&mut self, claimed: &Epochs) {
        self.shard.append_under(claimed);
    }

    /// Drops shards that another process has. Nobody is told anything of them.
    pub(super) fn drop_fenced(&mut self, shards: &ShardSet) {
        self.shard.drop_fenced(shards);
        self.sleepers.retain(|(_, execution)| !shards.has_execution(execution));
        self.marks.retain(|_, key| !shards.has_execution(&key.0));
        self.starts.retain(|execution, _| !shards.has_execution(execution));
    }

    /// Takes in shards and takes up what the store says is to be done for them, as a host does when it starts.
    pub(super) fn take_in(&mut self, shards: &ShardSet, store: &Shelter) -> Result<(), String> {
        let failed = |error: StoreError| error.to_string();
        self.shard.own(self.shard.owned().with(shards));
        for execution in store.awake(shards).map_err(failed)? {
            self.load(&execution, store)?;
        }
        let messages = store.messages(&Receivers::Executions(*shards)).map_err(failed)?;
        self.shard.redeliver(messages);
        let sleepers = store.due(shards, Timestamp(i64::MAX), usize::MAX).map_err(failed)?;
        self.sleepers.extend(sleepers);
        Ok(())
    }

    /// Gives shards up for another seat. The mark says when everything that was decided for them is durable.
    pub(super) fn leave(&mut self, shards: ShardSet, to: usize) {
        self.shard.leave(&shards);
        self.sleepers.retain(|(_, execution)| !shards.has_execution(execution));
        self.next_mark += 1;
        self.leaving.insert(self.next_mark, (shards, to));
        self.shard.mark(self.next_mark);
    }

    /// Takes up an execution. Answers whether it is there.
    pub(super) fn load(&mut self, execution: &str, store: &Shelter) -> Result<bool, String> {
        let limits = self.shard.shared_limits();
        let loaded =
            load(store, self.shard.flows(), &limits, execution).map_err(|error: StoreError| error.to_string())?;
        let Some(loaded) = loaded else {
            return Ok(false);
        };
        self.shard.recover(loaded);
        Ok(true)
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let sleeper = self.sleepers.first().map(|(due, _)| *due);
        self.shard.next_wakeup().into_iter().chain(sleeper).min()
    }
}

/// An id of that seat, a UUID to look at.
fn id_of(number: u64, seat: u8) -> Text {
    let spread = u8::try_from(number % 80).unwrap_or(0);
    Text::from(format!(
        "{number:08x}-0000-7000-8000-0000000000{:02x}",
        spread * SEATS + seat
    ))
}
