//! Histories in memory: gone with the process. For `exec`, for tests, and as the model other stores are compared with.

use starbridge_fdl::value::{Object, Text};
use starbridge_machine::EventId;
use starbridge_ports::{Append, History, StoreError, StoredHistory};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Histories in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    executions: Mutex<BTreeMap<Text, Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Object>,
    checkpoint: Option<(EventId, Vec<u8>)>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The ids of all executions, in order.
    pub fn executions(&self) -> Vec<Text> {
        self.lock().keys().cloned().collect()
    }

    /// Nothing panics while the lock is held, so what a poisoned one guards is whole.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, Kept>> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History for MemoryStore {
    fn append(&self, turns: &[Append]) -> Result<(), StoreError> {
        let mut executions = self.lock();
        let mut ends: BTreeMap<&Text, u64> = BTreeMap::new();
        for turn in turns {
            let kept = executions
                .get(&turn.execution)
                .map_or(0, |kept| kept.events.len() as u64);
            let end = ends.entry(&turn.execution).or_insert(kept);
            if *end != turn.expected.0 {
                return Err(StoreError::Conflict);
            }
            *end += turn.events.len() as u64;
        }
        for turn in turns {
            let kept = executions.entry(turn.execution.clone()).or_default();
            kept.events.extend(turn.events.iter().cloned());
        }
        Ok(())
    }

    fn load(&self, execution: &str, after: EventId) -> Result<Option<StoredHistory>, StoreError> {
        Ok(self.lock().get(execution).map(|kept| StoredHistory {
            checkpoint: kept.checkpoint.clone(),
            events: kept
                .events
                .iter()
                .skip(usize::try_from(after.0).unwrap_or(usize::MAX))
                .cloned()
                .collect(),
        }))
    }

    fn keep_checkpoint(&self, execution: &str, at: EventId, checkpoint: Vec<u8>) -> Result<(), StoreError> {
        if let Some(kept) = self.lock().get_mut(execution) {
            kept.checkpoint = Some((at, checkpoint));
        }
        Ok(())
    }
}
