//! A node: a store, engines on threads of their own that share its writer, and the methods that hosts call.

mod admission_thread;
mod bulk;
mod chunks;
mod concurrency_keys;
mod counters;
mod error;
mod event_log;
mod expanded;
mod filter;
mod flows;
mod followers;
mod leased;
mod logs;
mod notifier_thread;
mod operating;
mod operator;
pub mod operator_signals;
mod outboxes;
mod owner_inboxes;
mod owners;
mod permits;
mod pool_limits;
mod queries;
mod queue_depths;
mod queue_thread;
mod queues;
mod reasons;
mod redefine;
mod replies;
mod retention;
mod schedules;
mod shard_claims;
mod stats;
mod task_message;
mod threads;
mod token_keys;
mod views;
mod watchers;

pub use bulk::{BAD_RESOLUTION, BulkAction, BulkPreview, BulkRefusal, BulkWait, WantedBulk, check_decision};
pub use concurrency_keys::ShownKey;
pub use counters::{Counters, TotalsByStatus};
pub use error::NodeError;
pub use expanded::ExpandedEvents;
pub use filter::{ExecutionFilter, Selection, filter_pairs};
pub use flows::{CheckedFlow, PutError, PutFlow};
pub use followers::{FollowError, Follower, FollowerMessage};
pub use leased::LeaseSettings;
pub use notifier_thread::ShownTarget;
pub use operating::{DefinedForkRefusal, ForkRefusal, ResolvedStep, WantedFork};
pub use operator::Operator;
pub use permits::{NoWaitPermit, WaitPermit};
pub use pool_limits::PoolLimits;
pub use queries::{QueryError, QueryResult, StoredEvents, StoredExecution};
pub use queues::{BulkOutcome, ShownQueue};
pub use reasons::{FineReason, FineReasons, full_keys};
pub use redefine::{Redrive, WantedRedrive};
pub use schedules::{RunError, ScheduleError, Scheduled};
pub use stats::{
    Counts, DayCounts, FailureCounts, FailureKind, FlowCounts, LastDay, LastHour, Stats, StepFigures, Tally,
};
pub use token_keys::{discard as discard_token_keys, rotate as rotate_token_keys};
pub(crate) use token_keys::{read_keys, token_keys};
pub use views::{PutViewError, SavedView, ViewName};
pub use watchers::{Watch, Watchers};

use crate::flow_loading;
use crate::notify::Target;
use crate::programs::CommandSettings;
use crate::supported_resources::SupportedResources;
use crate::system::new_traceparent;
use owners::{OwnerDeps, Owners};
use permits::WaitPermits;
use starbridge_connector_http::HttpSettings;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Signal};
use starbridge_ports::{AuditEntry, Clock, Secrets, ShardSet, Store};
use starbridge_runtime as runtime;
use starbridge_runtime::{
    AdmissionHandle, AdmissionSettings, Command, FlowTable, ForkRequest, QueueCommand, QueueHandle, Reply, Report,
    ResourceMap, SecretUse, SignedCall, Snapshot, StartFailure, StartRequest, TokenError, TokenKeys, Vault,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};

/// What a node is made of, and its bounds.
pub struct NodeSettings {
    /// Where executions are kept, and what was appended is durable.
    pub store: Arc<dyn Store>,
    /// The same store for those who answer requests, where it is another handle: one that does not wait while the store is away.
    pub asked: Option<Arc<dyn Store>>,
    /// The resource map.
    pub resources: ResourceMap,
    /// The limits of data and definitions.
    pub limits: Limits,
    /// How many threads own executions.
    pub owners: usize,
    /// How many executions that only wait each owner keeps in memory.
    pub hot_executions: usize,
    /// How many bytes of data large executions may hold in memory at each owner before nothing large begins.
    pub hot_bytes: usize,
    /// How many calls each owner may have out at once.
    pub calls: usize,
    /// How many requests may wait for each owner before more are turned away.
    pub inbox: usize,
    /// How many requests may wait at a time, for tasks or for the end of an execution.
    pub waiters: usize,
    /// How many requests may follow histories at a time.
    pub followers: usize,
    /// Settings for calls of HTTP functions.
    pub http: HttpSettings,
    /// Settings for local programs; `None` if they may not be called.
    pub commands: Option<CommandSettings>,
    /// Connectors that exist only if they are configured.
    pub optional_connectors: crate::optional_connectors::OptionalConnectors,
    /// The targets of notifications about status changes.
    pub notifications: Vec<Target>,
    /// The source of secrets.
    pub secrets: Arc<dyn Secrets>,
    /// Which flows may use which secrets.
    pub secret_use: SecretUse,
    /// The keys of task tokens; the first one signs. Empty: the keys are in the store.
    pub token_keys: Vec<[u8; 32]>,
    /// Whether calls to `queue:NAME` become tasks for workers. This needs a node that runs all the time.
    pub worker_queues: bool,
    /// How admission selects among waiting executions.
    pub admission: AdmissionSettings,
    /// Set if executions are leased: the node then has only the executions it asks for, and only
    /// for a time.
    pub leased: Option<LeaseSettings>,
    /// The time of all threads; tests give one that they move.
    pub clock: Arc<dyn Clock>,
    /// Whether a start without a trace context gets a new one.
    pub begins_traces: bool,
}

/// A running node.
///
/// Start it with [`Node::start`], then call its methods from any thread; they reach the owner of the execution they
/// name. For its background work, spawn [`Node::keep_schedules`], [`Node::keep_bulk`], [`Node::clear_periodically`] and [`Node::keep_replies`] on a
/// runtime. Watch [`Node::ended`], and stop it with [`Node::drain`].
pub struct Node {
    store: Arc<dyn Store>,
    flows: FlowTable,
    /// Held while a definition or a view is stored.
    flow_puts: Mutex<()>,
    limits: Arc<Limits>,
    tokens: TokenKeys,
    owners: Owners,
    watchers: Watchers,
    waiters: WaitPermits,
    followers: WaitPermits,
    /// Limits how many histories are read at a time for followers.
    reads: Arc<Semaphore>,
    counters: Arc<Counters>,
    stats: Stats,
    queue_depths: queue_depths::QueueDepths,
    schedules: schedules::Schedules,
    bulk: bulk::Bulk,
    queues: QueueHandle,
    notifications: Option<notifier_thread::Notifications>,
    vault: Arc<Vault>,
    reach: SupportedResources,
    /// Decides when waiting executions may run, if this node has admission.
    admission: Option<AdmissionHandle>,
    clock: Arc<dyn Clock>,
    /// Whether it was noted that the node was told to stop.
    stopping: AtomicBool,
    begins_traces: bool,
}

/// The resources that a node can call.
fn reach(settings: &NodeSettings) -> SupportedResources {
    let mut reach = SupportedResources::of(settings.resources.clone()).guarded(settings.http.guard.clone());
    for (scheme, why) in settings.optional_connectors.unavailable() {
        reach = reach.without(scheme, why);
    }
    if !settings.worker_queues {
        reach = reach.without(
            "queue",
            "worker queues need a server: send to SQS (`sqs:QUEUE`) instead",
        );
    }
    if settings.commands.is_none() {
        reach = reach.without("cmd", "no folder for programs is configured (`commands.folder`)");
    }
    reach
}

/// Why a request reached no owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Too many requests are waiting: try again later.
    Busy,
    /// The node is stopping.
    Stopping,
}

impl From<NotTaken> for StartFailure {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Busy => Self::Busy,
            NotTaken::Stopping => Self::Stopping,
        }
    }
}

/// Records that a process begins, and returns what it takes up if the previous one did not end by
/// itself.
fn note_start(store: &dyn Store, now: Timestamp) -> Result<(), NodeError> {
    if let Some(executions) = runtime::note_start(store, now)? {
        tracing::info!(
            executions,
            "the process before did not come to its end by itself: what it was working on is taken up, and calls whose \
             answer is not known are sent again under the same keys"
        );
    }
    Ok(())
}

/// The secrets that flows may use.
fn vault_of(settings: &NodeSettings, tokens: &TokenKeys, flows: &FlowTable) -> Arc<Vault> {
    let (secrets, uses) = (settings.secrets.clone(), settings.secret_use.clone());
    let vault = Vault::new(secrets, uses, tokens.clone());
    for (name, flow) in flows.latest() {
        vault.know(&name, &flow);
    }
    Arc::new(vault)
}

/// The counts of a new process. A node that is there for a time has no day.
fn counted(settings: &NodeSettings) -> Result<Stats, NodeError> {
    let stats = Stats::new(settings.clock.now());
    if settings.leased.is_none() {
        stats.take_up(settings.store.as_ref())?;
    }
    Ok(stats)
}

impl Node {
    /// Starts a node. It resumes at once what the store says is awake.
    ///
    /// # Errors
    ///
    /// [`NodeError::Store`] if the store fails, [`NodeError::System`] if the system refuses something, such as a
    /// thread.
    pub fn start(settings: NodeSettings) -> Result<Self, NodeError> {
        let (store, clock) = (settings.store.clone(), settings.clock.clone());
        let asked = settings.asked.clone().unwrap_or_else(|| store.clone());
        let (reach, limits) = (reach(&settings), Arc::new(settings.limits.clone()));
        let begins_traces = settings.begins_traces;
        let flows = match settings.leased {
            None => flow_loading::load(store.as_ref(), &limits)?,
            // Flows are read when they are needed.
            Some(_) => flow_loading::shared(FlowTable::default(), store.clone(), limits.clone()),
        };
        if settings.leased.is_none() {
            note_start(store.as_ref(), clock.now())?;
        }
        let tokens = token_keys(store.as_ref(), &settings.token_keys)?;
        let watchers = Watchers::default();
        let (counters, stats) = (Arc::new(Counters::default()), counted(&settings)?);
        let shared = queue_thread::Shared::new();
        let notifications = notifier_thread::Notifications::prepare(&settings)?;
        let queue_handle = shared.queue_handle.clone();
        let vault = vault_of(&settings, &tokens, &flows);
        let waiters = WaitPermits::new(settings.waiters, "server.waiters");
        let followers = WaitPermits::new(settings.followers, "server.followers");
        let admission = admission_thread::SharedAdmission::new();
        // If several processes share a store, no process is always there to decide.
        let admission_handle = settings.leased.is_none().then(|| admission.handle.clone());
        let owners = Owners::start(
            shared,
            admission,
            &OwnerDeps {
                settings,
                flows: flows.clone(),
                limits: limits.clone(),
                tokens: tokens.clone(),
                watchers: watchers.clone(),
                counters: counters.clone(),
                stats: stats.clone(),
                notifications: notifications.clone(),
                vault: vault.clone(),
                admission: admission_handle.clone(),
            },
        )?;
        let node = Self {
            queue_depths: queue_depths::QueueDepths::default(),
            store: asked,
            flows,
            flow_puts: Mutex::new(()),
            limits,
            tokens,
            owners,
            watchers,
            waiters,
            followers,
            reads: Arc::new(Semaphore::new(followers::MAX_CONCURRENT_READS)),
            counters,
            stats,
            schedules: schedules::Schedules::default(),
            bulk: bulk::Bulk::default(),
            queues: queue_handle,
            notifications,
            vault,
            reach,
            admission: admission_handle,
            clock,
            stopping: AtomicBool::new(false),
            begins_traces,
        };
        node.take_up_schedules()?;
        Ok(node)
    }

    /// Starts an execution. With `wait`, the answer also gives its end.
    ///
    /// # Errors
    ///
    /// [`StartFailure`] if the start is refused, an execution with that name exists, or the node is busy or stopping.
    pub async fn begin(
        &self,
        request: impl Into<Box<StartRequest>>,
        wait: bool,
    ) -> Result<runtime::StartedExecution, StartFailure> {
        let mut request = request.into();
        if self.begins_traces && request.traceparent.is_none() {
            request.traceparent = Some(new_traceparent());
        }
        let (reply, answer) = oneshot::channel();
        let id = request.id.clone();
        let command = Command::Start { request, wait, reply };
        match id {
            Some(id) => self.owners.owner_of(&id, command).await?,
            None => self.owners.anyone(command).await?,
        }
        answer.await.unwrap_or(Err(StartFailure::Stopping))
    }

    /// Begins a fork.
    ///
    /// # Errors
    ///
    /// [`StartFailure`] if the fork is not possible, an execution with that name exists, or the node is busy or
    /// stopping.
    pub async fn fork(&self, request: ForkRequest) -> Result<runtime::StartedExecution, StartFailure> {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(request);
        self.owners.anyone(Command::Fork { request, reply }).await?;
        answer.await.unwrap_or(Err(StartFailure::Stopping))
    }

    /// Waits for an execution to end. If it has ended or does not exist, the receiver gets nothing.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn await_end(&self, execution: &Text) -> Result<oneshot::Receiver<Snapshot>, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let command = Command::AwaitEnd {
            execution: execution.clone(),
            reply,
        };
        self.owners.owner_of(execution, command).await?;
        Ok(answer)
    }

    /// Moves shards to one of the threads that own executions, by its number. Calls that are out may end until a time; those that
    /// have not ended are sent again, under the same keys. While a shard is with neither thread, requests for it wait, at most
    /// 200 ms, and are turned away after that as by a busy node.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is stopping, or has no such thread.
    pub async fn move_shards(&self, shards: &ShardSet, owner: usize, until: Timestamp) -> Result<(), NotTaken> {
        self.owners.move_shards(shards, owner, until).await
    }

    /// The call that a task token was signed for, whatever became of its task.
    ///
    /// # Errors
    ///
    /// [`TokenError`] if no key of this node signed it.
    pub fn verify(&self, token: &str) -> Result<SignedCall, TokenError> {
        self.tokens.verify(token)
    }

    /// A key for this purpose, derived from the one that signs task tokens. It stays the same until
    /// that key changes.
    pub fn key_for(&self, purpose: &str) -> [u8; 32] {
        self.tokens.derived(purpose)
    }

    /// Hands in the report of a call. The receiver gets what became of it, once that is durable.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn report(&self, call: SignedCall, report: Report) -> Result<oneshot::Receiver<Reply>, NotTaken> {
        let SignedCall { execution, call } = call;
        let (reply, answer) = oneshot::channel();
        let mut report = report;
        // Heartbeats for leases are not events: the queues know which worker holds the task.
        if report.is_heartbeat() && self.heartbeat((execution.clone(), call)).await {
            match report.after_heartbeat() {
                Some(log) => report = log,
                None => {
                    let _ = reply.send(Reply::Taken);
                    return Ok(answer);
                }
            }
        }
        let command = Command::Report {
            execution: execution.clone(),
            call,
            report,
            audit: None,
            reply,
        };
        self.owners.owner_of(&execution, command).await?;
        Ok(answer)
    }

    /// Reports a call in the name of an operator, without its token, and waits until that is durable or refused.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn report_by_hand(
        &self,
        execution: &Text,
        call: EventId,
        report: Report,
        audit: AuditEntry,
    ) -> Result<Reply, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Report {
            execution: execution.clone(),
            call,
            report,
            audit: Some(Box::new(audit)),
            reply,
        };
        self.owners.owner_of(execution, command).await?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }

    /// Gives an operator's signal to an execution, and waits until it is durable or refused.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn signal(&self, execution: &Text, signal: Signal) -> Result<Reply, NotTaken> {
        self.signal_audited(execution, signal, None).await
    }

    /// Gives an operator's signal to an execution, and waits until it is durable or refused. If it
    /// is taken, `audit` is added to the audit list.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn signal_audited(
        &self,
        execution: &Text,
        signal: Signal,
        audit: Option<AuditEntry>,
    ) -> Result<Reply, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Signal {
            execution: execution.clone(),
            signal: Box::new(signal),
            audit: audit.map(Box::new),
            reply: Some(reply),
        };
        self.owners.owner_of(execution, command).await?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }

    /// Sends no more calls, and waits at most `patience` for those in flight; requests are still answered. Calls that are kept
    /// back are sent at the next start: [`Node::drain`] has to come next.
    ///
    /// # Errors
    ///
    /// [`NodeError`] if the store fails.
    pub async fn end_calls(&self, patience: Duration) -> Result<(), NodeError> {
        let until = self.now().plus(patience.into());
        let ((), noted) = tokio::join!(self.owners.end_calls(until), self.note_stopping());
        noted
    }

    /// Notes once that the node was told to stop: a kill from now on says nothing about an execution. A node that failed ends
    /// by itself.
    async fn note_stopping(&self) -> Result<(), NodeError> {
        if self.ended().borrow().is_some() || self.stopping.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let store = self.store.clone();
        let noted = tokio::task::spawn_blocking(move || runtime::note_stopping(store.as_ref()));
        match noted.await {
            Ok(noted) => Ok(noted?),
            // The process ends.
            Err(_) => Ok(()),
        }
    }

    /// Takes no more requests, waits at most `patience` for calls in flight, and stops. Unfinished
    /// work goes on at the next start.
    ///
    /// # Errors
    ///
    /// [`NodeError`] if the node has failed.
    pub async fn drain(&self, patience: Duration) -> Result<(), NodeError> {
        let until = self.now().plus(patience.into());
        let drained = async {
            self.queues.send(QueueCommand::Drain);
            self.owners.drain(until, &self.queues).await?;
            if let Err(error) = self.keep_stats().await {
                tracing::warn!(%error, "the counts of the last day can't be kept");
            }
            Ok::<(), NodeError>(())
        };
        // A disk that does not respond must not hold up the drain.
        let (drained, noted) = tokio::join!(drained, self.note_stopping());
        drained?;
        noted?;
        self.owners.leave(self.store.as_ref());
        Ok(runtime::note_end(self.store.as_ref())?)
    }

    /// Whether the store is being written now. If that takes long, the disk does not respond.
    pub fn is_flushing(&self) -> bool {
        self.owners.is_flushing()
    }

    /// Gets a value when the node has ended: the reason, if it failed.
    pub fn ended(&self) -> watch::Receiver<Option<Result<(), NodeError>>> {
        self.owners.ended()
    }

    /// The store that the node was started with.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether the store is away, and comes back by itself: until then requests are better turned away.
    pub fn is_away(&self) -> bool {
        self.store.is_away()
    }

    /// The flows that can be started.
    pub fn flows(&self) -> &FlowTable {
        &self.flows
    }

    /// The limits of data and definitions.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The counters of the node.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What happened in the last hour.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The watchers of histories.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// The time now, on a clock that is never set.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
