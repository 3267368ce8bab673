//! The tasks that workers hold, and when their leases and timeouts end (`heartbeatSeconds`, `timeoutSeconds`).

use super::{TaskKey, Ticks};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::{QueuedTask, TaskLease};
use std::collections::{BTreeSet, HashMap};

/// The phase of a task that is not waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeasePhase {
    /// It was given to a worker, and that is not durable yet.
    Granting,
    /// A worker holds it.
    Held,
    /// It expired, and its execution does not know that yet.
    Over,
}

/// A task that is not waiting.
#[derive(Debug)]
pub(super) struct LeasedTask {
    /// The task. Its message is dropped once the worker has it.
    pub(super) task: QueuedTask,
    pub(super) worker: Text,
    pub(super) since: Timestamp,
    pub(super) lease: Millis,
    pub(super) phase: LeasePhase,
    /// Whether it counts as held by a worker.
    pub(super) counted: bool,
    /// Whether its execution withdrew it meanwhile. Such a task does not wait: it is announced
    /// again.
    withdrawn: bool,
    lease_ends: Ticks,
    times_out: Option<Ticks>,
    /// Its position in the list of ends.
    listed: Ticks,
}

/// How the holding of a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The worker missed its heartbeat.
    TaskLease,
    /// The worker held it too long.
    Timeout,
}

/// The tasks that are not waiting.
#[derive(Debug, Default)]
pub(super) struct LeasedTasks {
    tasks: HashMap<TaskKey, LeasedTask>,
    ends: BTreeSet<(Ticks, TaskKey)>,
    /// How many tasks each worker has, by queue.
    busy: HashMap<Text, HashMap<Text, usize>>,
}

impl LeasedTasks {
    /// Gives a task to a worker. Its times begin in `begin`, when that is durable.
    pub(super) fn grant(&mut self, task: QueuedTask, worker: Text, lease: Millis, since: Timestamp) {
        let key = (task.execution.clone(), task.call);
        let held = LeasedTask {
            task,
            worker,
            since,
            lease,
            phase: LeasePhase::Granting,
            counted: true,
            withdrawn: false,
            lease_ends: Ticks::MAX,
            times_out: None,
            listed: Ticks::MAX,
        };
        self.note_busy(&held);
        if let Some(before) = self.tasks.insert(key, held) {
            self.note_free(&before);
        }
    }

    /// Records that the execution withdraws this task unless a worker holds it. Returns whether one
    /// holds it.
    pub(super) fn withdraw(&mut self, key: &TaskKey) -> bool {
        match self.tasks.get_mut(key) {
            Some(held) => {
                held.withdrawn = true;
                true
            }
            None => false,
        }
    }

    /// Whether a held task is announced again because it was withdrawn. If so, the end of its
    /// waiting time is the new one.
    pub(super) fn is_announced_anew(&mut self, task: &QueuedTask) -> bool {
        let key = (task.execution.clone(), task.call);
        let Some(held) = self.tasks.get_mut(&key).filter(|held| held.withdrawn) else {
            return false;
        };
        held.withdrawn = false;
        held.task.wait_until = task.wait_until;
        true
    }

    /// How many workers have tasks of a queue.
    pub(super) fn busy_workers(&self, queue: &str) -> usize {
        self.busy.get(queue).map_or(0, HashMap::len)
    }

    /// The worker of each task of a queue that one holds, and since when.
    pub(super) fn holders_of(&self, queue: &str) -> impl Iterator<Item = (&Text, Timestamp)> {
        let held = self.tasks.values();
        let held = held.filter(move |held| held.counted && held.task.queue == queue && !held.worker.is_empty());
        held.map(|held| (&held.worker, held.since))
    }

    fn note_busy(&mut self, held: &LeasedTask) {
        if !held.worker.is_empty() {
            let queue = self.busy.entry(held.task.queue.clone()).or_default();
            *queue.entry(held.worker.clone()).or_default() += 1;
        }
    }

    fn note_free(&mut self, held: &LeasedTask) {
        let Some(queue) = self.busy.get_mut(&held.task.queue) else {
            return;
        };
        if let Some(count) = queue.get_mut(&held.worker) {
            *count -= 1;
            if *count == 0 {
                queue.remove(&held.worker);
            }
        }
        if queue.is_empty() {
            self.busy.remove(&held.task.queue);
        }
    }

    /// Records that a task which no worker took has waited too long.
    pub(super) fn overdue(&mut self, queue: &Text, key: &TaskKey) {
        let task = QueuedTask {
            queue: queue.clone(),
            execution: key.0.clone(),
            call: key.1,
            ..QueuedTask::default()
        };
        self.grant(task, Text::default(), Millis::ZERO, Timestamp::default());
        if let Some(held) = self.tasks.get_mut(key) {
            held.phase = LeasePhase::Over;
            held.counted = false;
        }
    }

    /// The worker is answered now: its lease and its timeout begin.
    pub(super) fn begin(&mut self, key: &TaskKey, now: Ticks) -> Option<&LeasedTask> {
        let held = self
            .tasks
            .get_mut(key)
            .filter(|held| held.phase == LeasePhase::Granting)?;
        held.phase = LeasePhase::Held;
        held.task.message = String::new();
        held.lease_ends = now.saturating_add(held.lease);
        held.times_out = held.task.timeout.map(|longest| now.saturating_add(longest));
        held.listed = held.first_end();
        self.ends.insert((held.listed, key.clone()));
        self.tasks.get(key)
    }

    /// The worker had gone before it was answered: the times stop until the task is given back. Returns false if the
    /// task has another lease by now or has expired.
    pub(super) fn unbegin(&mut self, task: &QueuedTask, lease: &TaskLease) -> bool {
        let key = (task.execution.clone(), task.call);
        let same = |held: &&mut LeasedTask| {
            held.phase == LeasePhase::Held && held.worker == lease.worker && held.since == lease.held
        };
        let Some(held) = self.tasks.get_mut(&key).filter(same) else {
            return false;
        };
        self.ends.remove(&(held.listed, key));
        held.task.message.clone_from(&task.message);
        held.phase = LeasePhase::Granting;
        held.lease_ends = Ticks::MAX;
        held.times_out = None;
        held.listed = Ticks::MAX;
        true
    }

    /// Takes a heartbeat. Returns how long the lease runs from now.
    pub(super) fn heartbeat(&mut self, key: &TaskKey, now: Ticks) -> Option<Millis> {
        let held = self.tasks.get_mut(key).filter(|held| held.phase == LeasePhase::Held)?;
        // A lease that has ended stays ended, even if nothing has noticed it yet.
        if held.lease_ends < now {
            return None;
        }
        held.lease_ends = now.saturating_add(held.lease);
        Some(held.lease)
    }

    pub(super) fn get(&self, key: &TaskKey) -> Option<&LeasedTask> {
        self.tasks.get(key)
    }

    pub(super) fn remove(&mut self, key: &TaskKey) -> Option<LeasedTask> {
        let held = self.tasks.remove(key)?;
        self.ends.remove(&(held.listed, key.clone()));
        self.note_free(&held);
        Some(held)
    }

    /// The next time at which something may end. A heartbeat extends a lease without changing this,
    /// so the caller may find nothing.
    pub(super) fn next(&self) -> Option<Ticks> {
        // A heartbeat exactly at the end is in time, so the lease ends a millisecond later.
        self.ends.first().map(|(end, _)| end.saturating_add(Millis(1)))
    }

    /// Removes the tasks that have ended before now, and returns them.
    pub(super) fn ended(&mut self, now: Ticks) -> Vec<(TaskKey, End)> {
        let mut ended = Vec::new();
        while let Some((end, key)) = self.ends.first().filter(|(end, _)| *end < now).cloned() {
            self.ends.remove(&(end, key.clone()));
            let Some(held) = self.tasks.get_mut(&key) else {
                continue;
            };
            let times_out = held.times_out.filter(|out| *out < now);
            if times_out.is_none() && held.lease_ends >= now {
                held.listed = held.first_end();
                self.ends.insert((held.listed, key));
                continue;
            }
            held.phase = LeasePhase::Over;
            ended.push((
                key,
                if times_out.is_some() {
                    End::Timeout
                } else {
                    End::TaskLease
                },
            ));
        }
        ended
    }
}

impl LeasedTask {
    /// When its lease or its time ends, whichever is first.
    pub(super) fn first_end(&self) -> Ticks {
        self.times_out.map_or(self.lease_ends, |out| out.min(self.lease_ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_machine::EventId;

    const LEASE: Millis = Millis(1_000);

    /// A task that a worker holds from the first tick on, with a lease of one second.
    fn held(timeout: Option<Millis>) -> (LeasedTasks, TaskKey) {
        let mut holding = LeasedTasks::default();
        let task = QueuedTask {
            queue: "q".into(),
            execution: "e".into(),
            call: EventId(4),
            timeout,
            ..QueuedTask::default()
        };
        let key = (task.execution.clone(), task.call);
        holding.grant(task, "w".into(), LEASE, Timestamp(0));
        holding.begin(&key, Millis::ZERO);
        (holding, key)
    }

    #[test]
    fn lease_ends_a_millisecond_after_its_last_moment() {
        let (mut holding, key) = held(None);
        assert_eq!(holding.next(), Some(Millis(1_001)));
        assert!(holding.ended(LEASE).is_empty());
        assert_eq!(holding.ended(Millis(1_001)), [(key, End::TaskLease)]);
        assert!(holding.ended(Ticks::MAX).is_empty(), "once");
    }

    #[test]
    fn workers_are_busy_as_long_as_they_have_a_task() {
        let (mut holding, key) = held(None);
        let other = QueuedTask {
            queue: "q".into(),
            call: EventId(5),
            ..QueuedTask::default()
        };
        let second = (other.execution.clone(), other.call);
        holding.grant(other.clone(), "w".into(), LEASE, Timestamp(0));
        assert_eq!(holding.busy_workers("q"), 1, "one worker has two tasks");
        holding.grant(other, "v".into(), LEASE, Timestamp(0));
        assert_eq!(holding.busy_workers("q"), 2, "it was given to another one");
        holding.remove(&key);
        holding.remove(&second);
        assert_eq!((holding.busy_workers("q"), holding.busy.len()), (0, 0));
    }

    #[test]
    fn lease_goes_on_from_each_heartbeat_but_not_after_its_end() {
        let (mut holding, key) = held(None);
        for now in [600, 1_200, 1_800] {
            assert_eq!(holding.heartbeat(&key, Millis(now)), Some(LEASE));
            assert!(holding.ended(Millis(now).saturating_add(LEASE)).is_empty());
        }
        assert_eq!(
            holding.heartbeat(&key, Millis(2_801)),
            None,
            "over, though nobody has looked"
        );
        assert_eq!(holding.ended(Millis(2_801)), [(key.clone(), End::TaskLease)]);
        assert_eq!(holding.heartbeat(&key, Millis(2_802)), None);
    }

    #[test]
    fn lease_that_is_kept_does_not_lengthen_the_time_of_the_task() {
        let (mut holding, key) = held(Some(Millis(1_500)));
        assert_eq!(holding.heartbeat(&key, Millis(900)), Some(LEASE));
        assert!(holding.ended(Millis(1_500)).is_empty());
        assert_eq!(holding.ended(Millis(1_501)), [(key, End::Timeout)]);
    }

    #[test]
    fn lease_begins_when_it_is_durable() {
        let mut holding = LeasedTasks::default();
        let task = QueuedTask::default();
        let key = (task.execution.clone(), task.call);
        holding.grant(task, "w".into(), LEASE, Timestamp(0));
        assert!(holding.ended(Ticks::MAX).is_empty());
        assert_eq!(holding.heartbeat(&key, Millis::ZERO), None, "nobody has it yet");
        holding.begin(&key, Millis(5_000));
        assert!(holding.ended(Millis(6_000)).is_empty());
        assert_eq!(holding.ended(Millis(6_001)), [(key, End::TaskLease)]);
    }
}
