//! The engine: drives a shard in real time, with a store and connectors.

mod answers;
mod aside;
mod commands;
mod dispatch;
mod heartbeats;
mod loading;
mod resting;
mod sleepers;
pub(crate) mod writer;

pub use commands::{Command, Reply, Report, Snapshot, Start, StartFailure};
pub use resting::SuspendedExecution;
pub use writer::Writer;

use crate::alone::Alone;
use crate::queues::QueueHandle;
use crate::secrets::Vault;
use crate::shard::{Outgoing, Shard, Step};
use crate::tokens::TokenKeys;
use answers::Answers;
use dispatch::{Calls, Done};
use heartbeats::Heartbeats;
use resting::{LeasedMode, Rest};
use sleepers::Sleepers;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::Text;
use starbridge_machine::Signal;
use starbridge_ports::{Clock, Connector, ExecutionLeases, History, Refusal, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use writer::Writing;

/// Connectors by the word before the colon of what they can call.
pub type Connectors = BTreeMap<&'static str, Arc<dyn Connector>>;

/// What an engine meets the world with.
#[derive(Clone)]
pub struct EngineDeps {
    /// Where histories are kept.
    pub history: Arc<dyn History>,
    /// How calls leave.
    pub connectors: Connectors,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What gives secrets to calls, and takes them out of what comes back.
    pub vault: Arc<Vault>,
    /// What tokens are signed with.
    pub tokens: TokenKeys,
    /// Where tasks for workers go, if there are queues.
    pub queues: Option<QueueHandle>,
    /// Where executions are given to an engine for a time only, if they are: it then takes up none that nobody asks for.
    pub leases: Option<Arc<dyn ExecutionLeases>>,
}

/// How an engine goes about it.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Waits and retry delays are skipped: while no call is out, time jumps to the next timer.
    pub fast_forward: bool,
    /// Executions that only wait are left to the store beyond so many.
    pub hot_executions: usize,
    /// Calls that are out at once.
    pub calls: usize,
    /// Which executions are this engine's: those whose shard, divided by the second number, leaves the first.
    pub share: (u8, u8),
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            fast_forward: false,
            hot_executions: 10_000,
            calls: 10_000,
            share: (0, 1),
        }
    }
}

/// Sees everything that leaves.
type Observer = Box<dyn FnMut(&Shard, &Outgoing) + Send>;

/// Drives a shard in real time.
pub struct Engine {
    shard: Shard,
    /// How suspects are taken up.
    alone: Arc<Alone>,
    world: EngineDeps,
    settings: EngineSettings,
    /// How far time was jumped ahead, in milliseconds.
    ahead: u64,
    observer: Observer,
    writing: Writing,
    calls: Calls,
    heartbeats: Heartbeats,
    sleepers: Sleepers,
    visiting: Option<LeasedMode>,
    resting: Option<Rest>,
    /// What is decided is made durable, and nothing more.
    still: bool,
    answers: Answers,
    done: (mpsc::UnboundedSender<Done>, mpsc::UnboundedReceiver<Done>),
    commands: mpsc::Receiver<Command>,
    /// No more commands are taken, and from then on calls in flight are given so long.
    draining: Option<Timestamp>,
}

/// How many answers are taken before their turns are appended together.
const BATCH: usize = 256;
/// Turns that may wait for the writer before no more commands are taken: who asks is then turned away, and nothing grows.
const BACKLOG: usize = 4096;
/// And so many bytes of them.
const BACKLOG_BYTES: usize = 32 << 20;

impl Engine {
    /// An engine over a shard that appends by itself. `observer` sees everything that leaves, in order, after it is durable.
    pub fn new(
        mut shard: Shard,
        world: EngineDeps,
        settings: EngineSettings,
        commands: mpsc::Receiver<Command>,
        observer: impl FnMut(&Shard, &Outgoing) + Send + 'static,
    ) -> Self {
        if world.leases.is_some() {
            shard.leave_heartbeats();
        }
        let alone = Arc::new(Alone::of(world.history.clone()));
        shard.go_alone(alone.clone());
        Self {
            shard,
            alone,
            writing: Writing::here(world.history.clone()),
            visiting: world.leases.clone().map(LeasedMode::new),
            resting: None,
            still: false,
            world,
            settings,
            ahead: 0,
            observer: Box::new(observer),
            calls: Calls::new(settings.calls),
            heartbeats: Heartbeats::default(),
            sleepers: Sleepers::default(),
            answers: Answers::default(),
            done: mpsc::unbounded_channel(),
            commands,
            draining: None,
        }
    }

    /// Lets a writer append, so that deciding goes on meanwhile and several engines share a flush.
    #[must_use]
    pub fn writing_through(mut self, writer: &Writer) -> Self {
        self.writing = Writing::through(writer);
        self.alone = writer.alone();
        self.shard.go_alone(self.alone.clone());
        self
    }

    /// The shard it drives.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The same, to start executions.
    pub fn shard_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// The time as executions see it.
    pub fn now(&self) -> Timestamp {
        self.world.clock.now().plus_millis(self.ahead)
    }

    /// Runs until an execution and all its children have ended and nothing of them is out.
    pub async fn run_until_ended(&mut self, execution: &str) -> Result<(), StoreError> {
        loop {
            self.settle()?;
            if self.is_over(execution) || self.draining.is_some() {
                return Ok(());
            }
            self.wait().await?;
            self.fire_due()?;
        }
    }

    fn is_over(&self, execution: &str) -> bool {
        let ended = |id: &Text| self.shard.state(id).is_none_or(|state| state.status().is_ended());
        ended(&Text::from(execution)) && self.shard.executions().all(ended)
    }

    /// Serves until it is drained. What the store says is awake goes on first.
    pub async fn serve(mut self) -> Result<(), StoreError> {
        if self.visiting.is_none() {
            self.take_up()?;
        }
        loop {
            self.settle()?;
            if self.is_drained() {
                return Ok(());
            }
            self.leave_idle();
            if self.come_to_rest()? {
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

    /// Whether what goes on by itself is left to whoever goes on from the store: no child begins, no turn that was cut is gone on
    /// with, no message is taken. What comes from outside is still decided and made durable.
    fn decides_nothing_new(&self) -> bool {
        self.draining.is_some() || self.hands_over()
    }

    /// Has appended what was decided and carries out what follows, until nothing is left that can be done now.
    fn settle(&mut self) -> Result<(), StoreError> {
        loop {
            let now = self.now();
            let step = match self.decides_nothing_new() {
                true if self.shard.has_batch() => Step::Decided,
                true => {
                    self.shard.release_what_waits_for_nothing();
                    Step::Idle
                }
                false => self.shard.pump(now),
            };
            match step {
                Step::Missing(execution) => self.fetch(&execution)?,
                Step::Decided => {
                    if !self.writing.has_room() {
                        return Ok(());
                    }
                    let batch = self.shard.take_batch();
                    if let Some(refusals) = self.writing.write(batch)? {
                        self.take_committed(&refusals)?;
                    }
                }
                Step::Idle if !self.carry_out_all() => return Ok(()),
                Step::Idle => continue,
            }
            self.carry_out_all();
        }
    }

    /// Carries out what may leave. Answers whether there was anything.
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

    /// Waits for a flush, an answer, a command or a timer, whichever is first, and takes it.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let clock = self.world.clock.clone();
        let set = clock.set();
        let now = self.now();
        let next = match self.draining {
            Some(end) => Some(end),
            None => {
                let due = self.shard.next_wakeup().filter(|_| !self.hands_over());
                let aside = self.shard.next_aside().filter(|_| !self.hands_over());
                let timers = [
                    due,
                    aside,
                    self.heartbeats.next(),
                    self.sleepers.next(),
                    self.rests_at(),
                ];
                timers.into_iter().flatten().min()
            }
        };
        if self.settings.fast_forward
            && self.calls.is_empty()
            && !self.waits_for_callback()
            && let Some(next) = next
        {
            self.ahead += next.millis_since(now);
            self.take_silent();
            return Ok(());
        }
        let pause = next.map_or(Duration::from_secs(3600), |next| {
            Duration::from_millis(next.millis_since(now))
        });
        let takes_commands =
            self.draining.is_none() && self.shard.backlog() < BACKLOG && self.shard.backlog_bytes() < BACKLOG_BYTES;
        tokio::select! {
            biased;
            written = self.writing.written() => self.take_written(written)?,
            Some(done) = self.done.1.recv() => self.take_done(done),
            Some(command) = self.commands.recv(), if takes_commands => self.take_command(command)?,
            () = tokio::time::sleep(pause) => self.take_silent(),
            () = set => self.take_silent(),
        }
        // What else has come meanwhile is decided in the same breath, and flushed together.
        for _ in 0..BATCH {
            if let Some(written) = self.writing.try_written() {
                self.take_written(written)?;
            } else if let Ok(done) = self.done.1.try_recv() {
                self.take_done(done);
            } else if takes_commands
                && self.draining.is_none()
                && let Ok(command) = self.commands.try_recv()
            {
                self.take_command(command)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn take_written(&mut self, written: writer::Written) -> Result<(), StoreError> {
        self.take_committed(&written?)?;
        self.carry_out_all();
        Ok(())
    }

    /// A history that went on elsewhere means that somebody else owns the store: whoever lost it stops. Where executions are
    /// given out one by one, it means that somebody else has this one.
    fn take_committed(&mut self, refusals: &[(usize, Refusal)]) -> Result<(), StoreError> {
        self.shard.committed(refusals);
        let lost = self.shard.take_lost();
        for execution in &lost {
            if self.visiting.is_none() {
                tracing::error!(%execution, "somebody else has appended to a history");
                return Err(StoreError::Conflict);
            }
            self.lose(execution);
        }
        Ok(())
    }

    fn waits_for_callback(&self) -> bool {
        self.shard.executions().any(|id| {
            let (Some(state), Some(flow)) = (self.shard.state(id), self.shard.flow(id)) else {
                return false;
            };
            state.calls_in_flight().any(|call| {
                state
                    .call_to_send(flow, call)
                    .is_some_and(|call| call.pattern == starbridge_fdl::graph::Pattern::WaitForCallback)
            })
        })
    }

    fn take_done(&mut self, done: Done) {
        let now = self.now();
        self.calls.over(&done.execution, done.call);
        let outcome = self.world.vault.redacted_outcome(done.outcome);
        let signal = self.signal_of(&done.execution, done.call, outcome);
        // A result nobody waits for any more was noted by the machine, or the execution has ended.
        let _ = self.shard.signal(&done.execution, signal, now);
        self.send_waiting();
    }

    /// Fires what is due. Who is coming to an end leaves it to the next start.
    fn fire_due(&mut self) -> Result<(), StoreError> {
        if self.draining.is_some() || self.hands_over() {
            return Ok(());
        }
        let now = self.now();
        self.see_to_aside(now)?;
        self.look_for_mail(now)?;
        self.wake_sleepers(now)?;
        for _ in 0..BATCH {
            if !self.shard.fire_next(now) {
                break;
            }
        }
        Ok(())
    }

    /// Calls whose worker fell silent.
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
