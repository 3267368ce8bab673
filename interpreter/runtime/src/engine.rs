//! The engine: drives a shard in real time, with a store and connectors. [`Engine`] says in which order to call it.

mod admitting;
mod commands;
mod crowded;
mod dispatch;
mod heartbeats;
mod holders;
mod loading;
mod moving;
mod postponed;
mod quiescence;
mod replies;
mod report_parts;
mod room;
#[cfg(test)]
mod scripted_store;
mod set_aside;
mod sleepers;
#[cfg(test)]
mod tests;
mod waiters;
pub(crate) mod writer;

pub use commands::{Command, Report};
pub use quiescence::SuspendedExecution;
pub use replies::{Reply, Snapshot, StartFailure, StartedExecution};
pub use writer::Writer;

use crate::queues::QueueHandle;
use crate::secrets::Vault;
use crate::shard::{Outgoing, PumpResult, Shard};
use crate::suspect_lock::SuspectLock;
use crate::tokens::TokenKeys;
use admitting::AdmissionHere;
use crowded::Crowded;
use dispatch::{Calls, Done, LastCalls};
use heartbeats::Heartbeats;
use moving::LeavingShards;
use postponed::Postponed;
use quiescence::{LeasedMode, Quiesce};
use sleepers::Sleepers;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::Signal;
use starbridge_ports::{Clock, Connector, Epochs, ExecutionLeases, History, Refusal, ShardSet, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use waiters::Waiters;
use writer::Writing;

/// Connectors, each by the word before the colon of the resources it can call.
pub type Connectors = BTreeMap<&'static str, Arc<dyn Connector>>;

/// What an engine needs from outside.
#[derive(Clone)]
pub struct EngineDeps {
    /// The store of histories.
    pub history: Arc<dyn History>,
    /// The connectors that send calls.
    pub connectors: Connectors,
    /// The clock, which gives each turn its time.
    pub clock: Arc<dyn Clock>,
    /// Gives secrets to calls, and redacts them in answers.
    pub vault: Arc<Vault>,
    /// The keys that sign task tokens.
    pub tokens: TokenKeys,
    /// The worker queues, if there are any.
    pub queues: Option<QueueHandle>,
    /// The leases of executions, if several processes share the store. The engine then takes up only executions that
    /// somebody asks for.
    pub leases: Option<Arc<dyn ExecutionLeases>>,
}

/// Bounds of an engine: how much it holds, and how much at once.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Skip waits and retry delays: while no call is out, time jumps to the next timer.
    pub fast_forward: bool,
    /// How many executions that only wait stay in memory. The store has the others.
    pub hot_executions: usize,
    /// How many bytes of data, as compact JSON, large executions may hold in memory. Beyond that those that only wait are left to
    /// the store. If that is not enough, nothing large begins or goes on again.
    pub hot_bytes: usize,
    /// The largest number of calls that are out at once.
    pub calls: usize,
    /// How many answers and commands are taken before their turns are appended together. If a flush
    /// makes turns durable, many share it. If nothing is flushed, the first caller would wait for
    /// the later ones.
    pub together: usize,
    /// The shards whose executions belong to this engine.
    pub shards: ShardSet,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            fast_forward: false,
            hot_executions: 10_000,
            hot_bytes: 256 << 20,
            calls: 10_000,
            together: BATCH,
            shards: ShardSet::ALL,
        }
    }
}

/// Called with everything that leaves.
type Observer = Box<dyn FnMut(&Shard, &Outgoing) + Send>;

/// Drives a shard in real time.
///
/// Call it in this order:
///
/// 1. [`Engine::new`], with a [`Shard`] and the receiving end of a channel of [`Command`]s.
/// 2. [`Engine::writing_through`], if several engines share a store; [`Engine::appending_under`], if their shards were claimed.
/// 3. [`Engine::take_up`] or [`Engine::take_up_only`], if a single run should go on with executions of the store.
/// 4. [`Engine::serve`], which takes commands until one of them is [`Command::Drain`]; or, for a single run, start an
///    execution with [`Engine::shard_mut`] and call [`Engine::run_until_ended`].
///
/// While it serves, every request to it is a [`Command`]. If a method fails, drop the engine and
/// start again from the store: a change that was not durable never happened.
pub struct Engine {
    shard: Shard,
    /// Runs suspects one at a time.
    alone: Arc<SuspectLock>,
    deps: EngineDeps,
    settings: EngineSettings,
    /// How far time has jumped ahead.
    ahead: Millis,
    observer: Observer,
    writing: Writing,
    calls: Calls,
    heartbeats: Heartbeats,
    sleepers: Sleepers,
    leased: Option<LeasedMode>,
    /// Admission for this engine alone, if it has one.
    admission: Option<AdmissionHere>,
    quiescence: Option<Quiesce>,
    /// Set when the engine only makes durable what it decides.
    paused: bool,
    waiters: Waiters,
    done: (mpsc::UnboundedSender<Done>, mpsc::UnboundedReceiver<Done>),
    commands: mpsc::Receiver<Command>,
    postponed: Postponed,
    crowded: Crowded,
    /// Set when large executions are held off where there is no room for them.
    holds_off: bool,
    /// Executions that are awake in the store and not loaded yet.
    to_take_up: VecDeque<Text>,
    /// The shards of whose executions it sends no more calls: they are left to the next owner.
    keeps_calls_of: ShardSet,
    /// The receivers to tell when no call is out any more.
    last_calls: Vec<LastCalls>,
    /// Shards that are given up once everything that was decided for them is durable.
    leaving: Vec<LeavingShards>,
    /// Set when the engine takes no more commands: the time until which it waits for calls in flight.
    draining: Option<Timestamp>,
}

/// How many answers are taken before their turns are appended together, and how many timers are fired at a time.
const BATCH: usize = 256;
/// How many turns may wait for the writer. Beyond that the engine takes no more commands and turns
/// their senders away.
const MAX_BACKLOG: usize = 4096;
/// The largest number of bytes of these turns.
const BACKLOG_BYTES: usize = 32 << 20;

impl Engine {
    /// An engine over a shard, which appends by itself. `observer` is called with everything that leaves, in order,
    /// after it is durable. Commands arrive on `commands`.
    pub fn new(
        mut shard: Shard,
        deps: EngineDeps,
        settings: EngineSettings,
        commands: mpsc::Receiver<Command>,
        observer: impl FnMut(&Shard, &Outgoing) + Send + 'static,
    ) -> Self {
        if deps.leases.is_some() {
            shard.leave_heartbeats();
        }
        shard.own(settings.shards);
        let alone = Arc::new(SuspectLock::of(deps.history.clone()));
        shard.go_alone(alone.clone());
        Self {
            shard,
            alone,
            writing: Writing::here(deps.history.clone()),
            leased: deps.leases.clone().map(LeasedMode::new),
            admission: None,
            quiescence: None,
            paused: false,
            deps,
            settings,
            ahead: Millis::ZERO,
            observer: Box::new(observer),
            calls: Calls::new(settings.calls),
            heartbeats: Heartbeats::default(),
            sleepers: Sleepers::default(),
            waiters: Waiters::default(),
            done: mpsc::unbounded_channel(),
            commands,
            postponed: Postponed::default(),
            crowded: Crowded::default(),
            holds_off: false,
            to_take_up: VecDeque::new(),
            keeps_calls_of: ShardSet::NONE,
            last_calls: Vec::new(),
            leaving: Vec::new(),
            draining: None,
        }
    }

    /// Lets a writer append. The engine then goes on deciding while a batch is being flushed, and
    /// several engines share a flush.
    #[must_use]
    pub fn writing_through(mut self, writer: &Writer) -> Self {
        self.writing = Writing::through(writer);
        self.alone = writer.alone();
        self.shard.go_alone(self.alone.clone());
        self
    }

    /// Appends for executions of claimed shards under these epochs.
    #[must_use]
    pub fn appending_under(mut self, claimed: &Epochs) -> Self {
        self.shard.append_under(claimed);
        self
    }

    /// The shard that this engine drives.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Mutable access to the shard, to start executions before the engine runs.
    pub fn shard_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// The time as executions see it: the clock's time plus what `fast_forward` skipped.
    pub fn now(&self) -> Timestamp {
        self.deps.clock.now().plus(self.ahead)
    }

    /// Runs until an execution and all its children have ended and none of their calls is out.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails; [`StoreError::Conflict`] if another process appended to one of the
    /// histories.
    pub async fn run_until_ended(&mut self, execution: &str) -> Result<(), StoreError> {
        loop {
            self.run_until_idle()?;
            if self.is_over(execution) || self.draining.is_some() {
                return Ok(());
            }
            self.wait().await?;
            self.fire_due()?;
        }
    }

    fn is_over(&self, execution: &str) -> bool {
        let ended = |id: &Text| self.shard.state(id).is_none_or(|state| state.status().is_ended());
        ended(&Text::from(execution)) && self.shard.executions().all(ended) && !self.shard.awaits_admission()
    }

    /// Loads what is awake in the store (with leases, only what somebody asks for), then runs until it is drained.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails; [`StoreError::Conflict`] if another process appended to one of the
    /// histories.
    pub async fn serve(mut self) -> Result<(), StoreError> {
        if self.leased.is_none() {
            self.holds_off = !self.settings.fast_forward;
            self.begin_to_take_up()?;
        }
        loop {
            self.take_up_some()?;
            self.run_until_idle()?;
            if self.is_drained() {
                return Ok(());
            }
            self.tell_of_last_calls();
            self.tell_of_left_shards();
            self.leave_idle();
            if self.quiesce()? || self.let_in_held_off()? {
                continue;
            }
            self.wait().await?;
            self.fire_due()?;
        }
    }

    fn is_drained(&self) -> bool {
        let patience = |deadline| self.calls.is_empty() || self.now() >= deadline;
        self.draining.is_some_and(patience) && !self.writing.is_busy() && !self.shard.has_batch()
    }

    /// Whether the engine leaves work that would go on by itself to the next start: no child
    /// begins, no cut turn is continued, no message is taken. Input from outside is still decided
    /// and made durable.
    fn decides_nothing_new(&self) -> bool {
        self.draining.is_some() || self.is_handing_over()
    }

    /// Appends what was decided and carries out its consequences, until nothing more can be done
    /// now.
    fn run_until_idle(&mut self) -> Result<(), StoreError> {
        loop {
            let now = self.now();
            let step = match self.decides_nothing_new() {
                true if self.shard.has_batch() => PumpResult::Decided,
                true => {
                    self.shard.release_what_waits_for_nothing();
                    PumpResult::Idle
                }
                false => self.shard.pump(now),
            };
            match step {
                PumpResult::Missing(execution) => {
                    self.make_room();
                    self.fetch_wanted(&execution)?;
                }
                PumpResult::Decided => {
                    if !self.writing.has_room() {
                        return Ok(());
                    }
                    let batch = self.shard.take_batch();
                    if let Some(refusals) = self.writing.write(batch)? {
                        self.take_committed(&refusals)?;
                    }
                    self.take_commands_between_batches()?;
                }
                PumpResult::Idle if !self.carry_out_all() && !self.admit_here()? => return Ok(()),
                PumpResult::Idle => continue,
            }
            self.carry_out_all();
        }
    }

    /// Takes commands after a batch has left. Executions can give each other to do without end, and then the engine
    /// never waits for anybody outside.
    fn take_commands_between_batches(&mut self) -> Result<(), StoreError> {
        for _ in 0..self.settings.together {
            if self.draining.is_some() || self.shard.backlog_bytes() >= BACKLOG_BYTES {
                break;
            }
            match self.commands.try_recv() {
                Ok(command) => self.take_command(command)?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Carries out what may leave. Returns whether there was anything.
    fn carry_out_all(&mut self) -> bool {
        self.give_up_panicked();
        let outgoing = self.shard.take_outgoing();
        let any = !outgoing.is_empty();
        for outgoing in outgoing {
            (self.observer)(&self.shard, &outgoing);
            self.carry_out(outgoing);
        }
        any
    }

    /// Waits for a flush, an answer, a command or a timer, whichever comes first, and handles it.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let clock = self.deps.clock.clone();
        let set = clock.set();
        let now = self.now();
        let next = match self.draining {
            Some(end) => Some(end),
            None => {
                let due = self.shard.next_wakeup().filter(|_| !self.is_handing_over());
                let aside = self.shard.next_aside().filter(|_| !self.is_handing_over());
                let timers = [
                    due,
                    aside,
                    self.heartbeats.next(),
                    self.sleepers.next(),
                    self.quiesces_at(),
                    self.last_calls.iter().map(|last| last.until).min(),
                ];
                timers.into_iter().flatten().min()
            }
        };
        if self.settings.fast_forward
            && self.calls.is_empty()
            && self.to_take_up.is_empty()
            && !self.waits_for_callback()
            && let Some(next) = next
        {
            self.ahead = self.ahead.saturating_add(next.since(now));
            self.take_silent();
            return Ok(());
        }
        let pause = next.map_or(Duration::from_secs(3600), |next| next.since(now).into());
        let takes_commands =
            self.draining.is_none() && self.shard.backlog() < MAX_BACKLOG && self.shard.backlog_bytes() < BACKLOG_BYTES;
        tokio::select! {
            biased;
            written = self.writing.written() => self.take_written(written)?,
            Some(done) = self.done.1.recv() => self.take_done(done),
            Some(command) = self.commands.recv(), if takes_commands => self.take_command(command)?,
            () = std::future::ready(()), if !self.postponed.is_empty() || !self.to_take_up.is_empty() => {}
            () = tokio::time::sleep(pause) => self.take_silent(),
            () = set => self.take_silent(),
        }
        // Everything else that has arrived by now is decided in the same round, so that one flush
        // makes all of it durable.
        for _ in 0..self.settings.together {
            if let Some(written) = self.writing.try_written() {
                self.take_written(written)?;
            } else if let Ok(done) = self.done.1.try_recv() {
                self.take_done(done);
            } else if takes_commands
                && self.draining.is_none()
                && self.shard.backlog_bytes() < BACKLOG_BYTES
                && let Ok(command) = self.commands.try_recv()
            {
                self.take_command(command)?;
            } else {
                break;
            }
        }
        self.take_postponed()
    }

    fn take_written(&mut self, written: writer::Written) -> Result<(), StoreError> {
        self.take_committed(&written?)?;
        self.carry_out_all();
        Ok(())
    }

    /// Handles the end of an append. If another owner has a shard, this engine drops it. If another process extended a history, it
    /// owns the store, and this engine stops. With leases, the other process has only this execution.
    fn take_committed(&mut self, refusals: &[(usize, Refusal)]) -> Result<(), StoreError> {
        self.shard.committed(refusals);
        self.drop_fenced();
        let lost = self.shard.take_lost();
        for execution in &lost {
            if self.leased.is_none() {
                tracing::error!(%execution, "somebody else has appended to a history");
                return Err(StoreError::Conflict);
            }
            self.lose(execution);
        }
        self.take_crowded()
    }

    fn waits_for_callback(&self) -> bool {
        self.shard.executions().any(|id| {
            let (Some(state), Some(flow)) = (self.shard.state(id), self.shard.flow(id)) else {
                return false;
            };
            state.calls_in_flight().any(|call| {
                state
                    .call_to_send(flow, call)
                    .is_some_and(|call| call.pattern == starbridge_flow::graph::Pattern::WaitForCallback)
            })
        })
    }

    /// A log with secrets redacted.
    fn redacted_log(&self, log: String) -> String {
        self.deps.vault.redacted_log(log)
    }

    fn take_done(&mut self, done: Done) {
        let now = self.now();
        self.calls.over(&done.execution, done.call);
        let outcome = self.deps.vault.redacted_outcome(done.outcome);
        let signal = self.signal_of(&done.execution, done.call, outcome);
        // If the machine rejects it, the call or the execution is over. The machine has noted a late result itself.
        let log = done.log.map(|log| self.redacted_log(log));
        let _ = self.shard.signal_reported(&done.execution, signal, (log, None), now);
        self.send_waiting();
    }

    /// Fires the timers that are due. While the engine drains, it leaves them to the next start.
    fn fire_due(&mut self) -> Result<(), StoreError> {
        if self.draining.is_some() || self.is_handing_over() {
            return Ok(());
        }
        let now = self.now();
        self.see_to_aside(now)?;
        self.poll_messages(now)?;
        self.wake_sleepers(now)?;
        self.fire_timers(now);
        Ok(())
    }

    fn fire_timers(&mut self, now: Timestamp) {
        for _ in 0..BATCH {
            if self.shard.backlog_bytes() >= BACKLOG_BYTES || !self.shard.fire_next(now) {
                break;
            }
        }
    }

    /// Handles calls whose worker missed a heartbeat.
    fn take_silent(&mut self) {
        let now = self.now();
        for (execution, call) in self.heartbeats.silent(now) {
            if self.was_heard_elsewhere(&execution, call, now) {
                continue;
            }
            let _ = self.shard.signal(&execution, Signal::HeartbeatMissed { call }, now);
        }
    }
}
