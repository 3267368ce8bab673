//! The threads that own executions. Each has an engine, and a runtime of its own for the engine's calls.

use super::admission_thread::SharedAdmission;
use super::event_log::log_outgoing;
use super::notifier_thread::{Notifications, NotifierThread};
use super::owner_inboxes::OwnerInboxes;
use super::queue_thread::Shared;
use super::shard_claims::ShardClaims;
use super::stats::{OwnStats, Stats};
use super::threads::{End, block_on, no_thread, note, runtime, spawn, unless_it_panics};
use super::{Counters, NodeError, NodeSettings, NotTaken, Watchers};
use crate::system::new_seed;
use starbridge_connector_command::CommandConnector;
use starbridge_connector_http::{HttpConnector, HttpSettings};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_ports::{Epochs, History, ShardSet, Store, StoreError};
use starbridge_runtime::{
    AdmissionCommand, AdmissionHandle, Command, Connectors, Engine, EngineDeps, EngineSettings, FlowTable, Outgoing,
    QueueCommand, QueueHandle, Shard, StartRequest, TokenKeys, Vault, Writer,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

/// The dependencies of owners at their start.
pub(super) struct OwnerDeps {
    pub(super) settings: NodeSettings,
    pub(super) flows: FlowTable,
    pub(super) limits: Arc<Limits>,
    pub(super) tokens: TokenKeys,
    pub(super) watchers: Watchers,
    pub(super) counters: Arc<Counters>,
    pub(super) stats: Stats,
    pub(super) notifications: Option<Notifications>,
    pub(super) vault: Arc<Vault>,
    pub(super) admission: Option<AdmissionHandle>,
}

/// The owners of a node.
pub(super) struct Owners {
    inboxes: OwnerInboxes,
    claims: ShardClaims,
    /// Held while shards move from one owner to another.
    moving: tokio::sync::Mutex<()>,
    next: AtomicUsize,
    ended: watch::Receiver<End>,
    queues_over: watch::Receiver<bool>,
    admission: AdmissionHandle,
    admission_over: watch::Receiver<bool>,
    writer: Writer,
    telling: Option<NotifierThread>,
}

impl Owners {
    pub(super) fn start(shared: Shared, admission: SharedAdmission, start: &OwnerDeps) -> Result<Self, NodeError> {
        let claims = claims(&start.settings)?;
        let epochs = claims.claim(&ShardSet::ALL)?;
        let writer = Writer::start(history(&start.settings)).map_err(|error| no_thread(&error))?;
        let of = u8::try_from(start.settings.owners.clamp(1, 64)).unwrap_or(1);
        let (end, ended) = watch::channel(None);
        let left = Arc::new(AtomicUsize::new(usize::from(of)));
        let channels = (0..of).map(|_| mpsc::channel(start.settings.inbox.max(1)));
        let (inboxes, ends): (Vec<_>, Vec<_>) = channels.unzip();
        let inboxes = OwnerInboxes::new(inboxes);
        let owners = (0..usize::from(of)).map(|which| {
            let shards = inboxes.table().shards_of(which);
            owner(start, &shared, shards, epochs.part(&shards))
        });
        let owners: Vec<Owner> = owners.collect();
        // The queues load what the store has before anything changes it.
        let queues_of = match start.settings.worker_queues {
            true => start.settings.store.clone(),
            false => crate::stores::in_memory(),
        };
        let fair_share = start.settings.admission.fair_share;
        let queues = shared.engine(
            &queues_of,
            start.settings.clock.clone(),
            &writer,
            inboxes.clone(),
            fair_share,
        )?;
        // If several processes share a store, no process is always there to decide.
        let admission_of = match start.settings.leased {
            None => start.settings.store.clone(),
            Some(_) => crate::stores::in_memory(),
        };
        let admission_handle = admission.handle.clone();
        let admission = admission.engine(start.settings.admission, &admission_of, &writer, &inboxes)?;
        for (which, (owner, inbox)) in owners.into_iter().zip(ends).enumerate() {
            let (writer, end, left) = (writer.clone(), end.clone(), left.clone());
            spawn(&format!("owner-{which}"), move |name| {
                let over = unless_it_panics(&name, || run(owner, inbox, &writer));
                let last = left.fetch_sub(1, Ordering::SeqCst) == 1;
                if over.is_err() || last {
                    note(&end, over);
                }
            })?;
        }
        let notifications = start.notifications.as_ref();
        let telling = notifications.map(|it| it.start(&end)).transpose()?;
        let queues_over = spawn_beside("queues", end.clone(), move || queues.serve())?;
        let admission_over = spawn_beside("admission", end, move || admission.serve())?;
        Ok(Self {
            inboxes,
            claims,
            moving: tokio::sync::Mutex::default(),
            next: AtomicUsize::new(0),
            ended,
            queues_over,
            admission: admission_handle,
            admission_over,
            writer,
            telling,
        })
    }

    pub(super) fn ended(&self) -> watch::Receiver<End> {
        self.ended.clone()
    }

    /// Whether the store is being written now.
    pub(super) fn is_flushing(&self) -> bool {
        self.writer.is_flushing()
    }

    /// Sends a command to the owner of an execution. If its shard moves, this waits for the next owner, but not for long.
    pub(super) async fn owner_of(&self, execution: &str, command: Command) -> Result<(), NotTaken> {
        taken(self.inboxes.send_patiently(execution, command).await)
    }

    /// Moves shards to an owner; see [`OwnerInboxes::move_shards`].
    pub(super) async fn move_shards(&self, shards: &ShardSet, to: usize, until: Timestamp) -> Result<(), NotTaken> {
        let _one_at_a_time = self.moving.lock().await;
        self.inboxes.move_shards(shards, to, until, &self.claims).await
    }

    /// Gives all shards back.
    pub(super) fn leave(&self, store: &dyn Store) {
        self.claims.leave(store);
    }

    /// Sends a command to the next owner in turn.
    pub(super) async fn anyone(&self, command: Command) -> Result<(), NotTaken> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        taken(self.inboxes.send_to_one_patiently(next, command).await)
    }

    /// Waits until everything that the owners decided before is durable.
    pub(super) async fn await_durable(&self) -> Result<(), NotTaken> {
        let mut answers = Vec::with_capacity(self.inboxes.all().len());
        for inbox in self.inboxes.all() {
            let (reply, answer) = oneshot::channel();
            let sent = inbox.send(Command::AwaitDurable { kept: true, reply }).await;
            sent.map_err(|_| NotTaken::Stopping)?;
            answers.push(answer);
        }
        for answer in answers {
            answer.await.map_err(|_| NotTaken::Stopping)?;
        }
        Ok(())
    }

    /// Lets the owners send no more calls, and waits until none is out or that time has come.
    pub(super) async fn end_calls(&self, until: Timestamp) {
        let mut over = Vec::with_capacity(self.inboxes.all().len());
        for inbox in self.inboxes.all() {
            let (reply, answer) = oneshot::channel();
            // An owner that has ended has no call out.
            let shards = ShardSet::ALL;
            let _ = inbox.send(Command::EndCalls { shards, until, reply }).await;
            over.push(answer);
        }
        for over in over {
            let _ = over.await;
        }
    }

    /// Drains the owners first, then the queues, so that workers are answered until then. Other
    /// threads are told last.
    pub(super) async fn drain(&self, until: Timestamp, queues: &QueueHandle) -> Result<(), NodeError> {
        for inbox in self.inboxes.all() {
            // An owner that has ended is already drained.
            let _ = inbox.send(Command::Drain { until }).await;
        }
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await.map(|end| end.clone());
        queues.send(QueueCommand::Stop);
        self.admission.send(AdmissionCommand::Stop);
        // If a thread has ended, it sends nothing.
        for over in [&self.queues_over, &self.admission_over] {
            let _ = over.clone().wait_for(|over| *over).await;
        }
        if let Some(telling) = &self.telling {
            telling.stop().await;
        }
        end.map_or(Ok(()), |end| end.unwrap_or(Ok(())))
    }
}

/// Whether an inbox took a command.
fn taken(sent: Result<(), TrySendError<Command>>) -> Result<(), NotTaken> {
    sent.map_err(|error| match error {
        TrySendError::Full(_) => NotTaken::Busy,
        TrySendError::Closed(_) => NotTaken::Stopping,
    })
}

/// Starts a thread that runs beside the owners. The receiver gets `true` when it has ended.
fn spawn_beside<F: Future<Output = Result<(), StoreError>>>(
    name: &str,
    end: watch::Sender<End>,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<watch::Receiver<bool>, NodeError> {
    let (over_end, over) = watch::channel(false);
    spawn(name, move |name| {
        let over = unless_it_panics(&name, || block_on(work()));
        if over.is_err() {
            note(&end, over);
        }
        let _ = over_end.send(true);
    })?;
    Ok(over)
}

/// What a thread needs to own executions.
struct Owner {
    shard: Shard,
    /// Under which epochs its shards were claimed.
    epochs: Epochs,
    deps: EngineDeps,
    http: HttpSettings,
    settings: EngineSettings,
    watchers: Watchers,
    counters: Arc<Counters>,
    stats: OwnStats,
    notifications: Option<Notifications>,
}

fn owner(start: &OwnerDeps, shared: &Shared, shards: ShardSet, epochs: Epochs) -> Owner {
    let settings = &start.settings;
    let mut connectors = Connectors::new();
    if let Some(commands) = &settings.commands {
        connectors.insert("cmd", Arc::new(CommandConnector::new(commands.clone())));
    }
    settings.optional_connectors.insert_into(&mut connectors);
    let mut shard = Shard::new(
        start.flows.clone(),
        settings.resources.clone(),
        start.limits.clone(),
        |request: &StartRequest, _: Timestamp| new_seed(request),
    );
    if let Some(admission) = &start.admission {
        shard.admit_through(admission.clone());
    }
    if settings.worker_queues {
        shard.queue_tasks(shared.fair_queue.clone());
    }
    if let Some(notifications) = &start.notifications {
        notifications.listen_to(&mut shard);
    }
    Owner {
        shard,
        epochs,
        deps: EngineDeps {
            history: history(settings),
            connectors,
            clock: settings.clock.clone(),
            vault: start.vault.clone(),
            tokens: start.tokens.clone(),
            queues: settings.worker_queues.then(|| shared.queue_handle.clone()),
            leases: settings.leased.as_ref().map(|leased| leased.leases.clone()),
        },
        http: settings.http.clone(),
        settings: EngineSettings {
            fast_forward: false,
            hot_executions: settings.hot_executions,
            hot_bytes: settings.hot_bytes,
            calls: settings.calls,
            shards,
            ..EngineSettings::default()
        },
        watchers: start.watchers.clone(),
        counters: start.counters.clone(),
        stats: start.stats.owner(),
        notifications: start.notifications.clone(),
    }
}

/// The node's claims to the shards of its store. If several processes share it, executions have leases instead.
fn claims(settings: &NodeSettings) -> Result<ShardClaims, StoreError> {
    let store = settings.store.clone();
    match settings.leased {
        None => ShardClaims::join(store),
        Some(_) => Ok(ShardClaims::none(store)),
    }
}

/// The store of histories that owners use.
fn history(settings: &NodeSettings) -> Arc<dyn History> {
    match &settings.leased {
        None => settings.store.clone(),
        Some(leased) => leased.history.clone(),
    }
}

fn run(owner: Owner, inbox: mpsc::Receiver<Command>, writer: &Writer) -> Result<(), NodeError> {
    let runtime = runtime()?;
    let Owner {
        shard,
        epochs,
        mut deps,
        http,
        settings,
        watchers,
        counters,
        stats,
        notifications,
    } = owner;
    let over: Result<(), StoreError> = runtime.block_on(async move {
        deps.connectors.insert("http", Arc::new(HttpConnector::new(http)));
        let observer = move |shard: &Shard, outgoing: &Outgoing| {
            counters.see(outgoing);
            stats.see(shard, outgoing);
            log_outgoing(shard, outgoing);
            watchers.see(outgoing);
            if let Some(notifications) = &notifications {
                notifications.see(outgoing);
            }
        };
        let engine = Engine::new(shard, deps, settings, inbox, observer).writing_through(writer);
        engine.appending_under(&epochs).serve().await
    });
    // Calls that are out are dropped, not waited for. They are sent again at the next start.
    runtime.shutdown_background();
    over.map_err(NodeError::Store)
}
