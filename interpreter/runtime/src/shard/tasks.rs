//! Tasks of worker queues (section "worker queues"). A call to `queue:NAME` becomes a task, which is stored with the
//! call's turn and removed with the turn that ends the call. It is not sent: workers poll for it.

use super::{Outgoing, Shard};
use crate::queues::FairQueue;
use crate::references::{references_in, write_references};
use starbridge_flow::graph::{FaultKind, Flow, Origin, StepId};
use starbridge_flow::limits::is_name;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{
    CallPart, CallToSend, Event, EventId, EventKind, Failure, Signal, StartRecord, State, StepPath, call_type,
};
use starbridge_ports::{Append, AuditEntry, DeadTask, DeadTasksCleared, QueuedTask, ResourceFamily};
use std::sync::Arc;

/// Whether a turn changes the order of its execution.
pub(super) fn is_reordered(turn: &[Event]) -> bool {
    let first = turn.first().map(|event| &event.detail);
    matches!(first, Some(EventKind::ExecutionReordered { .. }))
}

/// Whether a turn begins to drain its execution.
fn begins_draining(turn: &[Event]) -> bool {
    let first = turn.first().map(|event| &event.detail);
    matches!(first, Some(EventKind::ExecutionTimedOut { drain: true }))
}

impl Shard {
    /// Makes calls to `queue:NAME` tasks of queues. Without this they leave like any other call.
    pub fn queue_tasks(&mut self, fair_queue: Arc<FairQueue>) {
        self.fair_queue = Some(fair_queue);
    }

    /// The queue of a call, if its resource is one.
    pub(super) fn queue_of(&self, call: &CallToSend) -> Option<Text> {
        match call.child {
            Some(_) => None,
            None if self.posted_to(call).is_some() => None,
            None => self.queue_behind(&call.resource).map(|(queue, _)| queue),
        }
    }

    /// The queue that a resource leads to, and by which names.
    pub(super) fn queue_behind(&self, resource: &str) -> Option<(Text, ResourceFamily)> {
        self.fair_queue.as_ref()?;
        let may_be = resource.starts_with("queue:") || !self.resources.is_empty();
        if !may_be {
            return None;
        }
        let resolved = self.resources.resolve(resource)?;
        let name = resolved.target.strip_prefix("queue:")?;
        is_name(name).then(|| (Text::from(name), resolved.via))
    }

    /// Takes the tasks of these calls out of their queues. An earlier version put a message there as a task of the execution
    /// that sent it, and waited for the worker.
    pub(super) fn withdraw_messages(&mut self, id: &Text, calls: &[CallToSend]) {
        let messages = calls.iter().filter_map(|call| Some((self.posted_to(call)?, call.call)));
        let messages: Vec<(Text, EventId)> = messages.collect();
        let Some(live) = self.executions.get_mut(id).filter(|_| !messages.is_empty()) else {
            return;
        };
        live.unsettled += 1;
        self.pending.push(Append {
            execution: id.clone(),
            expected: live.state.last_event(),
            unqueued: messages.iter().map(|(_, call)| *call).collect(),
            ..Append::default()
        });
        self.held
            .extend(messages.into_iter().map(|(queue, call)| Outgoing::Unqueued {
                queue,
                execution: id.clone(),
                call,
            }));
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
            holder: None,
        }
    }

    /// The task of a call. The time it may wait counts from when it was scheduled, without pauses.
    pub(super) fn task(&mut self, id: &Text, queue: Text, call: CallToSend, now: Timestamp) -> Option<QueuedTask> {
        let fair_queue = self.fair_queue.clone()?;
        let live = self.executions.get_mut(id)?;
        live.queued.insert(call.call, queue.clone());
        let prepared = live.prepared.remove(&call.call);
        let started = live.state.started()?;
        let waits_from = live.state.queued_since(call.call).unwrap_or(now);
        let task = QueuedTask {
            virtual_time: fair_queue.give(&queue, call.priority, id),
            execution: id.clone(),
            priority: call.priority,
            order: started
                .terms
                .order_time
                .map_or_else(|| live.state.started_time(), Timestamp),
            since: now,
            wait_until: match live.state.is_draining() && !call.rollback {
                // Nothing new begins.
                true => Some(now),
                false => call.wait.map(|longest| waits_from.plus(longest)),
            },
            timeout: call.timeout,
            heartbeat: call.heartbeat,
            call: call.call,
            message: match prepared {
                Some(message) => message,
                None => message(started, (&live.flow, &live.state), &live.origin.family, &queue, call),
            },
            queue,
        };
        Some(task)
    }

    /// Prepares the messages of the tasks that the end of a pause puts back into their queues: about `bytes` more of them.
    /// Returns whether nothing is left to prepare. What is not prepared is made when the pause ends.
    pub(crate) fn prepare_tasks(&mut self, id: &str, bytes: usize) -> bool {
        let Some(live) = self.executions.get_mut(id) else {
            return true;
        };
        let paused = live.state.paused().is_some();
        let Some(started) = live.state.started().filter(|_| paused) else {
            live.prepared.clear();
            return true;
        };
        let after = live.prepared.last_key_value().map_or(EventId(0), |(call, _)| *call);
        let (mut made, mut bytes_made) = (Vec::new(), 0);
        for (call, queue) in live.queued.range(after.next()..) {
            if bytes_made >= bytes {
                break;
            }
            if let Some(to_send) = live.state.call_to_send(&live.flow, *call) {
                let message = message(started, (&live.flow, &live.state), &live.origin.family, queue, to_send);
                bytes_made += message.len();
                made.push((*call, message));
            }
        }
        live.prepared.extend(made);
        bytes_made < bytes
    }

    /// Puts the tasks that no worker holds into their queues again, because their order or the end
    /// of their waiting time has changed. Tasks of a paused execution are in no queue.
    fn queue_anew(&mut self, id: &Text, append: &mut Append, now: Timestamp) {
        let Some(live) = self.executions.get_mut(id) else {
            return;
        };
        if live.state.paused().is_some() {
            live.prepared.clear();
            return;
        }
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

    /// Adds to an append the tasks that end with these events, and those of them that failed for
    /// good.
    pub(super) fn end_tasks(&mut self, id: &Text, events: &[Event], append: &mut Append) {
        let anew = is_reordered(events) || begins_draining(events);
        if let Some(first) = events.first().filter(|_| anew) {
            self.queue_anew(id, append, first.time);
        }
        if events
            .iter()
            .any(|event| matches!(event.detail, EventKind::ExecutionRedriven { .. }))
        {
            append.dead_cleared = DeadTasksCleared::All;
        }
        let Some(live) = self.executions.get_mut(id) else {
            return;
        };
        let undos = std::mem::take(&mut live.undone_again);
        if !undos.is_empty() {
            append.dead_cleared = DeadTasksCleared::Calls(undos);
        }
        if live.queued.is_empty() && live.undecided.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        for event in events {
            // Of the events that end thousands of tasks together none decides anything.
            if decides(&event.detail) {
                live.undecided.retain(|_, task| task.stays_undecided(event));
            }
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
            let task = UndecidedTask::of(queue, event.step, event.path.clone(), event.time);
            live.undecided.insert(call, task);
        }
        // What a pause or the bounds of a turn hold back is decided in a later turn.
        if live.state.paused().is_none() && !live.state.must_continue() {
            let decided = std::mem::take(&mut live.undecided);
            let dead = decided
                .into_iter()
                .filter_map(|(call, task)| task.dead(&live.flow, id, call));
            append.dead.extend(dead);
        }
        self.held.extend(gone);
    }

    /// Finds the failed tasks of a loaded execution whose consequence is not decided yet.
    pub(super) fn note_undecided(&mut self, id: &Text) {
        let Some(live) = self.executions.get(id).filter(|live| live.queues) else {
            return;
        };
        if live.state.paused().is_none() && !live.state.must_continue() {
            return;
        }
        let time = live.state.last_time();
        let calls = live.state.undecided_calls(&live.flow).into_iter();
        let tasks = calls.filter_map(|found| {
            let (queue, _) = self.queue_behind(&found.resource)?;
            let task = UndecidedTask::of(queue, Some(found.step), found.path, time);
            Some((found.call, task))
        });
        let tasks = tasks.collect();
        if let Some(live) = self.executions.get_mut(id) {
            live.undecided = tasks;
        }
    }

    /// Whether a call is a task of a queue.
    pub(crate) fn is_in_queue(&self, execution: &str, call: EventId) -> bool {
        let live = self.executions.get(execution);
        live.is_some_and(|live| live.queued.contains_key(&call))
    }

    /// Removes these tasks of a loaded execution from the list of dead tasks.
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

/// A task of a queue that ended and whose consequence is not decided yet.
pub(super) struct UndecidedTask {
    queue: Text,
    step: Option<StepId>,
    path: StepPath,
    /// When it ended.
    time: Timestamp,
    /// The failure of its step, and the attempt.
    failed: Option<(Failure, u32)>,
}

/// Whether an event may decide what follows from the end of a task.
fn decides(detail: &EventKind) -> bool {
    matches!(
        detail,
        EventKind::StepFailed { .. }
            | EventKind::RollbackFailed { .. }
            | EventKind::RetryScheduled { .. }
            | EventKind::StepExited { .. }
            | EventKind::ManualRequested(_)
    )
}

impl UndecidedTask {
    fn of(queue: Text, step: Option<StepId>, path: StepPath, time: Timestamp) -> Self {
        Self {
            queue,
            step,
            path,
            time,
            failed: None,
        }
    }

    /// Takes an event into account. Returns false if the step goes on after all: then the task does
    /// not count as failed for good.
    fn stays_undecided(&mut self, event: &Event) -> bool {
        if self.step != event.step || self.path != event.path {
            return true;
        }
        match &event.detail {
            EventKind::StepFailed { failure, attempt } => self.failed = Some((failure.clone(), *attempt)),
            EventKind::RollbackFailed { failure, .. } => {
                let attempt = self.failed.as_ref().map_or(1, |(_, attempt)| *attempt);
                self.failed = Some((failure.clone(), attempt));
            }
            EventKind::RetryScheduled { .. } | EventKind::StepExited { .. } | EventKind::ManualRequested(_) => {
                return false;
            }
            _ => {}
        }
        true
    }

    /// The dead task, if its failure was not caught and is not tried again.
    fn dead(self, flow: &Flow, execution: &Text, call: EventId) -> Option<DeadTask> {
        let (failure, attempt) = self.failed?;
        let step = self.step.and_then(|step| flow.step(step));
        Some(DeadTask {
            queue: self.queue,
            execution: execution.clone(),
            call,
            step: step.map(|step| step.name.clone()).unwrap_or_default(),
            attempt,
            error: failure.error,
            cause: failure.cause,
            time: self.time,
        })
    }
}

/// The message for a worker, without the parts that are known only when the worker takes the task.
/// Its first member is not for the worker: it lists the places of `input` that hold references.
fn message(
    started: &StartRecord,
    (flow, state): (&Flow, &State),
    family: &[Text],
    queue: &Text,
    call: CallToSend,
) -> String {
    let path = state.call_path(call.call).map(|path| write_path(flow, path));
    let execution = family.first().cloned().unwrap_or_default();
    let (key, step_key) = (call.idempotency_key(&execution), call.step_key(&execution));
    let part = match call.params {
        Some(_) => CallPart::Params,
        None => CallPart::Input,
    };
    let mut message = Message(Vec::with_capacity(512));
    message.value("references", &write_references(references_in(&call.references, part)));
    message.text("queue", queue);
    message.text("execution", &execution);
    message.text("flow", &started.flow);
    message.text("step", &call.step);
    message.value("path", &path.unwrap_or_else(|| Value::from(Vec::new())));
    message.text("type", call_type(call.rollback));
    message.value("attempt", &call.attempt.into());
    message.text("key", &key);
    message.text("stepKey", &step_key);
    message.value("priority", &u32::from(call.priority).into());
    if let Some(traceparent) = &started.terms.traceparent {
        message.text("traceparent", traceparent);
    }
    if family.len() > 1 {
        let ancestors = family.iter().skip(1).cloned().map(Value::from);
        message.value("ancestors", &Value::from(ancestors.collect::<Vec<_>>()));
    }
    message.value("input", &call.params.unwrap_or(call.input));
    message.finish()
}

/// An object that is written member by member: the text is all that is needed of it.
struct Message(Vec<u8>);

impl Message {
    /// Begins a member. The name must need no escapes.
    fn begin(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.begin(name);
        let _ = serde_json::to_writer(&mut self.0, text);
    }

    fn value(&mut self, name: &str, value: &Value) {
        self.begin(name);
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    fn finish(mut self) -> String {
        self.0.push(b'}');
        String::from_utf8(self.0).unwrap_or_default()
    }
}
