//! Worker queues of a node: what workers ask, and what operators set and see.

use super::owners::Owners;
use super::task_message::task_message;
use super::{Node, NotTaken};
use starbridge_fdl::value::{Object, Text, Value};
use starbridge_machine::{EventId, Signal};
use starbridge_ports::{Clock, DeadTask, Store, StoreError};
use starbridge_runtime::{
    Command, HoldRequest, QueueCommand, QueueDoor, QueueEngine, QueueSettings, QueueView, QueueWorld, Queues,
    QueuesViewed, Reply, Rounds, TaskKey, Verdict, Writer,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{mpsc, oneshot};

/// Where settings of queues stand on the store's shelf.
const KIND: &str = "queue";

/// What owners and queues of a node share.
pub(super) struct Shared {
    pub(super) door: QueueDoor,
    pub(super) rounds: Arc<Rounds>,
    inbox: mpsc::UnboundedReceiver<QueueCommand>,
}

impl Shared {
    pub(super) fn new() -> Self {
        let (door, inbox) = QueueDoor::new();
        Self {
            door,
            rounds: Arc::default(),
            inbox,
        }
    }

    /// What drives the queues, going on where the store is.
    pub(super) fn engine(
        self,
        store: &Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        writer: &Writer,
        owners: Vec<mpsc::Sender<Command>>,
    ) -> Result<QueueEngine, StoreError> {
        let mut queues = Queues::new(self.rounds);
        for (name, settings) in kept_settings(store.as_ref())? {
            queues.configure(&name, settings, 0);
        }
        let world = QueueWorld {
            store: store.clone(),
            clock,
            tell: Box::new(move |verdict| tell(&owners, verdict)),
        };
        QueueEngine::new(queues, world, &self.door, self.inbox, writer)
    }
}

/// Tells the owner of an execution what became of its task. False: it has no room just now.
fn tell(owners: &[mpsc::Sender<Command>], verdict: &Verdict) -> bool {
    let ((execution, call), signal) = match verdict {
        Verdict::LeaseEnded { key, redeliver } => {
            let (call, redeliver) = (key.1, *redeliver);
            (key, Signal::LeaseEnded { call, redeliver })
        }
        Verdict::TimedOut { key } => (key, Signal::TimedOut { call: key.1 }),
    };
    tracing::debug!(%execution, call = call.0, ?signal, "a task's time is over");
    let command = Command::Signal {
        execution: execution.clone(),
        signal: Box::new(signal),
        reply: None,
    };
    let owner = owners.get(Owners::which(execution, owners.len()));
    // An owner that is gone has no use for it.
    !matches!(
        owner.map(|owner| owner.try_send(command)),
        Some(Err(mpsc::error::TrySendError::Full(_)))
    )
}

fn kept_settings(store: &dyn Store) -> Result<Vec<(Text, QueueSettings)>, StoreError> {
    let mut kept = Vec::new();
    for (name, text) in store.all(KIND)? {
        let settings = serde_json::from_str::<Object>(&text).ok();
        let settings = settings.and_then(|object| QueueSettings::read(&object).ok());
        let settings = settings
            .ok_or_else(|| StoreError::Corrupt(format!("the settings of the queue `{name}` are not readable")))?;
        kept.push((Text::from(name), settings));
    }
    Ok(kept)
}

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
pub struct Buried {
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
    pub async fn requeue(&self, tasks: &[DeadTask], by: Option<&str>) -> Result<Buried, NotTaken> {
        let mut buried = Buried::default();
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
    pub async fn drop_dead(&self, tasks: &[DeadTask]) -> Result<Buried, NotTaken> {
        let mut buried = Buried::default();
        let mut rest = tasks;
        while let Some(first) = rest.first() {
            let own = rest.iter().take_while(|task| task.execution == first.execution).count();
            let (own, others) = rest.split_at(own);
            let (reply, answer) = oneshot::channel();
            let calls: Vec<EventId> = own.iter().map(|task| task.call).collect();
            let command = Command::Bury {
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

impl Buried {
    fn count(&mut self, done: bool) {
        match done {
            true => self.done += 1,
            false => self.not_done += 1,
        }
    }
}
