//! Dispatch: sending calls to connectors and cancelling them.

use super::Engine;
use crate::queues::QueueCommand;
use crate::references::{Revealing, references_in};
use crate::shard::Outgoing;
use starbridge_flow::graph::Pattern;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{CallPart, CallToSend, EventId, Signal};
use starbridge_ports::{CallIds, LogTail, Outcome, Request, SentMembers};
use std::collections::{BTreeMap, VecDeque};
use tokio::task::AbortHandle;
use tracing::Instrument;

/// The outcome of a call that was sent.
pub(super) struct Done {
    pub(super) execution: Text,
    pub(super) call: EventId,
    pub(super) outcome: Outcome,
    /// What the receiver logged.
    pub(super) log: Option<String>,
}

/// A call that is out.
pub(super) struct CallOut {
    task: AbortHandle,
    /// What the receiver has logged so far.
    log: LogTail,
}

/// The calls that are out, up to a limit. The others wait in the order in which they came.
pub(super) struct Calls {
    out: BTreeMap<(Text, EventId), CallOut>,
    waiting: VecDeque<(Text, Box<CallToSend>)>,
    at_once: usize,
}

impl Calls {
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            out: BTreeMap::new(),
            waiting: VecDeque::new(),
            at_once,
        }
    }

    /// Leaves the waiting calls to the next start.
    pub(super) fn hand_back(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.waiting.is_empty()
    }

    /// Cancels all calls, out or waiting. They are sent again when their executions are loaded again.
    pub(super) fn give_up(&mut self) {
        self.waiting.clear();
        for (_, call) in std::mem::take(&mut self.out) {
            call.task.abort();
        }
    }

    /// Cancels all calls of one execution.
    pub(super) fn give_up_those_of(&mut self, execution: &Text) {
        self.waiting.retain(|(of, _)| of != execution);
        for (_, call) in self.out.extract_if(.., |(of, _), _| of == execution) {
            call.task.abort();
        }
    }

    /// Removes a call that is over.
    pub(super) fn over(&mut self, execution: &Text, call: EventId) -> Option<CallOut> {
        self.out.remove(&(execution.clone(), call))
    }
}

impl Engine {
    pub(super) fn carry_out(&mut self, outgoing: Outgoing) {
        match outgoing {
            // The call stays outstanding and is sent at the next start.
            Outgoing::Send { .. } if self.draining.is_some() || self.is_handing_over() => {}
            Outgoing::Send { execution, call } if self.calls.out.len() < self.calls.at_once => {
                self.send(execution, &call);
            }
            Outgoing::Send { execution, call } => self.calls.waiting.push_back((execution, call)),
            Outgoing::Cancel { execution, call } => self.stop_sending(&execution, call),
            Outgoing::Started { execution, status } => self.answer_started(&execution, status),
            Outgoing::Requested { execution } => self.answer_requested(&execution),
            Outgoing::Refused { execution, refusal } => self.waiters.refused(&execution, &refusal),
            Outgoing::Ended { execution, .. } => self.answer_ended(&execution),
            Outgoing::Mark(number) => self.waiters.marked(number),
            Outgoing::Queued(task) => self.tell_queues(QueueCommand::Enqueue(task)),
            Outgoing::Unqueued { execution, call, queue } => {
                self.tell_queues(QueueCommand::Remove(queue, (execution, call)));
            }
            Outgoing::Withdrawn { execution, call, queue } => {
                self.tell_queues(QueueCommand::Withdraw(queue, (execution, call)));
            }
            Outgoing::Turn { execution, events } => self.heed_pause(&execution, &events),
            Outgoing::Noticed { .. } | Outgoing::Message(_) => {}
        }
    }

    fn tell_queues(&self, command: QueueCommand) {
        if let Some(queues) = &self.deps.queues {
            queues.send(command);
        }
    }

    /// Sends waiting calls as far as the limit allows.
    pub(super) fn send_waiting(&mut self) {
        while self.calls.out.len() < self.calls.at_once
            && let Some((execution, call)) = self.calls.waiting.pop_front()
        {
            // It may have been given up meanwhile.
            let state = self.shard.state(&execution);
            match state.filter(|state| state.is_to_be_sent(call.call)) {
                Some(state) if state.paused().is_some() => self.shard.hold_back(&execution, call.call),
                Some(_) => self.send(execution, &call),
                None => {}
            }
        }
    }

    pub(super) fn stop_sending(&mut self, execution: &Text, call: EventId) {
        self.heartbeats.forget(execution, call);
        let Some(out) = self.calls.over(execution, call) else {
            return;
        };
        out.task.abort();
        // A killed program has no end that would bring its log.
        if let Some(log) = out.log.text() {
            let log = self.redacted_log(log);
            self.keep_log(execution, call, log);
        }
    }

    /// Keeps the log of a call that did not end by itself. A process that shares its executions
    /// keeps no logs.
    pub(super) fn keep_log(&mut self, execution: &str, call: EventId, log: String) {
        if self.leased.is_none() {
            self.shard.keep_log(execution, call, log);
        }
    }

    fn send(&mut self, execution: Text, call: &CallToSend) {
        let number = call.call;
        let span = tracing::debug_span!("call", %execution, step = %call.step, attempt = call.attempt, call = number.0);
        if let Some(every) = call.heartbeat.filter(|_| call.pattern == Pattern::WaitForCallback) {
            let now = self.now();
            self.heartbeats.expect(&execution, number, every, now);
        }
        let prepared = self.request(&execution, call);
        let done = self.done.0.clone();
        match prepared {
            Err(outcome) => {
                let _ = done.send(Done {
                    execution,
                    call: number,
                    outcome,
                    log: None,
                });
            }
            Ok((connector, request)) => {
                let key = (execution.clone(), number);
                let log = LogTail::default();
                let tail = log.clone();
                let carried = async move {
                    let outcome = connector.call_logged(request, tail.clone()).await;
                    // The engine may have stopped.
                    let _ = done.send(Done {
                        execution,
                        call: number,
                        outcome,
                        log: tail.text(),
                    });
                };
                let task = tokio::spawn(carried.instrument(span)).abort_handle();
                self.calls.out.insert(key, CallOut { task, log });
            }
        }
    }

    /// The request for a call, and its connector; or its outcome if it can't be sent.
    fn request(
        &self,
        execution: &Text,
        call: &CallToSend,
    ) -> Result<(std::sync::Arc<dyn starbridge_ports::Connector>, Request), Outcome> {
        let no_such = |cause: String| Outcome::not_sent(cause);
        if has_placeholder(&call.resource) {
            let cause = format!("`{}` has a placeholder that nobody has filled in", call.resource);
            return Err(no_such(cause));
        }
        let resolved = self.shard.resources().resolve(&call.resource).ok_or_else(|| {
            no_such(format!(
                "nothing answers to `{}`: give it a target with `--resource 'PATTERN=TARGET'`",
                call.resource
            ))
        })?;
        let scheme = resolved.target.split(':').next().unwrap_or_default();
        let scheme = if scheme == "https" { "http" } else { scheme };
        let connector = self.deps.connectors.get(scheme).cloned().ok_or_else(|| {
            no_such(format!(
                "`{}` can't be called here: no connector for `{scheme}:`",
                resolved.target
            ))
        })?;
        let started = self.shard.state(execution).and_then(|state| state.started());
        let traceparent = started.and_then(|started| started.terms.traceparent.as_ref());
        let flow = started.map(|started| started.flow.clone()).unwrap_or_default();
        let (input, params) = self.revealed(&flow, call, connector.sent_members()).map_err(no_such)?;
        let keys = CallIds {
            idempotency: call.idempotency_key(execution),
            step_visit: call.step_key(execution),
            execution: execution.to_string(),
            flow: flow.to_string(),
            step: call.step.to_string(),
            traceparent: traceparent.map(ToString::to_string),
        };
        let limits = self.shard.limits();
        let request = Request {
            target: resolved.target,
            via: resolved.via,
            // Only a child flow ends some time after the call. For any other resource the answer is
            // the end.
            pattern: match call.pattern {
                Pattern::Sync => Pattern::RequestResponse,
                pattern => pattern,
            },
            input,
            params,
            keys,
            attempt: call.attempt,
            rollback: call.rollback,
            polling: call.polling,
            follow: call.follow,
            timeout_at: call.timeout_at,
            answer_limit: limits.step_data_bytes,
        };
        Ok((connector, request))
    }

    /// The input and parameters of a call, with secrets and tokens in their places; or why they can't be put in.
    fn revealed(&self, flow: &str, call: &CallToSend, sent: SentMembers) -> Result<(Value, Option<Value>), String> {
        let revealing = Revealing {
            vault: &self.deps.vault,
            tokens: &self.deps.tokens,
            flow,
        };
        let input = references_in(&call.references, CallPart::Input);
        let input = revealing.reveal(call.input.clone(), input)?;
        let Some(params) = &call.params else {
            return Ok((input, None));
        };
        let in_params = || references_in(&call.references, CallPart::Params);
        let misplaced = in_params().find(|(at, _)| !sent.holds(params, at));
        if let Some((at, reference)) = misplaced {
            let member = at.first().cloned().unwrap_or_default();
            return Err(format!(
                "`{}` can't stand in `{member}` of `serviceParams`: it is put into what is sent only ({})",
                reference.text(),
                sent.names()
            ));
        }
        let params = revealing.reveal(params.clone(), in_params())?;
        Ok((input, Some(params)))
    }

    /// The signal that takes an outcome to the machine.
    pub(super) fn signal_of(&self, execution: &Text, call: EventId, outcome: Outcome) -> Signal {
        let waits = self
            .shard
            .state(execution)
            .zip(self.shard.flow(execution))
            .and_then(|(state, flow)| state.call_to_send(flow, call))
            .is_some_and(|call| call.pattern == Pattern::WaitForCallback);
        let outcome = match self.shard.may_have_left_before(execution, call) {
            true => outcome.sent_before(),
            false => outcome,
        };
        let name = |error| self.shard.error_name(execution, &error);
        match outcome {
            Outcome::Result(receipt) if waits => Signal::Submitted {
                call,
                receipt: Some(receipt),
                execution: None,
                version: None,
            },
            Outcome::Result(result) => Signal::Succeeded {
                call,
                result,
                worker: None,
                held_time: None,
            },
            Outcome::Accepted { receipt } => Signal::Submitted {
                call,
                receipt,
                execution: None,
                version: None,
            },
            Outcome::Failed { error, cause, .. } if waits => Signal::SubmitFailed {
                call,
                error: name(error),
                cause,
                not_sent: false,
            },
            Outcome::NotSent { error, cause } if waits => Signal::SubmitFailed {
                call,
                error: name(error),
                cause,
                not_sent: true,
            },
            Outcome::Failed {
                error,
                cause,
                retry_after,
            } => Signal::Failed {
                call,
                error: name(error),
                cause,
                retry_after,
                not_sent: false,
                holder: None,
            },
            Outcome::NotSent { error, cause } => Signal::Failed {
                call,
                error: name(error),
                cause,
                retry_after: None,
                not_sent: true,
                holder: None,
            },
        }
    }
}

/// Whether a resource still has a placeholder of its author, `${name}` or `<name>`.
fn has_placeholder(resource: &str) -> bool {
    // Hardly any resource has one of these, and looking for a text takes longer than for a byte.
    if !resource.bytes().any(|byte| matches!(byte, b'$' | b'<')) {
        return false;
    }
    let between = |open: &str, close: char| {
        resource
            .split_once(open)
            .is_some_and(|(_, rest)| rest.find(close).is_some_and(|end| end > 0))
    };
    between("${", '}') || between("<", '>')
}
