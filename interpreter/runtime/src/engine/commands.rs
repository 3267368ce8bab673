//! What somebody asks of a running engine.

use super::Engine;
use super::resting::{Rest, SuspendedExecution};
use crate::secrets::Vault;
use crate::shard::{ForkFailure, ForkRequest, StartError, StartRequest};
use starbridge_flow::graph::{FaultKind, Origin};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Decision, EventId, ForkError, Rejection, Signal};
use starbridge_ports::{Message, MessageBody, MessageId, Record, StoreError};
use tokio::sync::oneshot;

/// What somebody asks of a running engine.
#[derive(Debug)]
pub enum Command {
    /// A flow is to be started.
    Start {
        /// With what.
        request: Box<StartRequest>,
        /// Whether the end is waited for as well.
        wait: bool,
        /// Who is told.
        reply: oneshot::Sender<Result<Start, StartFailure>>,
    },
    /// An execution is to go on from an event of another.
    Fork {
        /// Of what.
        request: Box<ForkRequest>,
        /// Who is told.
        reply: oneshot::Sender<Result<Start, StartFailure>>,
    },
    /// Somebody waits for an execution to end; one that has ended or is not there is answered by dropping `reply`.
    AwaitEnd {
        /// The execution.
        execution: Text,
        /// Who is told.
        reply: oneshot::Sender<Snapshot>,
    },
    /// A report with a task token.
    Report {
        /// The execution its token was signed for.
        execution: Text,
        /// The call, likewise.
        call: EventId,
        /// What it reports.
        report: Report,
        /// Who is told what became of it.
        reply: oneshot::Sender<Reply>,
    },
    /// A signal from an operator.
    Signal {
        /// The execution.
        execution: Text,
        /// A stop, a redrive, a word about a step that waits for one.
        signal: Box<Signal>,
        /// Who is told what became of it.
        reply: Option<oneshot::Sender<Reply>>,
    },
    /// These tasks are listed as dead no longer.
    DiscardDead {
        /// The execution.
        execution: Text,
        /// Their calls.
        calls: Vec<EventId>,
        /// Who is told when that is durable.
        reply: oneshot::Sender<Reply>,
    },
    /// An execution is to be gone on with.
    TakeUp {
        /// The execution.
        execution: Text,
        /// Who is told: it counts, it is nowhere, or somebody else has it.
        reply: oneshot::Sender<Reply>,
    },
    /// From now on nothing new is sent and no timer fires: what is asked is decided and made durable, and the rest is left to
    /// whoever goes on after [`Command::Rest`].
    StandStill,
    /// Once nothing is left that can be done now, executions are given back; what is still under way at the end of the time as
    /// it stands. Nothing new is to be asked of the engine until then.
    Rest {
        /// The end of the time.
        until: Timestamp,
        /// Timers due in so many milliseconds are waited for.
        linger: u64,
        /// Who is told what was given back.
        reply: oneshot::Sender<Vec<SuspendedExecution>>,
    },
    /// No more commands are taken; calls in flight are waited for until then.
    Drain {
        /// The end of patience.
        until: Timestamp,
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

impl Report {
    /// The same without secrets that came back in it.
    fn redacted(self, vault: &Vault) -> Self {
        let text = |text: String| vault.redacted_text(&text).unwrap_or(text);
        match self {
            Self::Succeed(output) => Self::Succeed(vault.redacted_object(&output).unwrap_or(output)),
            Self::Fail { error, cause } => Self::Fail {
                error: text(error),
                cause: text(cause),
            },
            Self::Heartbeat => Self::Heartbeat,
        }
    }
}

/// What became of a report or a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It counts, and stands in the history.
    Taken,
    /// Another report came first.
    AlreadyCompleted,
    /// It is for a call that was given up.
    TimedOut,
    /// The token is not ours.
    InvalidToken,
    /// There is no such execution.
    NoSuchExecution,
    /// Somebody else has the execution, and finds it in the store.
    Left,
    /// Somebody else has the execution, or it is left alone for a moment: try again.
    Held,
    /// The execution is set aside: nothing counts but what an operator says.
    SetAside,
    /// The execution can't take it.
    Rejected(Rejection),
}

/// An execution at a moment: what is known of it, and its data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Its id.
    pub execution: Text,
    /// What is known of it.
    pub record: Record,
    /// Its input.
    pub input: Object,
    /// Its output, if it succeeded.
    pub output: Option<Object>,
}

/// An execution that has begun.
#[derive(Debug)]
pub struct Start {
    /// As it was when its first turn was durable.
    pub begun: Snapshot,
    /// As it is when it has ended, where that is waited for and it has not ended already.
    pub end: Option<oneshot::Receiver<Snapshot>>,
}

/// Why nothing was started.
#[derive(Clone, Debug, PartialEq)]
pub enum StartFailure {
    /// The request can't be taken.
    Refused(StartError),
    /// The fork can't be.
    NoFork(ForkError),
    /// The flow has an execution of that name: this one.
    Exists(Text),
    /// Too many wait already: try again later.
    Busy,
    /// No more is taken: the engine is coming to its end.
    Stopping,
}

impl From<ForkFailure> for StartFailure {
    fn from(failure: ForkFailure) -> Self {
        match failure {
            ForkFailure::Refused(error) => Self::NoFork(error),
            ForkFailure::Panicked(cause) => Self::Refused(StartError::Panicked(cause)),
        }
    }
}

impl Engine {
    pub(super) fn take_command(&mut self, command: Command) -> Result<(), StoreError> {
        let now = self.now();
        match command {
            Command::Start { request, wait, reply } => {
                self.expect_mail();
                match self.shard.start(*request, now) {
                    Ok(execution) => self.answers.await_start(execution, wait, reply),
                    Err(error) => drop(reply.send(Err(StartFailure::Refused(error)))),
                }
            }
            Command::Fork { request, reply } => match self.shard.fork(&request, now) {
                Ok(execution) => self.answers.await_start(execution, false, reply),
                Err(failure) => drop(reply.send(Err(failure.into()))),
            },
            Command::AwaitEnd { execution, reply } => {
                if self.is_to_end(&execution)? {
                    self.answers.await_end(execution, reply);
                }
            }
            Command::Report {
                execution,
                call,
                report,
                reply,
            } => {
                let answer = self.take_report(&execution, call, report, now)?;
                self.answer_when_durable(reply, answer);
            }
            Command::Signal {
                execution,
                signal,
                reply,
            } => {
                let answer = self.take_signal(&execution, *signal, now)?;
                if let Some(reply) = reply {
                    self.answer_when_durable(reply, answer);
                }
            }
            Command::DiscardDead {
                execution,
                calls,
                reply,
            } => {
                let answer = self.discard_dead(&execution, calls)?;
                self.answer_when_durable(reply, answer);
            }
            Command::TakeUp { execution, reply } => {
                let answer = match self.bring(&execution) {
                    // Nothing is to be done for it until an operator says so.
                    Err(StoreError::Held(_)) if self.shard.is_aside(&execution) => Reply::Taken,
                    Err(StoreError::Held(_)) => Reply::Held,
                    Ok(true) => Reply::Taken,
                    Ok(false) => Reply::NoSuchExecution,
                    Err(error) => return Err(error),
                };
                self.answer_when_durable(reply, answer);
            }
            Command::StandStill => self.still = true,
            Command::Rest { until, linger, reply } => self.resting = Some(Rest { until, linger, reply }),
            Command::Drain { until } => {
                self.draining = Some(until);
                self.calls.hand_back();
            }
        }
        Ok(())
    }

    /// No longer lists dead tasks of an execution.
    fn discard_dead(&mut self, execution: &Text, calls: Vec<EventId>) -> Result<Reply, StoreError> {
        Ok(match self.bring(execution) {
            Err(StoreError::Held(_)) => Reply::Held,
            Err(error) => return Err(error),
            Ok(false) => Reply::NoSuchExecution,
            Ok(true) => {
                self.shard.discard_dead(execution, calls);
                Reply::Taken
            }
        })
    }

    /// Whether an execution is there that has not ended.
    fn is_to_end(&mut self, execution: &str) -> Result<bool, StoreError> {
        if self.visiting.is_none() {
            match self.bring(execution) {
                Ok(_) | Err(StoreError::Held(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let runs = |state: &starbridge_machine::State| !state.status().is_ended();
        Ok(self.shard.is_aside(execution) || self.shard.state(execution).is_some_and(runs))
    }

    fn answer_when_durable(&mut self, reply: oneshot::Sender<Reply>, answer: Reply) {
        let number = self.answers.await_mark(reply, answer);
        self.shard.mark(number);
    }

    fn take_signal(&mut self, execution: &str, signal: Signal, now: Timestamp) -> Result<Reply, StoreError> {
        Ok(match self.bring(execution) {
            Err(StoreError::Held(_)) if self.shard.is_aside(execution) => {
                self.signal_aside(&Text::from(execution), signal, now)?
            }
            Err(StoreError::Held(_)) => self.leave_signal(execution, signal)?,
            Err(error) => return Err(error),
            Ok(false) => Reply::NoSuchExecution,
            Ok(true) => {
                let named = self.named_outside(execution, signal.clone());
                match self.shard.signal(execution, named, now) {
                    Ok(()) => Reply::Taken,
                    Err(_) if self.shard.is_aside(execution) => {
                        self.signal_aside(&Text::from(execution), signal, now)?
                    }
                    Err(rejection) => Reply::Rejected(rejection),
                }
            }
        })
    }

    fn take_report(
        &mut self,
        execution: &Text,
        call: EventId,
        report: Report,
        now: Timestamp,
    ) -> Result<Reply, StoreError> {
        match self.bring(execution) {
            Err(StoreError::Held(_)) if self.shard.is_set_aside(execution) => return Ok(Reply::SetAside),
            Err(StoreError::Held(_)) => return self.leave_report(execution, call, report),
            Err(error) => return Err(error),
            Ok(false) => return Ok(Reply::InvalidToken),
            Ok(true) => {}
        }
        let report = report.redacted(&self.world.vault);
        Ok(match report {
            Report::Heartbeat => self.take_heartbeat(execution, call, now),
            Report::Succeed(output) => {
                let result = Value::Object(output);
                let holder = self.world.queues.as_ref();
                let holder = holder.and_then(|queues| queues.holder(execution, call));
                let (worker, held_time) = holder.unzip();
                let named = |worker: Text| self.world.vault.redacted_text(&worker).map_or(worker, Text::from);
                let worker = worker.map(named);
                let signal = Signal::Succeeded {
                    call,
                    result,
                    worker,
                    held_time,
                };
                self.take_result(execution, call, signal, now)
            }
            Report::Fail { error, cause } => {
                let signal = self.shard.reported_failed(execution, call, &error, cause);
                self.take_result(execution, call, signal, now)
            }
        })
    }

    /// Leaves a report to whoever has the execution.
    fn leave_report(&mut self, execution: &str, call: EventId, report: Report) -> Result<Reply, StoreError> {
        let body = match report.redacted(&self.world.vault) {
            Report::Succeed(output) => MessageBody::Reported { call, output },
            Report::Fail { error, cause } => MessageBody::ReportedFailed {
                call,
                error: error.into(),
                cause: cause.into(),
            },
            Report::Heartbeat => {
                let now = self.now();
                return self.hear(execution, call, now).map(|()| Reply::Left);
            }
        };
        self.leave(execution, call, body)
    }

    /// The same for what an operator says; only a stop makes sense to an execution that is being worked on.
    fn leave_signal(&mut self, execution: &str, signal: Signal) -> Result<Reply, StoreError> {
        let Signal::Stop {
            error,
            cause,
            by,
            rollback,
        } = signal
        else {
            return Ok(Reply::Held);
        };
        let body = MessageBody::Stopped {
            error: error.map(Into::into),
            cause: cause.into(),
            by: by.map(Into::into),
            rollback,
        };
        self.leave(execution, EventId(0), body)
    }

    fn leave(&mut self, execution: &str, about: EventId, body: MessageBody) -> Result<Reply, StoreError> {
        let message = Message {
            id: MessageId {
                from: execution.into(),
                event: about,
                to: execution.into(),
            },
            body,
        };
        let left = match &self.visiting {
            None => false,
            Some(visiting) => visiting.leave(&message)?,
        };
        // Who had it may have given it back meanwhile: whoever asks again finds it free.
        Ok(if left { Reply::Left } else { Reply::Held })
    }

    fn take_heartbeat(&mut self, execution: &str, call: EventId, now: Timestamp) -> Reply {
        match self.shard.state(execution) {
            None => Reply::InvalidToken,
            // Queues were asked before: its worker has it no longer.
            Some(_) if self.shard.is_in_queue(execution, call) => Reply::TimedOut,
            Some(state) if state.is_in_flight(call) => {
                self.heartbeats.beat(&Text::from(execution), call, now);
                Reply::Taken
            }
            Some(state) if state.was_given_up(call) => Reply::TimedOut,
            Some(_) => Reply::AlreadyCompleted,
        }
    }

    fn take_result(&mut self, execution: &str, call: EventId, signal: Signal, now: Timestamp) -> Reply {
        let state = self.shard.state(execution);
        let given_up = state.is_some_and(|state| state.was_given_up(call));
        match self.shard.signal(execution, signal, now) {
            Ok(()) if given_up => Reply::TimedOut,
            Ok(()) => {
                self.stop_sending(&Text::from(execution), call);
                Reply::Taken
            }
            Err(Rejection::Superseded) => Reply::TimedOut,
            Err(Rejection::Finished) if given_up => Reply::TimedOut,
            Err(Rejection::Unknown | Rejection::NotStarted) => Reply::InvalidToken,
            Err(_) => Reply::AlreadyCompleted,
        }
    }

    /// A signal whose error, where it has one, is named as an operator may name it.
    fn named_outside(&self, execution: &str, mut signal: Signal) -> Signal {
        let name = |error: &str| {
            let error = FaultKind::Outside(Origin::Operator, Text::from(error));
            self.shard.error_name(execution, &error)
        };
        match &mut signal {
            Signal::Stop { error: Some(error), .. } => *error = name(error),
            Signal::Resolve { resolution, .. } => {
                if let Decision::Fail { failure: Some(failure) } = &mut resolution.decision {
                    failure.error = name(&failure.error).into();
                }
            }
            _ => {}
        }
        signal
    }
}
