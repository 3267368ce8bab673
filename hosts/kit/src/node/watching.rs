//! Watching histories grow.

use starbridge_fdl::value::Text;
use starbridge_runtime::Outgoing;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Who watches which execution. A clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Watchers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How many are watched, so that nobody takes the lock where none is.
    watched: AtomicUsize,
    executions: Mutex<HashMap<Text, watch::Sender<u64>>>,
}

/// One who watches an execution: changes each time a turn of it has become durable.
#[derive(Debug)]
pub struct Watch {
    execution: Text,
    turns: watch::Receiver<u64>,
    shared: Arc<Shared>,
}

impl Watchers {
    /// Begins to watch.
    pub fn watch(&self, execution: &Text) -> Watch {
        let mut executions = self.shared.lock();
        let sender = executions
            .entry(execution.clone())
            .or_insert_with(|| watch::channel(0).0);
        let turns = sender.subscribe();
        self.shared.watched.store(executions.len(), Ordering::Release);
        Watch {
            execution: execution.clone(),
            turns,
            shared: self.shared.clone(),
        }
    }

    /// How many executions are watched.
    pub fn len(&self) -> usize {
        self.shared.watched.load(Ordering::Acquire)
    }

    /// Whether nobody watches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn see(&self, outgoing: &Outgoing) {
        if let Outgoing::Turn { execution, .. } = outgoing
            && !self.is_empty()
            && let Some(sender) = self.shared.lock().get(execution)
        {
            sender.send_modify(|turns| *turns += 1);
        }
    }
}

impl Shared {
    /// Nothing panics while the lock is held, so what a poisoned one guards is whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<Text, watch::Sender<u64>>> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Waits for the next turn.
    pub async fn changed(&mut self) {
        // The sender lives as long as somebody watches.
        let _ = self.turns.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut executions = self.shared.lock();
        if executions
            .get(&self.execution)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            executions.remove(&self.execution);
        }
        self.shared.watched.store(executions.len(), Ordering::Release);
    }
}
