//! Tasks of worker queues (section "worker queues"). A call to `queue:NAME` becomes a task, which is stored with the
//! call's turn and removed with the turn that ends the call. It is not sent: workers poll for it.

use super::batch::is_reordered;
use super::{Outgoing, Shard};
use crate::queues::FairQueue;
use crate::references::{references_in, write_references};
use starbridge_flow::graph::{FaultKind, Flow, Origin};
use starbridge_flow::limits::is_name;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{CallPart, CallToSend, Event, EventId, EventKind, Signal, StartRecord, call_type};
use starbridge_ports::{Append, AuditEntry, DeadTask, DeadTasksCleared, QueuedTask};
use std::sync::Arc;

impl Shard {
    /// Makes calls to `queue:NAME` tasks of queues. Without this they leave like any other call.
    pub fn queue_tasks(&mut self, fair_queue: Arc<FairQueue>) {
        self.fair_queue = Some(fair_queue);
    }

    /// The queue of a call, if its resource is one.
    pub(super) fn queue_of(&self, call: &CallToSend) -> Option<Text> {
        self.fair_queue.as_ref()?;
        let may_be = call.resource.starts_with("queue:") || !self.resources.is_empty();
        if call.child.is_some() || !may_be {
            return None;
        }
        let resolved = self.resources.resolve(&call.resource)?;
        let name = resolved.target.strip_prefix("queue:")?;
        is_name(name).then(|| Text::from(name))
    }

    /// Splits calls into those that leave and the tasks that go into queues.
    pub(super) fn split_calls(
        &mut self,
        id: &Text,
        calls: Vec<CallToSend>,
        now: Timestamp,
    ) -> (Vec<CallToSend>, Vec<QueuedTask>) {
        if self.fair_queue.is_none() {
            return (calls, Vec::new());
        }
        let (mut leaving, mut queued) = (Vec::new(), Vec::new());
        for call in calls {
            match self.queue_of(&call) {
                None => leaving.push(call),
                Some(queue) => queued.extend(self.task(id, queue, call, now)),
            }
        }
        (leaving, queued)
    }

    /// Records calls that are tasks of queues. Returns the others; these are all if there are no queues here.
    pub(super) fn note_queued(&mut self, id: &Text, calls: Vec<CallToSend>) -> Vec<CallToSend> {
        let mut lost = Vec::new();
        for call in calls {
            match (self.queue_of(&call), self.executions.get_mut(id)) {
                (Some(queue), Some(live)) => drop(live.queued.insert(call.call, queue)),
                _ => lost.push(call),
            }
        }
        lost
    }

    /// The signal for a failure that was reported for a call. The error's name says whether a worker of a queue
    /// reported it or somebody with the call's token.
    pub fn reported_failed(&self, execution: &str, call: EventId, error: &str, cause: String) -> Signal {
        let origin = match self.is_in_queue(execution, call) {
            true => Origin::Worker,
            false => Origin::Callback,
        };
        Signal::Failed {
            call,
            error: self.error_name(execution, &FaultKind::Outside(origin, Text::from(error))),
            cause,
            retry_after: None,
            not_sent: false,
        }
    }

    /// The task of a call. The time it may wait counts from when it was scheduled, without pauses.
    pub(super) fn task(&mut self, id: &Text, queue: Text, call: CallToSend, now: Timestamp) -> Option<QueuedTask> {
        let fair_queue = self.fair_queue.clone()?;
        let live = self.executions.get_mut(id)?;
        live.queued.insert(call.call, queue.clone());
        let started = live.state.started()?;
        let path = live.state.call_path(call.call);
        let path = path.map(|path| write_path(&live.flow, path));
        let waits_from = live.state.queued_since(call.call).unwrap_or(now);
        let task = QueuedTask {
            virtual_time: fair_queue.give(&queue, call.priority, id),
            execution: id.clone(),
            call: call.call,
            priority: call.priority,
            order: started
                .terms
                .order_time
                .map_or_else(|| live.state.started_time(), Timestamp),
            since: now,
            wait_until: call.wait.map(|longest| waits_from.plus(longest)),
            timeout: call.timeout,
            heartbeat: call.heartbeat,
            message: message(started, &live.origin.family, &queue, path, call),
            queue,
        };
        Some(task)
    }

    /// Puts the tasks that nobody holds into their queues anew, because their order has changed. Those of a paused execution are in none.
    fn reorder_tasks(&mut self, id: &Text, append: &mut Append, now: Timestamp) {
        if self.is_paused(id) {
            return;
        }
        let Some(live) = self.executions.get(id) else {
            return;
        };
        let stands = |call: &EventId| append.queued.iter().all(|task| task.call != *call);
        let queues = live.queued.iter().filter(|(call, _)| stands(call));
        let calls: Vec<_> = queues
            .filter_map(|(call, queue)| Some((queue.clone(), live.state.call_to_send(&live.flow, *call)?)))
            .collect();
        for (queue, call) in calls {
            let number = call.call;
            let since = self.state(id).and_then(|state| state.queued_since(number));
            let Some(mut task) = self.task(id, queue.clone(), call, now) else {
                continue;
            };
            task.since = since.unwrap_or(now);
            append.withdrawn.push(number);
            append.queued.push(task);
            self.held.push(Outgoing::Withdrawn {
                queue,
                execution: id.clone(),
                call: number,
            });
        }
    }

    /// Adds to an append which tasks end with these events, and which of them failed for good.
    pub(super) fn end_tasks(&mut self, id: &Text, events: &[Event], append: &mut Append) {
        if let Some(first) = events.first().filter(|_| is_reordered(events)) {
            self.reorder_tasks(id, append, first.time);
        }
        if events
            .iter()
            .any(|event| matches!(event.detail, EventKind::ExecutionRedriven { .. }))
        {
            append.dead_cleared = DeadTasksCleared::All;
        }
        let Some(live) = self.executions.get_mut(id).filter(|live| !live.queued.is_empty()) else {
            return;
        };
        let mut gone = Vec::new();
        for (position, event) in events.iter().enumerate() {
            let call = match &event.detail {
                EventKind::TaskSucceeded { .. }
                | EventKind::TaskFailed { .. }
                | EventKind::TaskSubmitFailed { .. }
                | EventKind::TaskTimedOut { .. } => event.caused_by,
                EventKind::TaskCancelled { of, .. } => *of,
                _ => continue,
            };
            let Some(queue) = live.queued.remove(&call) else {
                continue;
            };
            append.unqueued.push(call);
            gone.push(Outgoing::Unqueued {
                queue: queue.clone(),
                execution: id.clone(),
                call,
            });
            let later = events.get(position..).unwrap_or_default();
            append.dead.extend(dead(&live.flow, queue, id, call, event, later));
        }
        self.held.extend(gone);
    }

    /// Whether a call is a task of a queue.
    pub(crate) fn is_in_queue(&self, execution: &str, call: EventId) -> bool {
        let live = self.executions.get(execution);
        live.is_some_and(|live| live.queued.contains_key(&call))
    }

    /// Lists these tasks of a loaded execution as dead no longer.
    pub fn discard_dead(&mut self, execution: &Text, calls: Vec<EventId>, audit: Option<AuditEntry>) {
        let Some(live) = self.executions.get_mut(execution) else {
            return;
        };
        live.unsettled += 1;
        self.pending.push(Append {
            execution: execution.clone(),
            expected: live.state.last_event(),
            dead_cleared: DeadTasksCleared::Calls(calls),
            audit: audit.into_iter().collect(),
            ..Append::default()
        });
    }

    /// Announces the tasks of an append once it is durable.
    pub(super) fn hold_tasks(&mut self, append: &Append) {
        let come = append
            .queued
            .iter()
            .cloned()
            .map(|task| Outgoing::Queued(Box::new(task)));
        self.held.extend(come);
    }
}

/// The dead task, if this event is the failure of a task and none of the later events retries or catches it.
fn dead(flow: &Flow, queue: Text, execution: &Text, call: EventId, event: &Event, later: &[Event]) -> Option<DeadTask> {
    let mut failed = None;
    for next in later
        .iter()
        .filter(|next| next.step == event.step && next.path == event.path)
    {
        match &next.detail {
            EventKind::StepFailed { failure, attempt } => failed = Some((failure.clone(), *attempt)),
            EventKind::RollbackFailed { failure, .. } => failed = Some((failure.clone(), 0)),
            EventKind::RetryScheduled { .. } | EventKind::StepExited { .. } | EventKind::ManualRequested(_) => {
                return None;
            }
            _ => {}
        }
    }
    let (failure, attempt) = failed?;
    let step = event.step.and_then(|step| flow.step(step));
    Some(DeadTask {
        queue,
        execution: execution.clone(),
        call,
        step: step.map(|step| step.name.clone()).unwrap_or_default(),
        attempt,
        error: failure.error,
        cause: failure.cause,
        time: event.time,
    })
}

/// The message for a worker, without what is known only when the worker takes the task. Its first member is not for
/// the worker: it says which places of `input` hold references.
fn message(started: &StartRecord, family: &[Text], queue: &Text, path: Option<Value>, call: CallToSend) -> String {
    let execution = family.first().cloned().unwrap_or_default();
    let (key, step_key) = (call.idempotency_key(&execution), call.step_key(&execution));
    let part = match call.params {
        Some(_) => CallPart::Params,
        None => CallPart::Input,
    };
    let mut message = Object::new();
    let mut set = |key: &str, value: Value| drop(message.insert(key.into(), value));
    set("references", write_references(references_in(&call.references, part)));
    set("queue", queue.clone().into());
    set("execution", execution.into());
    set("flow", started.flow.clone().into());
    set("step", call.step.into());
    set("path", path.unwrap_or_else(|| Value::from(Vec::new())));
    set("type", call_type(call.rollback).into());
    set("attempt", call.attempt.into());
    set("key", key.into());
    set("stepKey", step_key.into());
    set("priority", u32::from(call.priority).into());
    if let Some(traceparent) = &started.terms.traceparent {
        set("traceparent", traceparent.clone().into());
    }
    if family.len() > 1 {
        let ancestors = family.iter().skip(1).cloned().map(Value::from);
        set("ancestors", Value::from(ancestors.collect::<Vec<_>>()));
    }
    set("input", call.params.unwrap_or(call.input));
    Value::Object(message).to_json()
}
