//! Reasons of executions that their records do not tell from others.

use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{
    Dependency, ExecutionRecord, FLOW_POOL, KeyView, PoolKey, Store, StoreError, Waiter, WaitingReason,
};
use std::collections::HashMap;

/// The reasons of executions that wait to be admitted. They come from admission's data; records do
/// not have them.
pub const OF_ADMISSION: [WaitingReason; 5] = [
    WaitingReason::Dependency,
    WaitingReason::Key,
    WaitingReason::FlowLimit,
    WaitingReason::FlowPaused,
    WaitingReason::Admission,
];

/// A reason that comes from admission or a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FineReason {
    /// One that no record has.
    pub reason: WaitingReason,
    /// The key, the flow, the queue, or the execution.
    pub of: Option<Text>,
    /// The pool of the key.
    pub pool: Option<Text>,
}

/// The reasons of many executions. Whether a flow is paused is read once.
pub struct FineReasons<'a> {
    store: &'a dyn Store,
    paused: HashMap<PoolKey, bool>,
}

impl<'a> FineReasons<'a> {
    /// Reads from this store.
    pub fn new(store: &'a dyn Store) -> Self {
        Self {
            store,
            paused: HashMap::new(),
        }
    }

    /// Why an execution does not go on, if its record does not tell that from other reasons.
    ///
    /// # Errors
    ///
    /// The store failed.
    pub fn of(&mut self, id: &str, record: &ExecutionRecord) -> Result<Option<FineReason>, StoreError> {
        if record.ended.is_some() || record.broken.is_some() || record.paused.is_some() {
            return Ok(None);
        }
        if matches!(record.status, Status::Queued | Status::Blocked) {
            return self.of_admission(id).map(Some);
        }
        let Some(waits) = &record.waits else {
            return Ok(None);
        };
        if waits.reason != WaitingReason::Queue {
            return Ok(None);
        }
        let is_held = matches!(self.store.task_of(id, None)?, Some((_, Some(_))));
        Ok(Some(FineReason {
            reason: match is_held {
                true => WaitingReason::Worker,
                false => WaitingReason::Queue,
            },
            of: Some(waits.of.clone()),
            pool: None,
        }))
    }

    /// Why it waits to be admitted.
    ///
    /// # Errors
    ///
    /// The store failed.
    pub fn of_admission(&mut self, id: &str) -> Result<FineReason, StoreError> {
        let reason = |reason, of, pool| FineReason { reason, of, pool };
        let waiter = self.store.waiter(id)?;
        if let Some(open) = waiter.as_ref().and_then(|waiter| waiter.open.first()) {
            let Dependency { flow, execution, .. } = &open.dependency;
            let of = match flow {
                Some(flow) => Text::from(format!("{flow}/{execution}")),
                None => execution.clone(),
            };
            return Ok(reason(WaitingReason::Dependency, Some(of), None));
        }
        let parked = waiter.as_ref().and_then(|waiter| waiter.parked.clone());
        // A waiter with a claim is in no line, and waits for those of its keys that are full.
        let claimed = match waiter.as_ref().filter(|waiter| waiter.claim.is_some()) {
            Some(waiter) => full_keys(self.store, waiter)?.into_iter().next(),
            None => None,
        };
        let Some(key) = parked.or_else(|| claimed.map(|view| view.kept.key)) else {
            return Ok(reason(WaitingReason::Admission, None, None));
        };
        let of = Some(key.key.clone());
        if *key.pool != *FLOW_POOL {
            return Ok(reason(WaitingReason::Key, of, Some(key.pool)));
        }
        let paused = match self.paused.get(&key) {
            Some(paused) => *paused,
            None => {
                let paused = self.store.key(&key)?.kept.paused.is_some();
                self.paused.insert(key, paused);
                paused
            }
        };
        Ok(match paused {
            true => reason(WaitingReason::FlowPaused, of, None),
            false => reason(WaitingReason::FlowLimit, of, None),
        })
    }
}

/// The keys without a free slot that a waiter needs, in the order of its flow.
///
/// # Errors
///
/// The store failed.
pub fn full_keys(store: &dyn Store, waiter: &Waiter) -> Result<Vec<KeyView>, StoreError> {
    let mut held = Vec::new();
    for holder in waiter.ask.ancestors.iter().chain([&waiter.execution]) {
        held.extend(store.slots_of(holder)?);
    }
    let flow = PoolKey {
        pool: FLOW_POOL.into(),
        key: waiter.ask.flow.clone(),
    };
    let needed = waiter.ask.keys.iter().map(|needed| needed.key.clone());
    let mut full: Vec<KeyView> = Vec::new();
    for key in needed.chain([flow]) {
        if held.contains(&key) || full.iter().any(|other| other.kept.key == key) {
            continue;
        }
        let view = store.key(&key)?;
        if view.kept.limit().is_some_and(|limit| view.held >= limit) {
            full.push(view);
        }
    }
    Ok(full)
}
