//! The requests of workers' polls to the queues, and the resulting instructions.

use super::{TaskKey, Ticks};
use starbridge_flow::time::Millis;
use starbridge_flow::value::Text;
use starbridge_ports::{QueuedTask, Queueing, StoreError, TaskLease};

/// A worker's poll for tasks.
#[derive(Clone, Debug)]
pub struct PollRequest {
    /// The number of the poll. Later polls have larger numbers.
    pub id: u64,
    /// The name of the worker.
    pub worker: Text,
    /// The queues to take tasks from; the first ones are preferred.
    pub queues: Vec<Text>,
    /// The largest number of tasks to give.
    pub limit: usize,
    /// The longest time between two heartbeats that the worker promises, if it is shorter than what a task asks for.
    pub lease: Option<Millis>,
    /// When the poll ends without tasks.
    pub until: Ticks,
}

/// Tasks that a worker gets once that is durable.
#[derive(Clone, Debug)]
pub struct TaskGrant {
    /// The number of the poll.
    pub poll: u64,
    /// The tasks, each with its lease.
    pub tasks: Vec<(QueuedTask, TaskLease)>,
}

/// Why a task's time is over: a message for its execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskExpiry {
    /// The worker missed its heartbeat.
    LeaseEnded {
        /// The key of the task.
        key: TaskKey,
        /// How many retries the queue grants where no policy of the step names the error.
        redeliver: u32,
    },
    /// The task waited too long for a worker, or a worker held it too long.
    TimedOut {
        /// The key of the task.
        key: TaskKey,
    },
}

/// What to do after [`super::Queues::poll`].
#[derive(Debug, Default)]
pub struct PollOutcome {
    /// Make these leases durable, then [`super::Queues::confirm`] each and answer the worker.
    pub grants: Vec<TaskGrant>,
    /// Answer these polls without tasks: their time is over, or their workers have gone.
    pub empty: Vec<u64>,
    /// Send these to the executions.
    pub expiries: Vec<TaskExpiry>,
    /// Ask the store for tasks of these queues ([`TaskFetch::run`]), and pass them to [`super::Queues::refill`].
    pub short: Vec<(Text, TaskFetch)>,
}

/// What a queue asks of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFetch {
    /// The next tasks, this many.
    Next(usize),
    /// The first tasks of each priority below this one, so many of each.
    Below(u8, usize),
}

impl TaskFetch {
    /// The store's answer.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    pub fn run(self, store: &(impl Queueing + ?Sized), queue: &str) -> Result<Vec<QueuedTask>, StoreError> {
        match self {
            Self::Next(limit) => store.next_tasks(queue, limit),
            Self::Below(priority, each) => store.first_tasks(queue, priority, each),
        }
    }
}
