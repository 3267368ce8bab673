//! Express executions: their histories are written only when they end, fall asleep or are given back, all turns at
//! once.
//!
//! The effects of a turn leave before the turn is durable. After a crash the execution goes on from
//! its last durable turn, or does not exist. Calls made since then are made again, with other keys
//! if the history takes another turn. This is for many executions of flows whose functions may be
//! called more than once.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{
    Append, AuditEntry, ExecutionLeases, ExecutionRecord, Heartbeat, History, Mark, Message, Receivers, Refusal,
    ShardSet, StoreError, StoredHistory,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many bytes of turns of one execution are kept back at most.
const KEPT_BACK_BYTES: usize = 1 << 20;

/// Wraps a store with leases, and keeps back what express executions append.
pub struct Express {
    history: Arc<dyn History>,
    leases: Arc<dyn ExecutionLeases>,
    is_express: Box<dyn Fn(&ExecutionRecord) -> bool + Send + Sync>,
    kept_back: Mutex<KeptBack>,
}

#[derive(Default)]
struct KeptBack {
    /// Whether executions that begin now are express; `None`: their flows decide.
    choice: Option<bool>,
    executions: BTreeSet<Text>,
    appends: BTreeMap<Text, Vec<Append>>,
}

/// A batch for the store. For each of its appends, `places` has the position in the caller's batch.
#[derive(Default)]
struct Passed {
    batch: Vec<Append>,
    places: Vec<usize>,
}

impl Express {
    /// Wraps this store. `is_express` says for which executions appends are kept back.
    pub fn new(
        history: Arc<dyn History>,
        leases: Arc<dyn ExecutionLeases>,
        is_express: impl Fn(&ExecutionRecord) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            history,
            leases,
            is_express: Box::new(is_express),
            kept_back: Mutex::default(),
        }
    }

    /// Sets whether executions that begin from now on are express. `None`: their flows decide.
    pub fn choose(&self, express: Option<bool>) {
        self.lock().choice = express;
    }

    /// Nothing panics while the lock is held, so the value of a poisoned lock is intact.
    fn lock(&self) -> MutexGuard<'_, KeptBack> {
        self.kept_back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a batch that the store gets now.
    fn pass(&self, batch: &[Append]) -> Passed {
        let mut kept = self.lock();
        let mut passed = Passed::default();
        for (place, append) in batch.iter().enumerate() {
            if append.expected == EventId(0)
                && let Some(record) = &append.record
                && kept.choice.unwrap_or_else(|| (self.is_express)(record))
            {
                kept.executions.insert(append.execution.clone());
            }
            if !kept.executions.contains(&append.execution) {
                passed.push(place, append.clone());
                continue;
            }
            let appends = kept.appends.entry(append.execution.clone()).or_default();
            appends.push(append.clone());
            let bytes = |append: &Append| append.turn.as_ref().map_or(0, |turn| turn.text.len());
            let rests = append.deleted || append.record.as_ref().is_some_and(|record| !record.awake);
            if rests || appends.iter().map(bytes).sum::<usize>() > KEPT_BACK_BYTES {
                let appends = std::mem::take(appends);
                kept.appends.remove(&append.execution);
                appends.into_iter().for_each(|append| passed.push(place, append));
            }
        }
        passed
    }

    /// Writes what is kept back of an execution. A refusal means that another process has it.
    fn write_down(&self, execution: &str) -> Result<(), StoreError> {
        let appends = self.lock().appends.remove(execution);
        let Some(appends) = appends else {
            return Ok(());
        };
        let refused = self.history.append(&appends)?;
        if !refused.is_empty() {
            tracing::warn!(
                execution,
                "what was kept back of an express execution was refused: somebody else has it"
            );
        }
        Ok(())
    }
}

impl Passed {
    fn push(&mut self, place: usize, append: Append) {
        self.batch.push(append);
        self.places.push(place);
    }
}

impl History for Express {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        let Passed { batch, places } = self.pass(batch);
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut refused: Vec<(usize, Refusal)> = Vec::new();
        for (place, refusal) in self.history.append(&batch)? {
            let Some(place) = places.get(place).copied() else {
                continue;
            };
            // If several appends were written together, the first refusal counts.
            if refused.iter().all(|(known, _)| *known != place) {
                refused.push((place, refusal));
            }
        }
        refused.sort_by_key(|(place, _)| *place);
        Ok(refused)
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        let loaded = self.history.load(execution)?;
        let mut kept = self.lock();
        // Once an execution is loaded, nothing that was kept back for it counts.
        kept.appends.remove(execution);
        match &loaded {
            Some(loaded) if (self.is_express)(&loaded.record) => _ = kept.executions.insert(execution.into()),
            _ => _ = kept.executions.remove(execution),
        }
        Ok(loaded)
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.history.load_whole(execution)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.history.parent_of(execution)
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.history.awake(shards)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.history.due(shards, before, limit)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.history.mark(marks, audit)
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.history.messages(to)
    }
}

impl ExecutionLeases for Express {
    fn hold_until(&self, until: Timestamp) {
        self.leases.hold_until(until);
    }

    fn release(&self, execution: &str) -> Result<bool, StoreError> {
        self.write_down(execution)?;
        let free = self.leases.release(execution)?;
        if free {
            self.lock().executions.remove(execution);
        }
        Ok(free)
    }

    fn messages_for(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        self.leases.messages_for(execution)
    }

    fn leave_message(&self, message: &Message) -> Result<bool, StoreError> {
        self.leases.leave_message(message)
    }

    fn heartbeats(&self, execution: &str) -> Result<Vec<Heartbeat>, StoreError> {
        self.leases.heartbeats(execution)
    }

    fn heartbeat(&self, execution: &str, beat: &Heartbeat) -> Result<(), StoreError> {
        self.leases.heartbeat(execution, beat)
    }

    fn stranded(&self, before: Timestamp, limit: usize) -> Result<Vec<Text>, StoreError> {
        self.leases.stranded(before, limit)
    }
}
