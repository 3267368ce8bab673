//! Commands to the queues, and their answers.

use super::TaskKey;
use super::settings::QueueSettings;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::{QueuedTask, TaskLease};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;

/// A worker's poll for tasks.
#[derive(Clone, Debug)]
pub struct PollOptions {
    /// The name of the worker.
    pub worker: Text,
    /// The queues to take tasks from, in order of preference.
    pub queues: Vec<Text>,
    /// The largest number of tasks to give.
    pub limit: usize,
    /// The longest time between two heartbeats that the worker promises.
    pub lease: Option<Millis>,
    /// How long the worker waits for tasks.
    pub patience: Duration,
}

/// A task that a worker holds from now on.
#[derive(Clone, Debug)]
pub struct HeldTask {
    /// The task with its message.
    pub task: QueuedTask,
    /// The lease: since when, and how often heartbeats must come.
    pub lease: TaskLease,
}

/// The state of a queue.
#[derive(Clone, Debug)]
pub struct QueueView {
    /// The name of the queue.
    pub name: Text,
    /// The operator's settings of the queue.
    pub settings: QueueSettings,
    /// How many tasks no worker holds.
    pub waiting: u64,
    /// How many tasks workers hold.
    pub held: u64,
    /// When the oldest of the next tasks was put into the queue.
    pub oldest: Option<Timestamp>,
    /// How many workers wait for tasks.
    pub workers: usize,
    /// Workers that have tasks.
    pub busy: usize,
}

/// A program that polls a queue or has tasks of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueWorker {
    /// The name it gives itself.
    pub name: Text,
    /// How many tasks of the queue it has.
    pub held: usize,
    /// Since when it has had the oldest of them.
    pub since: Option<Timestamp>,
    /// How many polls of it wait for tasks.
    pub polls: usize,
}

impl QueueView {
    /// The view of a queue that has nothing.
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

/// What the thread of the queues is asked to do.
#[derive(Debug)]
pub enum QueueCommand {
    /// A task was put into its queue.
    Enqueue(Box<QueuedTask>),
    /// A task was removed from this queue.
    Remove(Text, TaskKey),
    /// A task was removed from this queue unless a worker holds it.
    Withdraw(Text, TaskKey),
    /// A worker polls for tasks; the number identifies the poll. An answer without tasks means that
    /// none came in time.
    Poll(u64, PollOptions, oneshot::Sender<Vec<HeldTask>>),
    /// The worker of this poll has gone.
    CancelPoll(u64),
    /// The worker that got these tasks has gone before the answer reached it.
    GiveBack(Vec<HeldTask>),
    /// A worker's heartbeat. The answer is for how long from now it holds the task, or `None` if it no longer
    /// does.
    Heartbeat(TaskKey, oneshot::Sender<Option<Millis>>),
    /// Set an operator's settings for a queue.
    Configure(Text, QueueSettings),
    /// Describe this queue. The answer is `None` if it is not known.
    Describe(Text, oneshot::Sender<Option<QueueView>>),
    /// List queues in the order of their names.
    List {
        /// Only those after this name.
        after: Text,
        /// At most so many.
        limit: usize,
        /// Gets the list.
        reply: oneshot::Sender<Vec<QueueView>>,
    },
    /// Say which workers a queue has now, in the order of their names.
    Workers(Text, oneshot::Sender<Vec<QueueWorker>>),
    /// Say which workers hold these tasks, and since when. Tasks that nobody holds are not in the answer.
    Holders(Vec<TaskKey>, oneshot::Sender<HashMap<TaskKey, (Text, Timestamp)>>),
    /// Say how long the lease of this task still lasts, or its time if that ends earlier; `None` if no worker holds it.
    LeaseLeft(TaskKey, oneshot::Sender<Option<Millis>>),
    /// Give out no more tasks.
    Drain,
    /// Stop serving.
    Stop,
}
