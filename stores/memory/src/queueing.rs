//! Queues: waiting tasks and dead tasks.

use crate::Kept;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, DeadTask, DeadTasksCleared, Depth, QueuedTask, ShardSet, TaskLease, TaskLeaseChange};
use std::collections::BTreeMap;

/// Tasks by the number of their execution and their call.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    queued: BTreeMap<(u64, EventId), (QueuedTask, Option<TaskLease>)>,
    dead: BTreeMap<(u64, EventId), DeadTask>,
}

impl Tasks {
    /// Removes all tasks of an execution.
    pub(crate) fn clear(&mut self, number: u64) {
        self.queued.retain(|(of, _), _| *of != number);
        self.dead.retain(|(of, _), _| *of != number);
    }
}

impl Kept {
    /// Makes the changes of an append to tasks of its execution.
    pub(crate) fn change_tasks(&mut self, append: &Append) {
        if let Some(number) = self.numbers.get(&append.execution).copied() {
            let tasks = &mut self.tasks;
            for call in &append.unqueued {
                tasks.queued.remove(&(number, *call));
            }
            for call in &append.withdrawn {
                let place = (number, *call);
                if tasks.queued.get(&place).is_some_and(|(_, lease)| lease.is_none()) {
                    tasks.queued.remove(&place);
                }
            }
            for task in &append.queued {
                let entry = tasks.queued.entry((number, task.call));
                entry.or_insert_with(|| (task.clone(), None));
            }
            match &append.dead_cleared {
                DeadTasksCleared::None => {}
                DeadTasksCleared::Calls(calls) => tasks
                    .dead
                    .retain(|(of, call), _| *of != number || !calls.contains(call)),
                DeadTasksCleared::All => tasks.dead.retain(|(of, _), _| *of != number),
            }
            for dead in &append.dead {
                tasks.dead.insert((number, dead.call), dead.clone());
            }
        }
        for change in &append.leases {
            self.lease(change);
        }
    }

    fn lease(&mut self, change: &TaskLeaseChange) {
        let number = self.numbers.get(&change.execution);
        let kept = number.and_then(|number| self.tasks.queued.get_mut(&(*number, change.call)));
        if let Some((_, lease)) = kept {
            lease.clone_from(&change.lease);
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (&(u64, EventId), &QueuedTask)> {
        let queued = self.tasks.queued.iter();
        queued.filter_map(|(place, (task, lease))| lease.is_none().then_some((place, task)))
    }

    pub(crate) fn next_tasks(&self, queue: &str, limit: usize) -> Vec<QueuedTask> {
        let mut found: Vec<_> = self.waiting().filter(|(_, task)| task.queue == queue).collect();
        found.sort_by_key(|(place, task)| (task.order_key(), **place));
        found.into_iter().take(limit).map(|(_, task)| task.clone()).collect()
    }

    pub(crate) fn task_of(&self, execution: &str, call: Option<EventId>) -> Option<(QueuedTask, Option<TaskLease>)> {
        let number = *self.numbers.get(execution)?;
        let all = (number, EventId(0))..=(number, EventId(u64::MAX));
        let of = self
            .tasks
            .queued
            .range(all)
            .filter(|((_, of), _)| call.is_none_or(|call| *of == call));
        let (_, (task, lease)) = of.min_by_key(|(_, (_, lease))| lease.is_some())?;
        let task = QueuedTask {
            message: String::new(),
            ..task.clone()
        };
        Some((task, lease.clone()))
    }

    pub(crate) fn tasks_before(&self, task: &QueuedTask, most: u64) -> u64 {
        let number = self.numbers.get(&task.execution).copied().unwrap_or_default();
        let own = (task.order_key(), (number, task.call));
        let before = |(place, other): &(&(u64, EventId), &QueuedTask)| {
            other.queue == task.queue && (other.order_key(), **place) < own
        };
        (self.waiting().filter(before).count() as u64).min(most)
    }

    pub(crate) fn leased_tasks(&self, shards: &ShardSet) -> Vec<(QueuedTask, TaskLease)> {
        let queued = self.tasks.queued.values();
        let queued = queued.filter(|(task, _)| shards.has_queue(&task.queue));
        queued
            .filter_map(|(task, lease)| Some((task.clone(), lease.clone()?)))
            .collect()
    }

    pub(crate) fn depths(&self, shards: &ShardSet) -> Vec<Depth> {
        let waiting = self.waiting().map(|(_, task)| task);
        Depth::of(waiting.filter(|task| shards.has_queue(&task.queue)))
    }

    pub(crate) fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Vec<QueuedTask> {
        let overdue = |task: &QueuedTask| task.wait_until.filter(|until| *until < before);
        let waiting = self.waiting().filter(|(_, task)| shards.has_queue(&task.queue));
        let mut found: Vec<_> = waiting
            .filter_map(|(place, task)| Some((overdue(task)?, *place, task)))
            .collect();
        found.sort_by_key(|(until, place, _)| (*until, *place));
        found.into_iter().take(limit).map(|(_, _, task)| task.clone()).collect()
    }

    pub(crate) fn dead_tasks(&self, queue: &str, after: Option<(&str, EventId)>, limit: usize) -> Vec<DeadTask> {
        let after = after.and_then(|(execution, call)| Some((*self.numbers.get(execution)?, call)));
        let dead = self.tasks.dead.iter();
        dead.filter(|(place, dead)| after.is_none_or(|after| **place > after) && dead.queue == queue)
            .map(|(_, dead)| dead.clone())
            .take(limit)
            .collect()
    }

    pub(crate) fn dead_counts(&self) -> Vec<(Text, u64)> {
        counted(self.tasks.dead.values().map(|dead| &dead.queue))
    }
}

pub(crate) fn counted<'a>(names: impl Iterator<Item = &'a Text>) -> Vec<(Text, u64)> {
    let mut counts: BTreeMap<Text, u64> = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    counts.into_iter().collect()
}
