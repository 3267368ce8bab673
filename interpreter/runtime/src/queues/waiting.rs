//! The tasks of a queue that nobody has: the next ones in memory, however many more the store has.

use super::TaskKey;
use starbridge_flow::time::Timestamp;
use starbridge_ports::QueuedTask;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Tasks asked of the store at a time.
pub(super) const PAGE: usize = 1024;
/// Tasks kept in memory, and bytes of what workers are told.
const MOST: usize = 4 * PAGE;
const MOST_BYTES: usize = 8 << 20;

/// The task's order key, then its own key: the smaller is taken first.
type QueuePosition = ((Reverse<u8>, u64, Timestamp), TaskKey);

fn place(task: &QueuedTask) -> QueuePosition {
    let key = (task.execution.clone(), task.call);
    (task.order_key(), key)
}

/// The tasks that nobody has.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    tasks: BTreeMap<QueuePosition, QueuedTask>,
    places: HashMap<TaskKey, QueuePosition>,
    bytes: usize,
    /// Whether the store may have tasks that come after those here.
    more: bool,
    /// How many there are, here and in the store; less than none, where the store was quicker than the word of a task.
    count: i64,
}

impl Waiting {
    /// So many wait in the store, and none is here.
    pub(super) fn resume(&mut self, count: u64) {
        self.count += i64::try_from(count).unwrap_or(i64::MAX);
        self.more |= count > 0;
    }

    /// How many there are, here and in the store.
    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.count).unwrap_or(0)
    }

    /// Whether there is nothing to remember: what comes is told.
    pub(super) fn is_over(&self) -> bool {
        self.count == 0 && self.tasks.is_empty()
    }

    /// The word of a task comes that the store has already given out.
    pub(super) fn come_late(&mut self) {
        self.count += 1;
    }

    /// A task waits: it is kept here if it comes before the last one here, or nothing else is in the store.
    pub(super) fn come(&mut self, task: QueuedTask) {
        self.count += 1;
        let place = place(&task);
        let here = !self.more || self.tasks.last_key_value().is_some_and(|(last, _)| place < *last);
        if here {
            self.put(place, task);
            self.shrink();
        }
    }

    fn put(&mut self, place: QueuePosition, task: QueuedTask) {
        let bytes = task.message.len();
        if self.places.insert(place.1.clone(), place.clone()).is_none() {
            self.bytes += bytes;
            self.tasks.insert(place, task);
        }
    }

    fn shrink(&mut self) {
        while self.tasks.len() > MOST || self.bytes > MOST_BYTES && self.tasks.len() > 1 {
            let Some((place, task)) = self.tasks.pop_last() else {
                break;
            };
            self.places.remove(&place.1);
            self.bytes -= task.message.len();
            self.more = true;
        }
    }

    /// A task waits no longer.
    pub(super) fn leave(&mut self, key: &TaskKey) {
        self.count -= 1;
        if let Some(place) = self.places.remove(key)
            && let Some(task) = self.tasks.remove(&place)
        {
            self.bytes -= task.message.len();
        }
    }

    /// Whether none is here.
    pub(super) fn has_none(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether none is here while the store has some.
    pub(super) fn is_short(&self) -> bool {
        self.tasks.is_empty() && self.more
    }

    /// Takes in what the store has next: `all`, if that is all it has.
    pub(super) fn refill(&mut self, tasks: Vec<QueuedTask>, all: bool) {
        self.more = !all;
        for task in tasks {
            self.put(place(&task), task);
        }
        self.shrink();
    }

    /// Takes the next one that is here.
    pub(super) fn pop(&mut self) -> Option<QueuedTask> {
        let (place, task) = self.tasks.pop_first()?;
        self.places.remove(&place.1);
        self.bytes -= task.message.len();
        self.count -= 1;
        Some(task)
    }

    /// Since when the one of those here that has waited longest has.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.tasks.values().map(|task| task.since).min()
    }

    /// Bytes of the next one.
    pub(super) fn next_bytes(&self) -> usize {
        self.tasks.first_key_value().map_or(0, |(_, task)| task.message.len())
    }
}
