//! The first tasks of each priority that is too low to be in memory: those that may have waited longest.

use super::TaskKey;
use super::queue_position::{QueuePosition, position};
use starbridge_ports::QueuedTask;
use std::collections::BTreeMap;

/// How many tasks of each priority are asked of the store.
pub(super) const EACH: usize = 4;

/// What the store had below a priority.
#[derive(Debug)]
pub(super) struct LowerHeads {
    tasks: BTreeMap<QueuePosition, QueuedTask>,
    below: u8,
    /// How many may be taken before the store has to be asked again; `None`: these are all it has.
    left: Option<usize>,
}

impl LowerHeads {
    /// Takes the store's answer: the first [`EACH`] tasks of each priority below `below`, but for those that `is_free` says are
    /// held.
    pub(super) fn new(below: u8, tasks: Vec<QueuedTask>, is_free: impl Fn(&QueuedTask) -> bool) -> Self {
        let count = |priority| tasks.iter().filter(|task| task.priority == priority).count();
        let has_more = (0..below).any(|priority| count(priority) >= EACH);
        let free = tasks.into_iter().filter(is_free);
        Self {
            tasks: free.map(|task| (position(&task), task)).collect(),
            below,
            left: has_more.then_some(EACH),
        }
    }

    /// Whether they are known for all priorities below this one.
    pub(super) fn cover(&self, priority: u8) -> bool {
        priority <= self.below && self.left != Some(0)
    }

    /// Notes a task that only the store has.
    pub(super) fn note(&mut self, task: QueuedTask) {
        if task.priority >= self.below {
            return;
        }
        let is_other = |known: &QueuedTask| known.priority != task.priority;
        if self.tasks.values().all(is_other) {
            self.tasks.insert(position(&task), task);
        } else if self.left.is_none() {
            self.left = Some(EACH);
        }
    }

    /// The first task of each priority.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&QueuePosition, &QueuedTask)> {
        let mut seen = None;
        self.tasks
            .iter()
            .filter(move |(_, task)| seen.replace(task.priority) != Some(task.priority))
    }

    /// Removes a task, if it is one of these.
    pub(super) fn take(&mut self, position: &QueuePosition) -> Option<QueuedTask> {
        let task = self.tasks.remove(position)?;
        self.left = self.left.map(|left| left.saturating_sub(1));
        Some(task)
    }

    /// Forgets a task that no longer waits.
    pub(super) fn leave(&mut self, key: &TaskKey) {
        self.tasks.retain(|(_, of), _| of != key);
    }
}
