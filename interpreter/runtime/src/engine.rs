//! The engine: drives a shard in real time, with a store and connectors.

mod dispatch;
mod heartbeats;

use crate::shard::{Outgoing, Shard, Step};
use crate::tokens::TokenKeys;
use heartbeats::Heartbeats;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Text, Value};
use starbridge_machine::{EventId, Rejection, Signal};
use starbridge_ports::{Clock, Connector, History, Outcome, Secrets, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// Connectors by the word before the colon of what they can call.
pub type Connectors = BTreeMap<&'static str, Arc<dyn Connector>>;

/// What an engine meets the world with.
pub struct World {
    /// Where histories are kept.
    pub history: Arc<dyn History>,
    /// How calls leave.
    pub connectors: Connectors,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What secrets are.
    pub secrets: Arc<dyn Secrets>,
    /// What tokens are signed with.
    pub tokens: TokenKeys,
}

/// How an engine goes about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineSettings {
    /// Waits and retry delays are skipped: while no call is out, time jumps to the next timer.
    pub fast_forward: bool,
}

/// What somebody asks of a running engine.
#[derive(Debug)]
pub enum Command {
    /// A report with a task token.
    Report {
        /// The token.
        token: String,
        /// What it reports.
        report: Report,
        /// Who is told what became of it.
        reply: oneshot::Sender<Reply>,
    },
    /// An execution is to be stopped.
    Stop {
        /// The execution.
        execution: Text,
        /// Why.
        cause: String,
        /// Whether what was done is undone.
        rollback: bool,
    },
}

/// What a callback reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The task succeeded with this output.
    Succeed(Object),
    /// It failed.
    Fail {
        /// The error's name.
        error: String,
        /// Its cause.
        cause: String,
    },
    /// It is still being worked on.
    Heartbeat,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It counts, and stands in the history.
    Taken,
    /// Another report came first.
    AlreadyCompleted,
    /// It is for a call that was given up.
    TimedOut,
    /// The token is not ours.
    InvalidToken,
}

/// Sees everything that leaves.
type Observer = Box<dyn FnMut(&Shard, &Outgoing) + Send>;

struct Done {
    execution: Text,
    call: EventId,
    outcome: Outcome,
}

/// Drives a shard in real time.
pub struct Engine {
    shard: Shard,
    world: World,
    settings: EngineSettings,
    /// How far time was jumped ahead, in milliseconds.
    ahead: u64,
    observer: Observer,
    out: BTreeMap<(Text, EventId), AbortHandle>,
    heartbeats: Heartbeats,
    done: (mpsc::UnboundedSender<Done>, mpsc::UnboundedReceiver<Done>),
    commands: mpsc::Receiver<Command>,
}

/// How many answers are taken before their turns are appended together.
const BATCH: usize = 256;

impl Engine {
    /// An engine over a shard. `observer` sees everything that leaves, in order, after it is durable.
    pub fn new(
        shard: Shard,
        world: World,
        settings: EngineSettings,
        commands: mpsc::Receiver<Command>,
        observer: impl FnMut(&Shard, &Outgoing) + Send + 'static,
    ) -> Self {
        Self {
            shard,
            world,
            settings,
            ahead: 0,
            observer: Box::new(observer),
            out: BTreeMap::new(),
            heartbeats: Heartbeats::default(),
            done: mpsc::unbounded_channel(),
            commands,
        }
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
            if self.is_over(execution) {
                return Ok(());
            }
            self.wait().await;
            let now = self.now();
            while self.shard.fire_next(now) {}
        }
    }

    fn is_over(&self, execution: &str) -> bool {
        let ended = |id: &Text| self.shard.state(id).is_none_or(|state| state.status().is_ended());
        ended(&Text::from(execution)) && self.shard.executions().all(ended)
    }

    /// Appends what was decided and carries out what follows, until nothing is left to decide.
    fn settle(&mut self) -> Result<(), StoreError> {
        loop {
            let now = self.now();
            if self.shard.pump(now) == Step::Idle {
                return Ok(());
            }
            self.world.history.append(&self.shard.take_batch())?;
            self.shard.committed(now);
            for outgoing in self.shard.take_outgoing() {
                (self.observer)(&self.shard, &outgoing);
                self.carry_out(outgoing);
            }
        }
    }

    /// Waits for an answer, a command or a timer, whichever is first.
    async fn wait(&mut self) {
        let now = self.now();
        let next = self.shard.next_wakeup().into_iter().chain(self.heartbeats.next()).min();
        if self.settings.fast_forward
            && self.out.is_empty()
            && !self.waits_for_callback()
            && let Some(next) = next
        {
            self.ahead += next.millis_since(now);
            return self.take_silent();
        }
        let pause = next.map_or(Duration::from_secs(3600), |next| {
            Duration::from_millis(next.millis_since(now))
        });
        tokio::select! {
            biased;
            Some(done) = self.done.1.recv() => self.take_done(done),
            Some(command) = self.commands.recv() => self.take_command(command),
            () = tokio::time::sleep(pause) => self.take_silent(),
        }
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

    fn take_done(&mut self, first: Done) {
        let now = self.now();
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(done) = next else {
                return;
            };
            self.out.remove(&(done.execution.clone(), done.call));
            let signal = self.signal_of(&done.execution, done.call, done.outcome);
            // A result nobody waits for any more was noted by the machine, or the execution has ended.
            let _ = self.shard.signal(&done.execution, signal, now);
            next = self.done.1.try_recv().ok();
        }
    }

    fn take_command(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::Stop {
                execution,
                cause,
                rollback,
            } => {
                let stop = Signal::Stop {
                    error: None,
                    cause,
                    by: None,
                    rollback,
                };
                let _ = self.shard.signal(&execution, stop, now);
            }
            Command::Report { token, report, reply } => {
                let answer = self.take_report(&token, report, now);
                // Nothing is acknowledged before it is durable; whoever asked may have gone.
                let answer = match self.settle() {
                    Ok(()) => answer,
                    Err(_) => return,
                };
                let _ = reply.send(answer);
            }
        }
    }

    fn take_report(&mut self, token: &str, report: Report, now: Timestamp) -> Reply {
        let Ok((execution, call)) = self.world.tokens.verify(token) else {
            return Reply::InvalidToken;
        };
        let id = Text::from(execution.as_str());
        let signal = match report {
            Report::Succeed(output) => Signal::Succeeded {
                call,
                result: Value::Object(output),
                worker: None,
                held_time: None,
            },
            Report::Fail { error, cause } => Signal::Failed {
                call,
                error,
                cause,
                retry_after: None,
            },
            Report::Heartbeat => {
                let known = self.shard.state(&execution);
                return match known {
                    None => Reply::InvalidToken,
                    Some(state) if state.is_in_flight(call) => {
                        self.heartbeats.beat(&id, call, now);
                        Reply::Taken
                    }
                    Some(state) if state.was_given_up(call) => Reply::TimedOut,
                    Some(_) => Reply::AlreadyCompleted,
                };
            }
        };
        let given_up = self
            .shard
            .state(&execution)
            .is_some_and(|state| state.was_given_up(call));
        match self.shard.signal(&execution, signal, now) {
            Ok(()) if given_up => Reply::TimedOut,
            Ok(()) => {
                self.stop_sending(&id, call);
                Reply::Taken
            }
            Err(Rejection::Superseded) => Reply::TimedOut,
            Err(Rejection::Unknown | Rejection::NotStarted) => Reply::InvalidToken,
            Err(_) => Reply::AlreadyCompleted,
        }
    }

    /// Calls whose worker fell silent.
    fn take_silent(&mut self) {
        let now = self.now();
        for (execution, call) in self.heartbeats.silent(now) {
            let _ = self.shard.signal(&execution, Signal::HeartbeatMissed { call }, now);
        }
    }
}
