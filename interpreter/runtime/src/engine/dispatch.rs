//! Dispatch: sending calls to connectors and cancelling them.

use super::Engine;
use crate::queues::QueueCommand;
use crate::references::{Revealing, references_in};
use crate::shard::Outgoing;
use starbridge_flow::graph::Pattern;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{CallPart, CallToSend, EventId, Signal};
use starbridge_ports::{CallIds, LogTail, Outcome, Request, SentMembers, ShardSet, sends_input};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::oneshot;
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

/// A message of more than this many bytes is large.
const LARGE: usize = 256 << 10;
/// The bytes of the large messages that are out together; a larger one goes alone.
const LARGE_OUT: usize = 128 << 20;

/// Somebody who waits for the calls that are out.
pub(super) struct LastCalls {
    pub(super) shards: ShardSet,
    pub(super) until: Timestamp,
    pub(super) reply: oneshot::Sender<()>,
}

/// The answer has not come yet.
pub(super) struct CallOut {
    task: AbortHandle,
    /// The bytes of its message if it is large, otherwise 0.
    large: usize,
    /// What the receiver has logged so far.
    log: LogTail,
}

/// The calls that are out, up to a limit. The others wait in the order in which they came, those with large messages apart:
/// fewer of them are out at once, and others must not wait for that.
pub(super) struct Calls {
    out: BTreeMap<(Text, EventId), CallOut>,
    waiting: VecDeque<(Text, Box<CallToSend>)>,
    waiting_large: VecDeque<(Text, Box<CallToSend>)>,
    /// The bytes of the large messages that are out.
    large_out: usize,
    at_once: usize,
}

impl Calls {
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            out: BTreeMap::new(),
            waiting: VecDeque::new(),
            waiting_large: VecDeque::new(),
            large_out: 0,
            at_once,
        }
    }

    /// Returns the call if it may leave now; otherwise keeps it.
    fn admit(&mut self, execution: Text, call: Box<CallToSend>) -> Option<(Text, Box<CallToSend>)> {
        let bytes = large(&call);
        let waits = bytes > 0 && !self.waiting_large.is_empty();
        if !waits && self.has_room(bytes) {
            return Some((execution, call));
        }
        match bytes {
            0 => self.waiting.push_back((execution, call)),
            _ => self.waiting_large.push_back((execution, call)),
        }
        None
    }

    fn has_room(&self, large: usize) -> bool {
        let fits = large == 0 || self.large_out == 0 || self.large_out.saturating_add(large) <= LARGE_OUT;
        fits && self.out.len() < self.at_once
    }

    /// The next waiting call that may leave now.
    fn next(&mut self) -> Option<(Text, Box<CallToSend>)> {
        let next_large = self.waiting_large.front().map(|(_, call)| large(call));
        match next_large.is_some_and(|bytes| self.has_room(bytes)) {
            true => self.waiting_large.pop_front(),
            false if self.has_room(0) => self.waiting.pop_front(),
            false => None,
        }
    }

    fn left(&mut self, execution: Text, call: EventId, out: CallOut) {
        self.large_out += out.large;
        if let Some(before) = self.out.insert((execution, call), out) {
            self.large_out -= before.large;
        }
    }

    /// Leaves the waiting calls to the next start.
    pub(super) fn hand_back(&mut self) {
        self.hand_back_those_of(&ShardSet::ALL);
    }

    fn hand_back_those_of(&mut self, shards: &ShardSet) {
        self.waiting.retain(|(of, _)| !shards.has_execution(of));
        self.waiting_large.retain(|(of, _)| !shards.has_execution(of));
    }

    /// Whether a call of an execution of these shards is out or waits.
    fn has_some_of(&self, shards: &ShardSet) -> bool {
        let mut waiting = self.waiting.iter().chain(&self.waiting_large).map(|(of, _)| of);
        waiting.any(|of| shards.has_execution(of)) || self.out.keys().any(|(of, _)| shards.has_execution(of))
    }

    /// Cancels all calls of executions of these shards, out or waiting.
    pub(super) fn give_up_those_in(&mut self, shards: &ShardSet) {
        self.hand_back_those_of(shards);
        for (_, call) in self.out.extract_if(.., |(of, _), _| shards.has_execution(of)) {
            self.large_out -= call.large;
            call.task.abort();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.waiting.is_empty() && self.waiting_large.is_empty()
    }

    /// Cancels all calls, out or waiting. They are sent again when their executions are loaded again.
    pub(super) fn give_up(&mut self) {
        self.hand_back();
        self.large_out = 0;
        for (_, call) in std::mem::take(&mut self.out) {
            call.task.abort();
        }
    }

    /// Cancels all calls of one execution.
    pub(super) fn give_up_those_of(&mut self, execution: &Text) {
        self.waiting.retain(|(of, _)| of != execution);
        self.waiting_large.retain(|(of, _)| of != execution);
        for (_, call) in self.out.extract_if(.., |(of, _), _| of == execution) {
            self.large_out -= call.large;
            call.task.abort();
        }
    }

    /// Removes a call that is over.
    pub(super) fn over(&mut self, execution: &Text, call: EventId) -> Option<CallOut> {
        let over = self.out.remove(&(execution.clone(), call))?;
        self.large_out -= over.large;
        Some(over)
    }
}

/// The bytes of a call's message if it is large, otherwise 0.
fn large(call: &CallToSend) -> usize {
    let params = call.params.as_ref();
    let input = match !call.follow && sends_input(params) {
        true => call.input.json_len(),
        false => 0,
    };
    let bytes = input.saturating_add(params.map_or(0, Value::json_len));
    if bytes > LARGE { bytes } else { 0 }
}

impl Engine {
    pub(super) fn begin_to_drain(&mut self, until: Timestamp) {
        self.draining = Some(until);
        self.to_take_up.clear();
        self.calls.hand_back();
    }

    /// Sends no more calls of some shards.
    pub(super) fn end_calls(&mut self, last: LastCalls) {
        self.keeps_calls_of = self.keeps_calls_of.with(&last.shards);
        self.calls.hand_back_those_of(&last.shards);
        self.last_calls.push(last);
    }

    /// Tells those who wait that no call is out any more, or that their time is over.
    pub(super) fn tell_of_last_calls(&mut self) {
        if self.last_calls.is_empty() {
            return;
        }
        let now = self.now();
        let over = |last: &mut LastCalls| now >= last.until || !self.calls.has_some_of(&last.shards);
        for last in self.last_calls.extract_if(.., over) {
            // The receiver may have gone.
            let _ = last.reply.send(());
        }
    }

    pub(super) fn carry_out(&mut self, outgoing: Outgoing) {
        match outgoing {
            // The call stays outstanding and is sent at the next start.
            Outgoing::Send { .. } if self.draining.is_some() || self.is_handing_over() => {}
            Outgoing::Send { execution, .. } if self.keeps_call_of(&execution) => {}
            Outgoing::Send { execution, call } => {
                if let Some((execution, call)) = self.calls.admit(execution, call) {
                    self.send(execution, &call);
                }
            }
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

    /// Whether a call of an execution is left to the next owner.
    fn keeps_call_of(&self, execution: &str) -> bool {
        !self.shard.owns(execution) || !self.keeps_calls_of.is_empty() && self.keeps_calls_of.has_execution(execution)
    }

    fn tell_queues(&self, command: QueueCommand) {
        if let Some(queues) = &self.deps.queues {
            queues.send(command);
        }
    }

    /// Sends waiting calls as far as the limit allows.
    pub(super) fn send_waiting(&mut self) {
        while let Some((execution, call)) = self.calls.next() {
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
                let (of, large) = (execution.clone(), large(call));
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
                self.calls.left(of, number, CallOut { task, large, log });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A call whose message has about this many bytes.
    fn call(number: u64, bytes: usize) -> Box<CallToSend> {
        Box::new(CallToSend {
            call: EventId(number),
            step: "t".into(),
            iterations: Vec::new(),
            resource: "http://x/".into(),
            follow: false,
            polling: false,
            pattern: Pattern::RequestResponse,
            params: None,
            input: "x".repeat(bytes).into(),
            references: Vec::new(),
            attempt: 1,
            rollback: false,
            child: None,
            visit: EventId(1),
            timeout_at: None,
            timeout: None,
            heartbeat: None,
            wait: None,
            priority: 5,
        })
    }

    fn send(calls: &mut Calls, (execution, call): (Text, Box<CallToSend>)) {
        let task = tokio::spawn(std::future::ready(())).abort_handle();
        let out = CallOut {
            task,
            large: large(&call),
            log: LogTail::default(),
        };
        calls.left(execution, call.call, out);
    }

    /// The calls that may leave at once.
    fn leaving(calls: &mut Calls, sizes: &[(u64, usize)]) -> Vec<u64> {
        let mut left = Vec::new();
        for (number, bytes) in sizes {
            if let Some(admitted) = calls.admit("e".into(), call(*number, *bytes)) {
                left.push(*number);
                send(calls, admitted);
            }
        }
        left
    }

    fn next(calls: &mut Calls) -> Option<u64> {
        let next = calls.next()?;
        let number = next.1.call.0;
        send(calls, next);
        Some(number)
    }

    #[tokio::test]
    async fn large_messages_are_out_up_to_a_sum_and_others_do_not_wait_for_them() {
        let mut calls = Calls::new(100);
        let half = LARGE_OUT / 2 - 1_000;
        let sizes = [(1, half), (2, half), (3, half), (4, 10), (5, 300_000)];
        assert_eq!(leaving(&mut calls, &sizes), [1, 2, 4]);
        assert_eq!(next(&mut calls), None);
        calls.over(&"e".into(), EventId(2)).unwrap();
        assert_eq!((next(&mut calls), next(&mut calls)), (Some(3), None));
        calls.give_up_those_of(&"e".into());
        assert!(calls.is_empty());
        // A call that is larger than the sum goes alone.
        assert_eq!(leaving(&mut calls, &[(6, LARGE_OUT + 1), (7, 300_000)]), [6]);
        calls.over(&"e".into(), EventId(6)).unwrap();
        assert_eq!(next(&mut calls), Some(7));
        calls.give_up();
        assert!(calls.is_empty() && calls.large_out == 0);
    }

    #[tokio::test]
    async fn calls_are_out_up_to_a_number() {
        let mut calls = Calls::new(2);
        assert_eq!(
            leaving(&mut calls, &[(1, 10), (2, 300_000), (3, 300_000), (4, 10)]),
            [1, 2]
        );
        assert_eq!(next(&mut calls), None);
        calls.over(&"e".into(), EventId(1)).unwrap();
        assert_eq!((next(&mut calls), next(&mut calls)), (Some(3), None));
        calls.over(&"e".into(), EventId(3)).unwrap();
        assert_eq!(next(&mut calls), Some(4));
    }
}
