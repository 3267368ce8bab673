//! The tasks of a queue that no worker holds. The next ones are in memory; the store has the rest.

use super::TaskKey;
use super::lower_heads::{EACH, LowerHeads};
use super::poll::TaskFetch;
use super::queue_position::{QueuePosition, position};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::QueuedTask;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// How many tasks are asked of the store at a time.
pub(super) const PAGE: usize = 1024;
/// How many tasks, and how many bytes of their messages, are kept in memory.
const MAX_TASKS: usize = 4 * PAGE;
const MAX_BYTES: usize = 8 << 20;

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
    /// How many tasks were taken since the last one that was taken for its age.
    passed: u32,
    /// The first tasks of lower priorities than those in memory; `None`: the store was not asked.
    lower: Option<LowerHeads>,
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
        } else if let Some(lower) = &mut self.lower {
            lower.note(task);
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
            if let Some(lower) = &mut self.lower {
                lower.note(task);
            }
        }
    }

    /// Removes a task that no longer waits.
    pub(super) fn leave(&mut self, key: &TaskKey) {
        self.count -= 1;
        if let Some(position) = self.positions.get(key).cloned() {
            self.take_out(&position);
        }
        if let Some(lower) = &mut self.lower {
            lower.leave(key);
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

    /// Takes what the store has below the priorities in memory.
    pub(super) fn look_below(&mut self, lower: LowerHeads) {
        self.lower = Some(lower);
    }

    /// What the store has to be asked before so many tasks can be taken: after `share` others comes the one that has waited
    /// longest. `share` 0: never.
    pub(super) fn lacks_below(&self, share: u32, count: usize) -> Option<TaskFetch> {
        let (((Reverse(last), ..), _), _) = self.tasks.last_key_value()?;
        let (share, passed) = (usize::try_from(share).ok()?, usize::try_from(self.passed).ok()?);
        let turns = passed.min(share).saturating_add(count) / share.saturating_add(1);
        let is_known =
            || !self.more || *last == 0 || self.lower.as_ref().is_some_and(|lower| lower.cover(*last, turns));
        let lacks = share > 0 && turns > 0 && !is_known();
        lacks.then(|| TaskFetch::Below(*last, turns.clamp(*EACH.start(), *EACH.end())))
    }

    fn is_turn_of_oldest(&self, share: u32) -> bool {
        share > 0 && self.passed >= share
    }

    /// Takes out the next task. Call it if [`Self::lacks_below`] is `None`.
    pub(super) fn pop(&mut self, share: u32) -> Option<QueuedTask> {
        let position = self.next(share)?;
        let is_turn = self.is_turn_of_oldest(share);
        self.passed = if is_turn { 0 } else { self.passed.saturating_add(1) };
        if let Some(lower) = self.lower.as_mut().filter(|_| is_turn) {
            lower.was_asked();
        }
        let lower = self.lower.as_mut().and_then(|lower| lower.take(&position));
        let task = self.take_out(&position).or(lower)?;
        self.count -= 1;
        Some(task)
    }

    fn take_out(&mut self, position: &QueuePosition) -> Option<QueuedTask> {
        let task = self.tasks.remove(position)?;
        self.positions.remove(&position.1);
        self.bytes -= task.message.len();
        Some(task)
    }

    fn next(&self, share: u32) -> Option<QueuePosition> {
        if !self.is_turn_of_oldest(share) {
            return self.tasks.first_key_value().map(|(position, _)| position.clone());
        }
        // Of the last priority in memory, the first ones are there.
        let ((Reverse(last), ..), _) = self.tasks.last_key_value()?.0;
        let lower = self.lower.iter().flat_map(LowerHeads::heads);
        let lower = lower.filter(|(_, task)| task.priority < *last);
        let oldest = self
            .heads()
            .chain(lower)
            .min_by_key(|(position, task)| (task.since, *position));
        oldest.map(|(position, _)| position.clone())
    }

    /// The first task in memory of each priority. Within a priority the fair queue already keeps a task from waiting forever.
    fn heads(&self) -> impl Iterator<Item = (&QueuePosition, &QueuedTask)> {
        let mut next = self.tasks.first_key_value();
        std::iter::from_fn(move || {
            let head = next?;
            let ((priority, ..), _) = head.0;
            let last_of_it = (
                (*priority, u64::MAX, Timestamp(i64::MAX)),
                (Text::default(), EventId(0)),
            );
            next = self.tasks.range((Bound::Excluded(last_of_it), Bound::Unbounded)).next();
            Some(head)
        })
    }

    /// When the oldest task in memory was put into the queue.
    pub(super) fn oldest(&self) -> Option<Timestamp> {
        self.tasks.values().map(|task| task.since).min()
    }

    /// The size of the next task's message in memory, in bytes.
    pub(super) fn next_bytes(&self) -> usize {
        self.tasks.first_key_value().map_or(0, |(_, task)| task.message.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const SHARE: u32 = 16;

    fn task(priority: u8, since: i64, call: u64) -> QueuedTask {
        QueuedTask {
            queue: "q".into(),
            execution: "e".into(),
            call: EventId(call),
            priority,
            since: Timestamp(since),
            order: Timestamp(since),
            ..QueuedTask::default()
        }
    }

    /// Takes this many tasks of a queue whose store has these. Returns their calls.
    fn taken(waiting: &mut WaitingTasks, store: &[QueuedTask], count: usize) -> Vec<u64> {
        let (mut taken, mut gone) = (Vec::new(), HashSet::new());
        while taken.len() < count {
            let left = |task: &&QueuedTask| !gone.contains(&task.call.0);
            if waiting.is_short() {
                let mut next: Vec<_> = store.iter().filter(left).cloned().collect();
                next.sort_by_key(position);
                let all = next.len() <= PAGE;
                next.truncate(PAGE);
                waiting.refill(next, all);
            }
            if let Some(TaskFetch::Below(below, each)) = waiting.lacks_below(SHARE, 1) {
                let mut first: Vec<_> = Vec::new();
                for priority in 0..below {
                    let of_it = store.iter().filter(left).filter(|task| task.priority == priority);
                    first.extend(of_it.take(each).cloned());
                }
                waiting.look_below(LowerHeads::new(below, each, first, |_| true));
            }
            let Some(task) = waiting.pop(SHARE) else { break };
            taken.push(task.call.0);
            gone.insert(task.call.0);
        }
        taken
    }

    #[test]
    fn starvation_ends_after_sixteen_tasks_in_memory_or_in_the_store() {
        // The oldest is of priority 0, five more are of priority 3, and all others came later and are urgent.
        let old: Vec<_> = [(0, 1), (3, 2), (3, 3), (3, 4), (3, 5), (3, 6)].into();
        for urgent in [100, MAX_TASKS + 2 * PAGE] {
            let mut store: Vec<_> = (1..)
                .zip(&old)
                .map(|(call, (priority, since))| task(*priority, *since, call))
                .collect();
            store.extend((0..urgent).map(|number| task(9, 100, 1_000 + number as u64)));
            let (mut announced, mut resumed) = (WaitingTasks::default(), WaitingTasks::default());
            for task in &store {
                announced.enqueue(task.clone());
            }
            resumed.resume(store.len() as u64);
            for waiting in [&mut announced, &mut resumed] {
                let taken = taken(waiting, &store, store.len());
                assert_eq!(taken.len(), store.len(), "each once");
                let places: Vec<_> = taken.iter().enumerate().filter(|(_, call)| **call < 1_000).collect();
                if urgent == 100 {
                    let expected = [(16, &1), (33, &2), (50, &3), (67, &4), (84, &5), (101, &6)];
                    assert_eq!(places, expected);
                } else {
                    let expected: Vec<usize> = (1..=6).map(|number| 17 * number - 1).collect();
                    assert_eq!(places.iter().map(|(place, _)| *place).collect::<Vec<_>>(), expected);
                }
                assert_eq!(waiting.count(), 0);
            }
        }
    }

    #[test]
    fn starvation_is_not_prevented_where_the_share_is_zero() {
        let mut waiting = WaitingTasks::default();
        waiting.enqueue(task(0, 1, 1));
        (2..100).for_each(|call| waiting.enqueue(task(9, 2, call)));
        let last = std::iter::from_fn(|| waiting.pop(0)).last();
        assert_eq!(last.map(|task| task.call.0), Some(1));
    }

    fn call(head: Option<(&QueuePosition, &QueuedTask)>) -> u64 {
        head.map(|(_, task)| task.call.0).unwrap()
    }

    #[test]
    fn tasks_that_came_later_to_the_store_are_known_below_in_their_order() {
        let mut lower = LowerHeads::new(5, 4, Vec::new(), |_| true);
        assert!(lower.cover(5, 1) && !lower.cover(6, 1));
        lower.was_asked();
        lower.note(task(7, 7, 1));
        assert_eq!(lower.heads().count(), 0);
        let many = u64::try_from(*EACH.end()).unwrap();
        (2..many + 10).for_each(|call| lower.note(task(3, 8, call)));
        assert_eq!(call(lower.heads().next()), 2);
        lower.note(task(3, 6, 900));
        assert_eq!(call(lower.heads().next()), 900);
        // Not all are known any more, so none that comes after them is.
        for _ in 0..many {
            assert!(lower.cover(5, 1));
            let first = lower.heads().next().map(|(position, _)| position.clone()).unwrap();
            lower.take(&first).unwrap();
        }
        lower.note(task(3, 9, 901));
        assert!(lower.heads().count() == 0 && !lower.cover(5, 1));
    }

    #[test]
    fn few_large_tasks_are_known_below() {
        let large = |call| QueuedTask {
            message: "x".repeat(400 << 10),
            ..task(3, 1, call)
        };
        let lower = LowerHeads::new(9, 4, vec![large(1), large(2), large(3)], |_| true);
        assert_eq!(lower.heads().count(), 1);
        let mut lower = LowerHeads::new(9, 3, vec![large(1), large(2), large(3)], |_| true);
        lower.was_asked();
        assert!(lower.cover(9, 2) && !lower.cover(9, 3));
    }

    #[test]
    fn store_is_asked_again_where_what_it_had_below_is_held() {
        // The leases of the first four are not durable yet, and there are more behind them.
        let answer: Vec<_> = (1..=4).map(|call| task(3, 1, call)).collect();
        let mut waiting = WaitingTasks {
            more: true,
            ..WaitingTasks::default()
        };
        (10..100).for_each(|call| waiting.put(position(&task(9, 2, call)), task(9, 2, call)));
        waiting.look_below(LowerHeads::new(9, 4, answer, |_| false));
        let turns = std::iter::from_fn(|| match waiting.lacks_below(SHARE, 1) {
            None => waiting.pop(SHARE),
            Some(_) => None,
        });
        assert_eq!(turns.count(), 33, "the second turn of the oldest needs another answer");
    }

    #[test]
    fn tasks_that_leave_memory_for_lack_of_room_are_known_below() {
        let mut waiting = WaitingTasks::default();
        waiting.look_below(LowerHeads::new(9, 4, Vec::new(), |_| true));
        waiting.enqueue(task(3, 1, 1));
        waiting.enqueue(task(3, 1, 2));
        let urgent = u64::try_from(MAX_TASKS).unwrap();
        (10..urgent + 10).for_each(|call| waiting.enqueue(task(9, 2, call)));
        let taken: Vec<u64> = std::iter::from_fn(|| waiting.pop(SHARE))
            .take(34)
            .map(|task| task.call.0)
            .collect();
        assert_eq!((taken[16], taken[33]), (1, 2));
    }

    #[test]
    fn store_is_asked_once_for_many_tasks() {
        let mut waiting = WaitingTasks {
            more: true,
            ..WaitingTasks::default()
        };
        (1_000..3_000).for_each(|call| waiting.put(position(&task(9, 2, call)), task(9, 2, call)));
        assert_eq!(waiting.lacks_below(SHARE, 16), None);
        assert_eq!(waiting.lacks_below(SHARE, 17), Some(TaskFetch::Below(9, 4)));
        assert_eq!(waiting.lacks_below(SHARE, 1_000), Some(TaskFetch::Below(9, 58)));
        let answer = (1..=58).map(|call| task(3, 1, call)).collect();
        waiting.look_below(LowerHeads::new(9, 58, answer, |_| true));
        let taken = (0..1_000).filter_map(|_| match waiting.lacks_below(SHARE, 1) {
            None => waiting.pop(SHARE),
            Some(_) => None,
        });
        let low = taken.map(|task| task.priority == 3).collect::<Vec<_>>();
        assert_eq!((low.len(), low.iter().filter(|low| **low).count()), (1_000, 58));
    }
}
