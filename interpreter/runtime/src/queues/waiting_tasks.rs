//! The tasks of a queue that no worker holds. The next ones are in memory; the store has the rest.

use super::TaskKey;
use starbridge_flow::time::Timestamp;
use starbridge_ports::QueuedTask;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// How many tasks are asked of the store at a time.
pub(super) const PAGE: usize = 1024;
/// How many tasks, and how many bytes of their messages, are kept in memory.
const MAX_TASKS: usize = 4 * PAGE;
const MAX_BYTES: usize = 8 << 20;

/// The task's order key, then its own key. The smallest is taken first.
type QueuePosition = ((Reverse<u8>, u64, Timestamp), TaskKey);

fn position(task: &QueuedTask) -> QueuePosition {
    let key = (task.execution.clone(), task.call);
    (task.order_key(), key)
}

/// The waiting tasks of a queue.
#[derive(Debug, Default)]
pub(super) struct WaitingTasks {
    tasks: BTreeMap<QueuePosition, QueuedTask>,
    positions: HashMap<TaskKey, QueuePosition>,
    bytes: usize,
    /// Whether the store may have tasks after those in memory.
    more: bool,
    /// How many tasks wait, in memory and in the store. Negative for a moment if a task was read from the store and
    /// taken before it was announced.
    count: i64,
}

impl WaitingTasks {
    /// Sets how many tasks wait in the store, while none is in memory.
    pub(super) fn resume(&mut self, count: u64) {
        self.count += i64::try_from(count).unwrap_or(i64::MAX);
        self.more |= count > 0;
    }

    /// How many tasks wait, in memory and in the store.
    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.count).unwrap_or(0)
    }

    /// Whether there is nothing to remember: every new task is announced.
    pub(super) fn is_over(&self) -> bool {
        self.count == 0 && self.tasks.is_empty()
    }

    /// Counts the announcement of a task that was read from the store and taken already.
    pub(super) fn count_given_out(&mut self) {
        self.count += 1;
    }

    /// Takes a task that waits. It is kept in memory if it goes before the last one there, or if the store has no
    /// others.
    pub(super) fn enqueue(&mut self, task: QueuedTask) {
        self.count += 1;
        let position = position(&task);
        let here = !self.more || self.tasks.last_key_value().is_some_and(|(last, _)| position < *last);
        if here {
            self.put(position, task);
            self.shrink();
        }
    }

    fn put(&mut self, position: QueuePosition, task: QueuedTask) {
        let bytes = task.message.len();
        if self.positions.insert(position.1.clone(), position.clone()).is_none() {
            self.bytes += bytes;
            self.tasks.insert(position, task);
        }
    }

    fn shrink(&mut self) {
        while self.tasks.len() > MAX_TASKS || self.bytes > MAX_BYTES && self.tasks.len() > 1 {
            let Some((position, task)) = self.tasks.pop_last() else {
                break;
            };
            self.positions.remove(&position.1);
            self.bytes -= task.message.len();
            self.more = true;
        }
    }

    /// Removes a task that no longer waits.
    pub(super) fn leave(&mut self, key: &TaskKey) {
        self.count -= 1;
        if let Some(position) = self.positions.remove(key)
            && let Some(task) = self.tasks.remove(&position)
        {
            self.bytes -= task.message.len();
        }
    }

    /// Whether no task is in memory.
    pub(super) fn has_none(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether no task is in memory while the store has some.
    pub(super) fn is_short(&self) -> bool {
        self.tasks.is_empty() && self.more
    }

    /// Takes the next tasks from the store. `all`: the store has no others.
    pub(super) fn refill(&mut self, tasks: Vec<QueuedTask>, all: bool) {
        self.more = !all;
        for task in tasks {
            self.put(position(&task), task);
        }
        self.shrink();
    }

    /// Takes out the next task in memory.
    pub(super) fn pop(&mut self) -> Option<QueuedTask> {
        let (position, task) = self.tasks.pop_first()?;
        self.positions.remove(&position.1);
        self.bytes -= task.message.len();
        self.count -= 1;
        Some(task)
    }

    /// When the oldest task in memory was put into the queue.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.tasks.values().map(|task| task.since).min()
    }

    /// The size of the next task's message, in bytes.
    pub(super) fn next_bytes(&self) -> usize {
        self.tasks.first_key_value().map_or(0, |(_, task)| task.message.len())
    }
}
