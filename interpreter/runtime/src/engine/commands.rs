//! Commands: requests from outside to a running engine.

use super::Engine;
use super::dispatch::LastCalls;
use super::quiescence::{Quiesce, SuspendedExecution};
use super::replies::{Reply, Snapshot, StartFailure, StartedExecution};
use super::waiters::DurableAnswer;
use crate::shard::{ForkRequest, NotEnded, RedefineRequest, StartRequest};
use starbridge_flow::graph::{FaultKind, Origin};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Decision, EventId, Rejection, Signal};
use starbridge_ports::{AuditEntry, Epochs, Message, MessageBody, MessageId, ShardSet, StoreError};
use tokio::sync::oneshot;

/// A request from outside to a running engine.
#[derive(Debug)]
pub enum Command {
    /// Start a flow.
    Start {
        /// The flow, its input, and the other terms of the start.
        request: Box<StartRequest>,
        /// Whether the sender also waits for the end.
        wait: bool,
        /// Answered when the execution's first turn is durable.
        reply: oneshot::Sender<Result<StartedExecution, StartFailure>>,
    },
    /// Begin a fork: an execution that goes on from an event of another one.
    Fork {
        /// The history to fork, and the event to go on from.
        request: Box<ForkRequest>,
        /// Answered when the fork's first append is durable.
        reply: oneshot::Sender<Result<StartedExecution, StartFailure>>,
    },
    /// Wait for an execution to end. If it has ended or does not exist, `reply` is dropped.
    AwaitEnd {
        /// The id of the execution.
        execution: Text,
        /// Answered when the execution has ended.
        reply: oneshot::Sender<Snapshot>,
    },
    /// Take a report with a task token.
    Report {
        /// The execution that the token was signed for.
        execution: Text,
        /// The call that the token was signed for.
        call: EventId,
        /// The content of the report.
        report: Report,
        /// What the audit list says of it, where an operator reports in place of whoever has the token.
        audit: Option<Box<AuditEntry>>,
        /// Answered when the report is durable, or refused.
        reply: oneshot::Sender<Reply>,
    },
    /// Take a signal of an operator.
    Signal {
        /// The id of the execution.
        execution: Text,
        /// A stop, a redrive, or a decision for a step that waits for one.
        signal: Box<Signal>,
        /// The audit entry of the signal.
        audit: Option<Box<AuditEntry>>,
        /// Answered when the signal is durable, or refused.
        reply: Option<oneshot::Sender<Reply>>,
    },
    /// Redrive an execution with another definition.
    Redefine {
        /// The redrive.
        request: Box<RedefineRequest>,
        /// Answered when it is durable, or refused.
        reply: oneshot::Sender<Reply>,
    },
    /// Remove these tasks from the list of dead tasks.
    DiscardDead {
        /// The id of the execution.
        execution: Text,
        /// The numbers of the tasks' calls.
        calls: Vec<EventId>,
        /// The audit entry of the command.
        audit: Option<Box<AuditEntry>>,
        /// Answered when that is durable.
        reply: oneshot::Sender<Reply>,
    },
    /// Delete an execution that has ended.
    Delete {
        /// The id of the execution.
        execution: Text,
        /// The audit entry of the command.
        audit: Option<Box<AuditEntry>>,
        /// Answered with [`Reply::Taken`] when that is durable, or with [`Reply::NotEnded`],
        /// [`Reply::NoSuchExecution`] or [`Reply::Held`].
        reply: oneshot::Sender<Reply>,
    },
    /// Wait until everything that was decided before is durable.
    AwaitDurable {
        /// Whether to wait also for commands that are postponed because much of their execution is not durable yet.
        kept: bool,
        /// Answered with [`Reply::Taken`] then.
        reply: oneshot::Sender<Reply>,
    },
    /// Take a durable message to an execution from a sender that is not an execution.
    Deliver(Box<Message>),
    /// Load an execution and go on with it.
    TakeUp {
        /// The id of the execution.
        execution: Text,
        /// Answered with [`Reply::Taken`], [`Reply::NoSuchExecution`] or [`Reply::Held`].
        reply: oneshot::Sender<Reply>,
    },
    /// Send nothing new and fire no timer from now on. Whatever arrives is decided and made
    /// durable; the rest waits until after [`Command::Quiesce`].
    PauseDispatch,
    /// Give executions back once nothing more can be done now. At the end of the time, give back
    /// the unfinished ones as they are. Send no other command until the reply.
    Quiesce {
        /// The end of the time.
        until: Timestamp,
        /// How long to wait for a timer that is due soon.
        grace: Millis,
        /// Answered with what was given back.
        reply: oneshot::Sender<Vec<SuspendedExecution>>,
    },
    /// Send no more calls of executions of these shards, and wait for those in flight until a time. Everything else goes on. The
    /// calls that are kept back are sent by the next owner: [`Command::Drain`] or [`Command::GiveUp`] has to come next.
    EndCalls {
        /// Those whose calls end; [`ShardSet::ALL`] before the end of the engine.
        shards: ShardSet,
        /// When to stop waiting.
        until: Timestamp,
        /// Answered when no call is in flight any more, or at that time.
        reply: oneshot::Sender<()>,
    },
    /// Own these shards too, and go on with their executions. Nobody else may have them.
    TakeIn {
        /// Those that nobody has now.
        shards: ShardSet,
        /// Under which epochs they were claimed, if the store keeps who has them. Nothing is appended under earlier ones.
        epochs: Epochs,
        /// Answered with [`Reply::Taken`] once their executions are known.
        reply: oneshot::Sender<Reply>,
    },
    /// Decide nothing more for executions of these shards, and drop them once everything that was decided is durable. Calls in
    /// flight are given up, and the next owner sends them again.
    GiveUp {
        /// Those that this engine owns and no longer will.
        shards: ShardSet,
        /// Answered with commands that wait for something of these executions: the next owner has to be sent them.
        reply: oneshot::Sender<Vec<Command>>,
    },
    /// Take no more commands, and wait for calls in flight until a time.
    Drain {
        /// When to stop waiting.
        until: Timestamp,
    },
}

/// What a worker or a callback reports about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The task succeeded with this output.
    Succeed(Value),
    /// The task failed.
    Fail {
        /// The name of the error.
        error: String,
        /// What happened, for people.
        cause: String,
    },
    /// The task is still being worked on.
    Heartbeat,
    /// A report of the end of a task, with what its program logged.
    Logged {
        /// How the task ended.
        report: Box<Report>,
        /// What the program printed on stderr.
        log: String,
    },
    /// What the program of a task printed that a worker holds, and the queues have taken the heartbeat that came with it.
    Log(String),
}

impl Engine {
    fn start(
        &mut self,
        request: StartRequest,
        wait: bool,
        reply: oneshot::Sender<Result<StartedExecution, StartFailure>>,
        now: Timestamp,
    ) {
        self.expect_messages();
        match self.shard.start(request, now) {
            Ok(execution) => self.waiters.await_start(execution, wait, reply),
            Err(error) => drop(reply.send(Err(StartFailure::Refused(error)))),
        }
    }

    pub(super) fn take_command(&mut self, command: Command) -> Result<(), StoreError> {
        let command = self.uncrowded(command).map(|command| self.with_room(command));
        match command.transpose()?.flatten() {
            Some(command) => self.carry_out_command(command),
            None => Ok(()),
        }
    }

    pub(super) fn carry_out_command(&mut self, command: Command) -> Result<(), StoreError> {
        let Some(command) = self.own_command(command).and_then(|command| self.prepared(command)) else {
            return Ok(());
        };
        let now = self.now();
        match command {
            Command::Start { request, wait, reply } => self.start(*request, wait, reply, now),
            Command::Fork { request, reply } => match self.shard.fork(&request, now) {
                Ok(execution) => self.waiters.await_start(execution, false, reply),
                Err(failure) => drop(reply.send(Err(failure.into()))),
            },
            Command::AwaitEnd { execution, reply } => self.await_end(execution, reply)?,
            Command::Report {
                execution,
                call,
                report,
                audit,
                reply,
            } => {
                let answer = self.take_report((&execution, call), report, audit.map(|audit| *audit), now)?;
                self.answer_when_durable(reply, answer, Some(execution));
            }
            Command::Signal {
                execution,
                signal,
                audit,
                reply,
            } => {
                let answer = self.take_signal(&execution, *signal, audit.map(|audit| *audit), now)?;
                if let Some(reply) = reply {
                    self.answer_when_durable(reply, answer, Some(execution));
                }
            }
            Command::AwaitDurable { reply, .. } => self.answer_when_durable(reply, Reply::Taken, None),
            Command::Redefine { request, reply } => {
                let execution = request.execution.clone();
                let answer = self.redefine(*request, now)?;
                self.answer_when_durable(reply, answer, Some(execution));
            }
            Command::DiscardDead {
                execution,
                calls,
                audit,
                reply,
            } => {
                let answer = self.discard_dead(&execution, calls, audit.map(|audit| *audit))?;
                self.answer_when_durable(reply, answer, Some(execution));
            }
            Command::Delete {
                execution,
                audit,
                reply,
            } => {
                let answer = self.delete(&execution, audit.map(|audit| *audit))?;
                self.answer_when_durable(reply, answer, Some(execution));
            }
            Command::TakeUp { execution, reply } => {
                let answer = self.take_up_one(&execution)?;
                self.answer_when_durable(reply, answer, Some(execution));
            }
            Command::Deliver(message) => self.shard.deliver(*message),
            Command::PauseDispatch => self.paused = true,
            Command::Quiesce { until, grace, reply } => self.quiescence = Some(Quiesce { until, grace, reply }),
            Command::EndCalls { shards, until, reply } => self.end_calls(LastCalls { shards, until, reply }),
            Command::TakeIn { shards, epochs, reply } => self.take_in_for(&shards, &epochs, reply)?,
            Command::GiveUp { shards, reply } => self.give_up(shards, reply),
            Command::Drain { until } => self.begin_to_drain(until),
        }
        Ok(())
    }

    /// Removes tasks of an execution from the list of dead tasks.
    fn discard_dead(
        &mut self,
        execution: &Text,
        calls: Vec<EventId>,
        audit: Option<AuditEntry>,
    ) -> Result<Reply, StoreError> {
        Ok(match self.bring(execution) {
            Err(StoreError::Held(_)) => Reply::Held,
            Err(error) => return Err(error),
            Ok(false) => Reply::NoSuchExecution,
            Ok(true) => {
                self.shard.discard_dead(execution, calls, audit);
                Reply::Taken
            }
        })
    }

    /// Redrives an execution with another definition. One that is set aside has not ended.
    fn redefine(&mut self, request: RedefineRequest, now: Timestamp) -> Result<Reply, StoreError> {
        Ok(match self.bring(&request.execution) {
            Err(StoreError::Held(_)) if self.shard.is_aside(&request.execution) => Reply::SetAside,
            Err(StoreError::Held(_)) => Reply::Held,
            Err(error) => return Err(error),
            Ok(false) => Reply::NoSuchExecution,
            Ok(true) => match self.shard.redefine(request, now) {
                Ok(()) => Reply::Taken,
                Err(rejection) => Reply::Rejected(rejection),
            },
        })
    }

    /// Deletes an execution. One that is set aside has not ended.
    fn delete(&mut self, execution: &Text, audit: Option<AuditEntry>) -> Result<Reply, StoreError> {
        Ok(match self.bring(execution) {
            Err(StoreError::Held(_)) if self.shard.is_aside(execution) => Reply::NotEnded,
            Err(StoreError::Held(_)) => Reply::Held,
            Err(error) => return Err(error),
            Ok(false) => Reply::NoSuchExecution,
            Ok(true) => match self.shard.delete(execution, audit) {
                Ok(()) => Reply::Taken,
                Err(NotEnded) => Reply::NotEnded,
            },
        })
    }

    fn await_end(&mut self, execution: Text, reply: oneshot::Sender<Snapshot>) -> Result<(), StoreError> {
        if self.is_to_end(&execution)? {
            self.waiters.await_end(execution, reply);
        }
        Ok(())
    }

    /// Whether an execution exists that has not ended.
    fn is_to_end(&mut self, execution: &str) -> Result<bool, StoreError> {
        if self.leased.is_none() {
            match self.bring(execution) {
                Ok(_) | Err(StoreError::Held(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // An end that is not durable yet is told later.
        let id = Text::from(execution);
        let runs = |state: &starbridge_machine::State| !state.status().is_ended() || self.shard.is_unsettled(&id);
        Ok(self.shard.is_aside(execution)
            || self.shard.waits_to_begin(execution)
            || self.shard.waits_to_go_on(execution)
            || self.shard.state(execution).is_some_and(runs))
    }

    /// Answers once everything that was decided before is durable. `of`: the execution that the command was for. If its appends
    /// are refused, the sender is told that another one has it.
    pub(super) fn answer_when_durable(&mut self, reply: oneshot::Sender<Reply>, answer: Reply, of: Option<Text>) {
        let number = self.waiters.await_mark(DurableAnswer { reply, answer, of });
        self.shard.mark(number);
    }

    fn take_signal(
        &mut self,
        execution: &str,
        signal: Signal,
        audit: Option<AuditEntry>,
        now: Timestamp,
    ) -> Result<Reply, StoreError> {
        let signal = self.with_holder(execution, signal);
        Ok(match self.bring(execution) {
            Err(StoreError::Held(_)) if self.shard.is_aside(execution) => {
                self.signal_aside(&Text::from(execution), signal, audit, now)?
            }
            Err(StoreError::Held(_)) => self.leave_signal(execution, signal, audit)?,
            Err(error) => return Err(error),
            Ok(false) => Reply::NoSuchExecution,
            Ok(true) => {
                let named = self.named_outside(execution, signal.clone());
                match self.shard.signal_audited(execution, named, audit.clone(), now) {
                    Ok(()) => Reply::Taken,
                    Err(_) if self.shard.is_aside(execution) => {
                        self.signal_aside(&Text::from(execution), signal, audit, now)?
                    }
                    Err(rejection) => Reply::Rejected(rejection),
                }
            }
        })
    }

    fn take_report(
        &mut self,
        (execution, call): (&Text, EventId),
        report: Report,
        audit: Option<AuditEntry>,
        now: Timestamp,
    ) -> Result<Reply, StoreError> {
        match self.bring(execution) {
            Err(StoreError::Held(_)) if self.shard.is_set_aside(execution) => return Ok(Reply::SetAside),
            // A message carries no entry of the audit list.
            Err(StoreError::Held(_)) if audit.is_some() => return Ok(Reply::Held),
            Err(StoreError::Held(_)) => return self.leave_report(execution, call, report),
            Err(error) => return Err(error),
            Ok(false) => return Ok(Reply::InvalidToken),
            Ok(true) => {}
        }
        let (report, log) = report.redacted(&self.deps.vault).split_log();
        Ok(match report {
            Report::Logged { .. } | Report::Heartbeat => {
                if let Some(log) = log {
                    self.keep_log(execution, call, log);
                }
                self.take_heartbeat(execution, call, now)
            }
            Report::Log(log) => {
                self.keep_log(execution, call, log);
                Reply::Taken
            }
            Report::Succeed(output) => {
                let signal = Signal::Succeeded {
                    call,
                    result: output,
                    worker: None,
                    held_time: None,
                };
                self.take_result((execution, call), signal, (log, audit), now)
            }
            Report::Fail { error, cause } => {
                let signal = self.shard.reported_failed(execution, call, &error, cause);
                self.take_result((execution, call), signal, (log, audit), now)
            }
        })
    }

    /// Leaves a report in the store for the process that has the execution.
    fn leave_report(&mut self, execution: &str, call: EventId, report: Report) -> Result<Reply, StoreError> {
        // A process that shares its executions keeps no logs.
        let body = match report.redacted(&self.deps.vault).split_log().0 {
            Report::Succeed(output) => MessageBody::Reported { call, output },
            Report::Fail { error, cause } => MessageBody::ReportedFailed {
                call,
                error: error.into(),
                cause: cause.into(),
            },
            Report::Log(_) => return Ok(Reply::Left),
            Report::Logged { .. } | Report::Heartbeat => {
                let now = self.now();
                return self.hear(execution, call, now).map(|()| Reply::Left);
            }
        };
        self.leave(execution, call, body)
    }

    /// Leaves an operator's signal in the store for the process that has the execution. Only a stop can be left.
    fn leave_signal(
        &mut self,
        execution: &str,
        signal: Signal,
        audit: Option<AuditEntry>,
    ) -> Result<Reply, StoreError> {
        let Signal::Stop {
            error,
            cause,
            by,
            rollback,
            ..
        } = signal
        else {
            return Ok(Reply::Held);
        };
        let body = MessageBody::Stopped {
            error: error.map(Into::into),
            cause: cause.into(),
            by: by.map(Into::into),
            rollback,
            audit: audit.map(Box::new),
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
        let left = match &self.leased {
            None => false,
            Some(leased) => leased.leave(&message)?,
        };
        // The other process may have given it back meanwhile. Then the next try finds it free.
        Ok(if left { Reply::Left } else { Reply::Held })
    }

    fn take_heartbeat(&mut self, execution: &str, call: EventId, now: Timestamp) -> Reply {
        match self.shard.state(execution) {
            None => Reply::InvalidToken,
            // The queues were asked first: the worker no longer holds the task.
            Some(_) if self.shard.is_in_queue(execution, call) => Reply::TimedOut,
            Some(state) if state.is_in_flight(call) => {
                self.heartbeats.heartbeat(&Text::from(execution), call, now);
                Reply::Taken
            }
            Some(state) if state.was_given_up(call) => Reply::TimedOut,
            Some(_) => Reply::AlreadyCompleted,
        }
    }

    fn take_result(
        &mut self,
        (execution, call): (&str, EventId),
        signal: Signal,
        (log, audit): (Option<String>, Option<AuditEntry>),
        now: Timestamp,
    ) -> Reply {
        let signal = self.with_holder(execution, signal);
        let state = self.shard.state(execution);
        let given_up = state.is_some_and(|state| state.was_given_up(call));
        match self.shard.signal_reported(execution, signal, (log, audit), now) {
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

    /// This signal with its error, if it has one, under the name that an operator may use.
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
