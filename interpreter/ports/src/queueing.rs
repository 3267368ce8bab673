//! The port for queues: tasks that wait until workers take them (section "worker queues").

use crate::error::StoreError;
use crate::shards::ShardSet;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A task in a queue. The execution and the call are its key. It stays in the queue until its call is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedTask {
    /// The queue's name.
    pub queue: Text,
    /// The id of the execution.
    pub execution: Text,
    /// The number of the call's `TaskScheduled` event.
    pub call: EventId,
    /// From 0 to 9; 9 goes first.
    pub priority: u8,
    /// The smaller goes first within a priority. The tasks of an execution get increasing rounds, so that an
    /// execution with many tasks does not delay the others.
    pub virtual_time: u64,
    /// The smaller goes first within a round: the execution's `order_time`, or when it began.
    pub order: Timestamp,
    /// When the task was put into the queue.
    pub since: Timestamp,
    /// When the task times out if no worker takes it.
    pub wait_until: Option<Timestamp>,
    /// How long a worker may hold the task.
    pub timeout: Option<Millis>,
    /// The longest time between two heartbeats, if the task sets it.
    pub heartbeat: Option<Millis>,
    /// The message for the worker, as JSON. Tokens and secrets are only referred to.
    pub message: String,
}

impl QueuedTask {
    /// The position of the task in its queue: the smallest key is taken first. Tasks with equal keys go in the order
    /// of their executions and calls.
    pub fn order_key(&self) -> (Reverse<u8>, u64, Timestamp) {
        (Reverse(self.priority), self.virtual_time, self.order)
    }
}

/// A worker's lease of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLease {
    /// The name of the worker.
    pub worker: Text,
    /// When the worker took the task.
    pub held: Timestamp,
    /// The longest time between two heartbeats.
    pub heartbeat: Millis,
}

/// A worker takes a task or gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLeaseChange {
    /// The id of the execution.
    pub execution: Text,
    /// The number of the call.
    pub call: EventId,
    /// The new lease; `None` if the task is given back.
    pub lease: Option<TaskLease>,
}

/// A task that failed for good: no retry was left, and no catch matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadTask {
    /// The queue's name.
    pub queue: Text,
    /// The id of the execution.
    pub execution: Text,
    /// The number of the call.
    pub call: EventId,
    /// The step's name.
    pub step: Text,
    /// The attempt that failed.
    pub attempt: u32,
    /// The name of the error.
    pub error: Text,
    /// What happened, for people.
    pub cause: Text,
    /// When the attempt failed.
    pub time: Timestamp,
}

/// How many tasks wait in a queue at one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// The queue's name.
    pub queue: Text,
    /// 0 to 9; the highest is given out first.
    pub priority: u8,
    /// How many tasks no worker holds.
    pub waiting: u64,
    /// The lowest round among these tasks.
    pub virtual_time: u64,
}

impl Depth {
    /// The depths of the queues in which these tasks wait, by queue and priority.
    pub fn of<'a>(waiting: impl Iterator<Item = &'a QueuedTask>) -> Vec<Self> {
        let mut depths: BTreeMap<(&Text, u8), Self> = BTreeMap::new();
        for task in waiting {
            let depth = depths.entry((&task.queue, task.priority));
            let depth = depth.or_insert_with(|| Self {
                queue: task.queue.clone(),
                priority: task.priority,
                waiting: 0,
                virtual_time: task.virtual_time,
            });
            depth.waiting += 1;
            depth.virtual_time = depth.virtual_time.min(task.virtual_time);
        }
        depths.into_values().collect()
    }
}

/// Reads the queues that appends write.
pub trait Queueing: Send + Sync {
    /// Tasks of a queue that no worker holds, at most `limit`, in the order of [`QueuedTask::order_key`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError>;

    /// The first tasks of each priority below `below` that no worker holds, at most `each` of one, in the order of
    /// [`QueuedTask::order_key`]. A store that does not read whole queues has its own way.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn first_tasks(&self, queue: &str, below: u8, each: usize) -> Result<Vec<QueuedTask>, StoreError> {
        let mut given: BTreeMap<u8, usize> = BTreeMap::new();
        let mut tasks = self.next_tasks(queue, usize::MAX)?;
        tasks.retain(|task| {
            let count = given.entry(task.priority).or_default();
            *count += 1;
            task.priority < below && *count <= each
        });
        Ok(tasks)
    }

    /// All tasks of the queues of these shards that workers hold, with their leases.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError>;

    /// How many tasks wait in each queue of these shards, by queue and priority.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError>;

    /// Tasks of the queues of these shards that no worker holds and whose waiting time ended before a time, the earliest first, at
    /// most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError>;

    /// A task of an execution, without its message: the first that no worker holds, or else the
    /// first of all, with its lease. With `call`, the task of that call. `None` if there is none,
    /// or this store does not know the tasks of an execution.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn task_of(
        &self,
        _execution: &str,
        _call: Option<EventId>,
    ) -> Result<Option<(QueuedTask, Option<TaskLease>)>, StoreError> {
        Ok(None)
    }

    /// How many tasks that no worker holds are taken from this task's queue before it, counted up
    /// to `most`; `None` if this store does not count them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn tasks_before(&self, _task: &QueuedTask, _most: u64) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The dead tasks of a queue after `after`, in the order of executions and calls, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError>;

    /// How many dead tasks each queue has.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError>;
}
