//! What queues are told and asked, and what they answer.

use super::TaskKey;
use super::settings::QueueSettings;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::Text;
use starbridge_ports::{QueuedTask, TaskLease};
use std::time::Duration;
use tokio::sync::oneshot;

/// A worker asks for tasks.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// Who.
    pub worker: Text,
    /// Of which queues.
    pub queues: Vec<Text>,
    /// At most so many.
    pub limit: usize,
    /// How often it will be heard of, in milliseconds.
    pub lease_ms: Option<u64>,
    /// How long it waits.
    pub patience: Duration,
}

/// A task that a worker has from now on.
#[derive(Clone, Debug)]
pub struct HeldTask {
    /// The task.
    pub task: QueuedTask,
    /// Since when, and how often the worker must be heard of.
    pub lease: TaskLease,
}

/// How a queue stands.
#[derive(Clone, Debug)]
pub struct QueueView {
    /// Its name.
    pub name: Text,
    /// What is set for it.
    pub settings: QueueSettings,
    /// Tasks that nobody has.
    pub waiting: u64,
    /// Tasks that workers have.
    pub held: u64,
    /// Since when the oldest of the next ones waits.
    pub oldest: Option<Timestamp>,
    /// Workers that wait for tasks.
    pub workers: usize,
    /// Workers that have tasks.
    pub busy: usize,
}

impl QueueView {
    /// A queue that has nothing.
    pub fn of_nothing(name: Text) -> Self {
        Self {
            name,
            settings: QueueSettings::default(),
            waiting: 0,
            held: 0,
            oldest: None,
            workers: 0,
            busy: 0,
        }
    }
}

/// Of which queues it is asked how they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueuesViewed {
    /// Of this one, if it is known.
    One(Text),
    /// Of so many after this name, in the order of their names.
    After(Text, usize),
}

impl QueuesViewed {
    /// Of all of them.
    pub fn all() -> Self {
        Self::After(Text::default(), usize::MAX)
    }
}

/// What queues are told and asked.
#[derive(Debug)]
pub enum QueueCommand {
    /// A task stands in its queue.
    Come(Box<QueuedTask>),
    /// A task has left this queue.
    Gone(Text, TaskKey),
    /// A worker asks for tasks, under the number of its order. No tasks: it waited in vain.
    Hold(u64, HoldRequest, oneshot::Sender<Vec<HeldTask>>),
    /// Whoever made this order has gone.
    Leave(u64),
    /// Whoever was given these tasks has gone without hearing of them.
    Return(Vec<HeldTask>),
    /// A worker is still at it; the answer is for how many milliseconds it has the task now.
    Beat(TaskKey, oneshot::Sender<Option<u64>>),
    /// What is set for a queue.
    Configure(Text, QueueSettings),
    /// How queues stand.
    View(QueuesViewed, oneshot::Sender<Vec<QueueView>>),
    /// Nothing is given out any more.
    Drain,
    /// The end.
    Stop,
}
