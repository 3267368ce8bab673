//! Worker queues of a node: what workers ask, and what operators set and see.

use super::owners::Owners;
use super::{Node, NotTaken};
use crate::system::SystemClock;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Text, Value};
use starbridge_machine::{EventId, Signal};
use starbridge_ports::{DeadTask, QueuedTask, Secrets, Store, StoreError};
use starbridge_runtime::{
    Command, HeldTask, HoldRequest, QueueCommand, QueueDoor, QueueEngine, QueueSettings, QueueView, QueueWorld, Queues,
    Reply, Rounds, TaskKey, TokenKeys, Verdict, Writer, reveal_secrets, sign_references,
};
use std::borrow::Cow;
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
        writer: &Writer,
        owners: Vec<mpsc::Sender<Command>>,
    ) -> Result<QueueEngine, StoreError> {
        let mut queues = Queues::new(self.rounds);
        for (name, settings) in kept_settings(store.as_ref())? {
            queues.configure(&name, settings, 0);
        }
        let world = QueueWorld {
            store: store.clone(),
            clock: Arc::new(SystemClock),
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
        let (reply, answer) = oneshot::channel();
        self.queues.tell(QueueCommand::Hold(request, reply));
        let held = answer.await.map_err(|_| NotTaken::Stopping)?;
        self.counters.held.fetch_add(held.len() as u64, Ordering::Relaxed);
        Ok(held
            .iter()
            .map(|held| told(held, &self.tokens, self.secrets.as_ref()))
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
        self.store
            .keep(KIND, name, &Value::Object(settings.write()).to_json())?;
        self.queues.tell(QueueCommand::Configure(name.into(), settings.clone()));
        Ok(())
    }

    /// All queues that have or had a task since the start, or for which something is set.
    pub async fn shown_queues(&self) -> Result<Vec<ShownQueue>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queues.tell(QueueCommand::View(reply));
        let views = answer.await.unwrap_or_default();
        let mut dead = self.store.dead_counts()?;
        let mut shown: Vec<ShownQueue> = views
            .into_iter()
            .map(|view| {
                let position = dead.iter().position(|(name, _)| *name == view.name);
                let dead = position.map_or(0, |position| dead.swap_remove(position).1);
                ShownQueue { view, dead }
            })
            .collect();
        for (name, dead) in dead {
            let view = QueueView {
                name,
                settings: QueueSettings::default(),
                waiting: 0,
                held: 0,
                oldest: None,
                workers: 0,
            };
            shown.push(ShownQueue { view, dead });
        }
        shown.sort_by(|one, two| one.view.name.cmp(&two.view.name));
        Ok(shown)
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

/// What a worker is told of a task that it has, as JSON: what is known only now, and the message as it was written down,
/// signed and revealed where it refers to tokens or secrets.
fn told(held: &HeldTask, tokens: &TokenKeys, secrets: &dyn Secrets) -> String {
    let HeldTask { task, lease } = held;
    let mut told: Object = [("token".into(), Value::from(tokens.sign(&task.execution, task.call)))]
        .into_iter()
        .collect();
    let seconds = |millis: u64| Value::from(millis.div_ceil(1000));
    told.insert("leaseSeconds".into(), seconds(lease.millis));
    told.insert("leaseUntil".into(), at(lease.held.plus_millis(lease.millis)));
    if let Some(millis) = task.timeout_ms {
        told.insert("timeoutSeconds".into(), seconds(millis));
        told.insert("deadline".into(), at(lease.held.plus_millis(millis)));
    }
    let head = Value::from(told).to_json();
    // INVARIANT: both are objects with members, so one goes on where the other ends.
    let message = message(task, tokens, secrets);
    let (head, message) = (head.strip_suffix('}'), message.strip_prefix('{'));
    format!("{},{}", head.unwrap_or_default(), message.unwrap_or_default())
}

/// The message of a task; nearly none refers to anything, and is as it was written down.
fn message<'a>(task: &'a QueuedTask, tokens: &TokenKeys, secrets: &dyn Secrets) -> Cow<'a, str> {
    if !["task-token:", "secret://"]
        .iter()
        .any(|word| task.message.contains(word))
    {
        return Cow::Borrowed(&task.message);
    }
    let mut message = serde_json::from_str::<Object>(&task.message).unwrap_or_default();
    if let Some(value) = message.get("input") {
        let value = input(task, value, &message, tokens, secrets);
        message.insert("input".into(), value);
    }
    Cow::Owned(Value::from(message).to_json())
}

fn at(time: Timestamp) -> Value {
    time.to_string().into()
}

fn input(task: &QueuedTask, value: &Value, message: &Object, tokens: &TokenKeys, secrets: &dyn Secrets) -> Value {
    let ancestors = message.get("ancestors").and_then(Value::as_array);
    let ancestors = ancestors
        .into_iter()
        .flat_map(|ids| ids.values())
        .filter_map(Value::as_str);
    let family: Vec<&str> = [task.execution.as_str()].into_iter().chain(ancestors).collect();
    let signed = sign_references(value, &family, tokens).unwrap_or_else(|| value.clone());
    // What can't be revealed stays a reference: the worker sees which secret is missing.
    reveal_secrets(&signed, secrets).unwrap_or(signed)
}
