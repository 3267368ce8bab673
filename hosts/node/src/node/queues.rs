//! Worker queues of a node: what workers ask, and what operators set and see.

use super::queue_thread::KIND;
use super::task_message::task_message;
use super::{Node, NotTaken};
use starbridge_fdl::value::{Text, Value};
use starbridge_machine::{EventId, Signal};
use starbridge_ports::{DeadTask, StoreError};
use starbridge_runtime::{Command, HoldRequest, QueueCommand, QueueSettings, QueueView, QueuesViewed, Reply, TaskKey};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

/// A queue as it is shown: how it stands, and how many of its tasks are dead.
#[derive(Clone, Debug)]
pub struct ShownQueue {
    /// How it stands.
    pub view: QueueView,
    /// Tasks that failed for good.
    pub dead: u64,
}

impl From<QueueView> for ShownQueue {
    fn from(view: QueueView) -> Self {
        Self { view, dead: 0 }
    }
}

/// What came of re-queueing or dropping dead tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkOutcome {
    /// Those for which it was done.
    pub done: u64,
    /// Those for which it could not be: their execution goes on already, or is gone.
    pub not_done: u64,
}

impl Node {
    /// Gives a worker tasks, each as JSON; none, if it waited in vain. They are its for the time of their leases, durably.
    pub async fn hold(&self, request: HoldRequest) -> Result<Vec<String>, NotTaken> {
        let poll = self.queues.hold(request);
        let held = poll.tasks().await.ok_or(NotTaken::Stopping)?;
        self.counters.held.fetch_add(held.len() as u64, Ordering::Relaxed);
        Ok(held
            .iter()
            .map(|held| task_message(held, &self.tokens, &self.vault))
            .collect())
    }

    /// A sign of life for a task that a worker has. False: no worker has it under a valid lease.
    pub(super) async fn beat(&self, key: TaskKey) -> bool {
        let (reply, answer) = oneshot::channel();
        self.queues.tell(QueueCommand::Beat(key, reply));
        matches!(answer.await, Ok(Some(_)))
    }

    /// Sets a queue, from now on and at every start.
    pub fn set_queue(&self, name: &str, settings: &QueueSettings) -> Result<(), StoreError> {
        match *settings == QueueSettings::default() {
            // Then nothing is set.
            true => drop(self.store.discard(KIND, name)?),
            false => {
                let text = Value::Object(settings.write()).to_json();
                self.store.keep(KIND, name, &text)?;
            }
        }
        self.queues.tell(QueueCommand::Configure(name.into(), settings.clone()));
        Ok(())
    }

    /// So many of the queues after this name: those that have tasks, waiting, held or dead, those that workers wait for, and
    /// those for which something is set.
    pub async fn shown_queues(&self, after: &str, most: usize) -> Result<Vec<ShownQueue>, StoreError> {
        let views = self.views(QueuesViewed::After(after.into(), most)).await;
        let dead = self
            .store
            .dead_counts()?
            .into_iter()
            .filter(|(name, _)| name.as_str() > after);
        let mut shown: BTreeMap<Text, ShownQueue> =
            views.into_iter().map(|view| (view.name.clone(), view.into())).collect();
        for (name, dead) in dead {
            let queue = shown.entry(name.clone());
            queue.or_insert_with(|| QueueView::of_nothing(name).into()).dead = dead;
        }
        Ok(shown.into_values().take(most).collect())
    }

    /// How the first so many queues stand that have tasks, settings or workers, without their dead tasks.
    pub async fn queue_views(&self, most: usize) -> Vec<QueueView> {
        self.views(QueuesViewed::After(Text::default(), most)).await
    }

    /// A queue, if anything is known of it.
    pub async fn shown_queue(&self, name: &Text) -> Result<Option<ShownQueue>, StoreError> {
        let view = self.views(QueuesViewed::One(name.clone())).await.pop();
        let dead = self.store.dead_counts()?.into_iter().find(|(other, _)| other == name);
        let dead = dead.map_or(0, |(_, dead)| dead);
        let known = view.or_else(|| (dead > 0).then(|| QueueView::of_nothing(name.clone())));
        Ok(known.map(|view| ShownQueue { view, dead }))
    }

    async fn views(&self, viewed: QueuesViewed) -> Vec<QueueView> {
        let (reply, answer) = oneshot::channel();
        self.queues.tell(QueueCommand::View(viewed, reply));
        answer.await.unwrap_or_default()
    }

    /// The executions of these dead tasks go on from where they failed: their tasks are queued anew.
    pub async fn requeue(&self, tasks: &[DeadTask], by: Option<&str>) -> Result<BulkOutcome, NotTaken> {
        let mut buried = BulkOutcome::default();
        let mut again: Vec<(Text, bool)> = Vec::new();
        for task in tasks {
            let known = again.iter().find(|(execution, _)| *execution == task.execution);
            let goes_on = match known {
                Some((_, goes_on)) => *goes_on,
                None => {
                    let redrive = Signal::Redrive {
                        by: by.map(str::to_owned),
                    };
                    let goes_on = self.signal(&task.execution, redrive).await? == Reply::Taken;
                    again.push((task.execution.clone(), goes_on));
                    goes_on
                }
            };
            buried.count(goes_on);
        }
        Ok(buried)
    }

    /// These dead tasks are listed no longer; their executions stay as they are.
    pub async fn drop_dead(&self, tasks: &[DeadTask]) -> Result<BulkOutcome, NotTaken> {
        let mut buried = BulkOutcome::default();
        let mut rest = tasks;
        while let Some(first) = rest.first() {
            let own = rest.iter().take_while(|task| task.execution == first.execution).count();
            let (own, others) = rest.split_at(own);
            let (reply, answer) = oneshot::channel();
            let calls: Vec<EventId> = own.iter().map(|task| task.call).collect();
            let command = Command::DiscardDead {
                execution: first.execution.clone(),
                calls,
                reply,
            };
            self.owners.owner_of(&first.execution, command)?;
            let done = answer.await.map_err(|_| NotTaken::Stopping)? == Reply::Taken;
            own.iter().for_each(|_| buried.count(done));
            rest = others;
        }
        Ok(buried)
    }
}

impl BulkOutcome {
    fn count(&mut self, done: bool) {
        match done {
            true => self.done += 1,
            false => self.not_done += 1,
        }
    }
}
