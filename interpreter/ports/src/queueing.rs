//! Tasks that wait in queues until workers take them (section "worker queues").

use crate::error::StoreError;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A task in a queue. Execution and call are its key; it is there until its call is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedTask {
    /// The queue's name.
    pub queue: Text,
    /// The execution.
    pub execution: Text,
    /// The call.
    pub call: EventId,
    /// 0–9, 9 first.
    pub priority: u8,
    /// Within a priority the smaller goes first. Executions have their tasks in rounds, so that one with many does not keep
    /// others waiting.
    pub round: u64,
    /// Within a round the smaller goes first: when the execution began.
    pub order: Timestamp,
    /// Since when it is in the queue.
    pub since: Timestamp,
    /// When it has waited too long.
    pub wait_until: Option<Timestamp>,
    /// How long a worker may have it, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// How often a worker must be heard of, in milliseconds, where the task says so.
    pub heartbeat_ms: Option<u64>,
    /// What the worker is told, as JSON; tokens and secrets are only referred to.
    pub message: String,
}

impl QueuedTask {
    /// Where it stands among the tasks of its queue: the smallest is taken first. Tasks with the same key go in the order of
    /// their executions and calls.
    pub fn order_key(&self) -> (Reverse<u8>, u64, Timestamp) {
        (Reverse(self.priority), self.round, self.order)
    }
}

/// A worker has a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLease {
    /// Who.
    pub worker: Text,
    /// Since when.
    pub held: Timestamp,
    /// How often it must be heard of, in milliseconds.
    pub millis: u64,
}

/// A task is taken, or given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLeaseChange {
    /// The execution.
    pub execution: Text,
    /// The call.
    pub call: EventId,
    /// The lease; nothing, if it is given back.
    pub lease: Option<TaskLease>,
}

/// A task that failed for good: no retry was left, and nothing caught it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadTask {
    /// The queue's name.
    pub queue: Text,
    /// The execution.
    pub execution: Text,
    /// The call.
    pub call: EventId,
    /// The step's name.
    pub step: Text,
    /// The attempt that failed.
    pub attempt: u32,
    /// The error's name.
    pub error: Text,
    /// Its cause.
    pub cause: Text,
    /// When it failed.
    pub time: Timestamp,
}

/// How much waits in a queue at one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// The queue's name.
    pub queue: Text,
    /// The priority.
    pub priority: u8,
    /// How many tasks nobody has.
    pub waiting: u64,
    /// The lowest round among them.
    pub round: u64,
}

impl Depth {
    /// How much waits, by queue and priority, where these tasks do.
    pub fn of<'a>(waiting: impl Iterator<Item = &'a QueuedTask>) -> Vec<Self> {
        let mut depths: BTreeMap<(&Text, u8), Self> = BTreeMap::new();
        for task in waiting {
            let depth = depths.entry((&task.queue, task.priority));
            let depth = depth.or_insert_with(|| Self {
                queue: task.queue.clone(),
                priority: task.priority,
                waiting: 0,
                round: task.round,
            });
            depth.waiting += 1;
            depth.round = depth.round.min(task.round);
        }
        depths.into_values().collect()
    }
}

/// Reads the queues that appends write.
pub trait Queueing: Send + Sync {
    /// Tasks of a queue that nobody has, at most so many, in the order of [`QueuedTask::order_key`].
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError>;
    /// All tasks that somebody has.
    fn leased_tasks(&self) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError>;
    /// How much waits in each queue, by queue and priority.
    fn depths(&self) -> Result<Vec<Depth>, StoreError>;
    /// Tasks that nobody has and that have waited too long at that time, the earliest first, at most so many.
    fn overdue_tasks(&self, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError>;
    /// Dead tasks of a queue after that one, in the order of executions and calls, at most so many.
    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError>;
    /// How many tasks of each queue are dead.
    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError>;
}
