//! Watching histories grow.

use super::chunks::{Chunk, Chunks};
use starbridge_flow::value::Text;
use starbridge_runtime::Outgoing;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The watchers of executions. A clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Watchers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How many executions are watched, so that the lock is not taken if there are none.
    watched: AtomicUsize,
    executions: Mutex<HashMap<Text, Watched>>,
    /// The parts of histories that several followers share.
    chunks: Mutex<Chunks>,
}

/// An execution that is watched.
#[derive(Debug)]
struct Watched {
    turns: watch::Sender<u64>,
    feed: Arc<Feed>,
}

/// The state that the watchers of an execution share.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// Held by the watcher that reads the store for all.
    pub(super) reading: tokio::sync::Mutex<()>,
    edge: Mutex<Option<Edge>>,
}

/// The end of a history when it was last read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The number of its next event.
    pub(super) next: u64,
    /// How many turns were known before it was read.
    pub(super) turns: u64,
    /// Whether the execution had ended.
    pub(super) ended: bool,
    /// When it was read.
    pub(super) at: Instant,
}

/// A watcher of an execution. It changes each time a turn of the execution is durable.
#[derive(Debug)]
pub struct Watch {
    execution: Text,
    turns: watch::Receiver<u64>,
    feed: Arc<Feed>,
    shared: Arc<Shared>,
}

impl Watchers {
    /// Begins to watch an execution.
    pub fn watch(&self, execution: &Text) -> Watch {
        let mut executions = self.shared.executions();
        let watched = executions.entry(execution.clone()).or_insert_with(|| Watched {
            turns: watch::channel(0).0,
            feed: Arc::default(),
        });
        let (turns, feed) = (watched.turns.subscribe(), watched.feed.clone());
        self.shared.watched.store(executions.len(), Ordering::Release);
        Watch {
            execution: execution.clone(),
            turns,
            feed,
            shared: self.shared.clone(),
        }
    }

    /// How many executions are watched.
    pub fn len(&self) -> usize {
        self.shared.watched.load(Ordering::Acquire)
    }

    /// Whether no execution is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn see(&self, outgoing: &Outgoing) {
        if let Outgoing::Turn { execution, .. } = outgoing
            && !self.is_empty()
            && let Some(watched) = self.shared.executions().get(execution)
        {
            watched.turns.send_modify(|turns| *turns += 1);
        }
    }
}

impl Shared {
    /// Nothing panics while a lock is held, so the value of a poisoned lock is intact.
    fn executions(&self) -> MutexGuard<'_, HashMap<Text, Watched>> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Waits for the next turn.
    pub async fn changed(&mut self) {
        // The sender lives as long as there is a watcher.
        let _ = self.turns.changed().await;
    }

    /// The id of the execution.
    pub(super) fn execution(&self) -> &Text {
        &self.execution
    }

    /// How many turns there were until now. [`Watch::changed`] waits for the next one.
    pub fn turns(&mut self) -> u64 {
        *self.turns.borrow_and_update()
    }

    pub(super) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// The part of the history from that event on that is already in memory.
    pub(super) fn at_hand(&self, from: u64) -> Option<Arc<Chunk>> {
        self.shared.chunks().find(&self.execution, from)
    }

    /// Keeps what was read for other watchers, if there are any.
    pub(super) fn keep(&self, chunk: &Arc<Chunk>) {
        let several = |watched: &Watched| watched.turns.receiver_count() > 1;
        let others = self.shared.executions().get(&self.execution).is_some_and(several);
        if others {
            self.shared.chunks().keep(&self.execution, chunk);
        }
    }
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, Option<Edge>> {
        self.edge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the history, if it was read within that time and no turn has come since.
    pub(super) fn edge(&self, turns: u64, within: Duration) -> Option<Edge> {
        let edge = *self.lock();
        edge.filter(|edge| edge.turns == turns && edge.at.elapsed() < within)
    }

    pub(super) fn set_edge(&self, edge: Edge) {
        *self.lock() = Some(edge);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut executions = self.shared.executions();
        if executions
            .get(&self.execution)
            .is_some_and(|watched| watched.turns.receiver_count() <= 1)
        {
            executions.remove(&self.execution);
            self.shared.chunks().forget(&self.execution);
        }
        self.shared.watched.store(executions.len(), Ordering::Release);
    }
}
