//! The first tasks of each priority that is too low to be in memory: those that may have waited longest.

use super::TaskKey;
use super::queue_position::{QueuePosition, position};
use starbridge_ports::QueuedTask;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// How many tasks of each priority are asked of the store, at least and at most.
pub(super) const EACH: RangeInclusive<usize> = 4..=64;
/// How many bytes of messages of each priority are kept, or a single one.
const MAX_BYTES: usize = 1 << 20;

/// What the store had below a priority: the first tasks of each.
#[derive(Debug)]
pub(super) struct LowerHeads {
    tasks: BTreeMap<QueuePosition, QueuedTask>,
    below: u8,
    /// The priorities of which the store has more behind those that are known.
    cut: BTreeSet<u8>,
    /// Whether nothing was chosen since the store answered. It may have told only of tasks that are held.
    is_fresh: bool,
}

impl LowerHeads {
    /// Takes the store's answer: the first `each` tasks of each priority below `below`, but for those that `is_free` says are
    /// held.
    pub(super) fn new(below: u8, each: usize, tasks: Vec<QueuedTask>, is_free: impl Fn(&QueuedTask) -> bool) -> Self {
        let count = |priority: &u8| tasks.iter().filter(|task| task.priority == *priority).count();
        let cut = (0..below).filter(|priority| count(priority) >= each).collect();
        let free = tasks.into_iter().filter(is_free);
        let mut lower = Self {
            tasks: free.map(|task| (position(&task), task)).collect(),
            below,
            cut,
            is_fresh: true,
        };
        (0..below).for_each(|priority| lower.trim(priority));
        lower
    }

    /// Whether so many tasks of each priority below this one are known, as far as there are so many.
    pub(super) fn cover(&self, priority: u8, count: usize) -> bool {
        let count = count.min(*EACH.end());
        let are_known = |cut: &u8| self.of(*cut).count() >= count;
        priority <= self.below && (self.is_fresh || self.cut.iter().all(are_known))
    }

    /// The known tasks of a priority, in order.
    fn of(&self, priority: u8) -> impl DoubleEndedIterator<Item = (&QueuePosition, &QueuedTask)> {
        let known = self.tasks.iter();
        known.filter(move |(_, task)| task.priority == priority)
    }

    /// Notes a task that only the store has.
    pub(super) fn note(&mut self, task: QueuedTask) {
        let (priority, position) = (task.priority, position(&task));
        let last = self.of(priority).next_back();
        let is_before_last = last.is_some_and(|(last, _)| position < *last);
        if priority < self.below && (is_before_last || !self.cut.contains(&priority)) {
            self.tasks.insert(position, task);
            self.trim(priority);
        }
    }

    /// Leaves the last tasks of a priority to the store where there are many.
    fn trim(&mut self, priority: u8) {
        let mut bytes = 0;
        let known = self.of(priority).enumerate().skip_while(|(place, (_, task))| {
            bytes += task.message.len();
            *place < *EACH.end() && (*place == 0 || bytes <= MAX_BYTES)
        });
        let left: Vec<QueuePosition> = known.map(|(_, (position, _))| position.clone()).collect();
        for position in &left {
            self.tasks.remove(position);
            self.cut.insert(priority);
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
        self.tasks.remove(position)
    }

    /// The oldest was chosen.
    pub(super) fn was_asked(&mut self) {
        self.is_fresh = false;
    }

    /// Forgets a task that no longer waits.
    pub(super) fn leave(&mut self, key: &TaskKey) {
        self.tasks.retain(|(_, of), _| of != key);
    }
}
