//! Batches: decisions that are not durable yet, and the output that waits for them.

use super::admission::ended_message;
use super::loaded::LoadedExecution;
use super::ownership::is_of;
use super::pausing::PauseChange;
use super::tasks::is_reordered;
use super::{Outgoing, Shard};
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{CallToSend, Event, EventId, EventKind, State, history};
use starbridge_ports::{
    ADMISSION, Append, AttemptLog, Message, MessageBody, MessageId, Refusal, ShardSet, Turn, shard_of,
};

/// A batch that is being appended.
#[derive(Default)]
pub(super) struct InFlightBatch {
    /// The execution of each append, in order.
    executions: Vec<Text>,
    /// The bytes of each append.
    bytes: Vec<usize>,
    /// The output that leaves once the batch is durable.
    held: Vec<Outgoing>,
}

/// How many of the appends that wait to be taken are counted, and their bytes.
#[derive(Default)]
pub(super) struct CountedPending {
    appends: usize,
    bytes: usize,
}

impl InFlightBatch {
    pub(super) fn is_of(&self, id: &Text) -> bool {
        self.executions.contains(id)
    }

    /// The shards whose appends were refused because another owner has them.
    fn fenced(&self, refusals: &[(usize, Refusal)]) -> ShardSet {
        let fenced = refusals.iter().filter(|(_, refusal)| *refusal == Refusal::Fenced);
        let fenced = fenced.filter_map(|(index, _)| self.executions.get(*index));
        let known = fenced.filter(|execution| !execution.is_empty());
        known.map(|execution| shard_of(execution)).collect()
    }

    /// Drops what is of executions of these shards.
    pub(super) fn forget(&mut self, shards: &ShardSet) {
        self.held.retain(|outgoing| !is_of(outgoing, shards));
        for id in &mut self.executions {
            if shards.has_execution(id) {
                *id = Text::default();
            }
        }
    }
}

/// The stored form of the turn with these events. `before` is the number of the last event before them.
pub(crate) fn stored_turn(flow: &Flow, before: EventId, events: &[Event]) -> Turn {
    Turn {
        first: before.next(),
        events: u32::try_from(events.len()).unwrap_or(u32::MAX),
        time: events.first().map(|event| event.time).unwrap_or_default(),
        text: history::write_turn(flow, events),
    }
}

impl Shard {
    /// Adds the events of a turn, and all their consequences, to the next batch.
    pub(super) fn append(&mut self, id: &Text, before: EventId, events: Vec<Event>, message: Option<MessageId>) {
        let (every, audit) = (self.checkpoint_events, self.audited.take());
        let log = self.logged.take().map(|text| AttemptLog::of(before.next(), text));
        let Some(live) = self.executions.get_mut(id) else {
            return;
        };
        let new: Vec<_> = live.state.calls_to_send_after(&live.flow, before).collect();
        let now = events.first().map(|event| event.time).unwrap_or_default();
        let pause = self.pause_change(id);
        let (mut calls, mut queued) = match pause {
            PauseChange::Over => self.after_pause(id, now),
            PauseChange::Began | PauseChange::None => Default::default(),
        };
        let (leaving, put) = self.split_calls(id, new, now);
        calls.extend(leaving);
        queued.extend(put);
        let Some(live) = self.executions.get_mut(id) else {
            return;
        };
        let turn = stored_turn(&live.flow, before, &events);
        let checkpoint = live.count(events.len() as u64, turn.text.len(), every);
        let standing = live.standing();
        let told = live.kept.as_ref().map(|kept| kept.status);
        // The first turn after a failed attempt stores that the count is zero again.
        let changed = live.kept.as_ref() != Some(&standing)
            || live.attempts > 0
            || standing.status.is_ended()
            || is_reordered(&events);
        live.attempts = 0;
        live.kept = Some(standing.clone());
        live.unsettled += 1;
        // An execution that had ended takes a turn only to go on. It may have ended again in that
        // turn.
        let ended = standing.status.is_ended();
        let mut append = Append {
            execution: id.clone(),
            expected: before,
            record: changed.then(|| live.record(&standing)),
            checkpoint,
            sent: live.messages_of_end(id, ended),
            received: message.into_iter().collect(),
            turn: Some(turn),
            request: std::mem::take(&mut live.change),
            queued,
            audit: audit.into_iter().collect(),
            logs: log.into_iter().collect(),
            ..Append::default()
        };
        if before == EventId(0) {
            let start = self.start_of(id);
            let appeared = start.and_then(|start| self.appeared(id, start));
            append.sent.extend(appeared);
        }
        self.end_tasks(id, &events, &mut append);
        self.collect_notices(id, told, &events, &mut append);
        append.sent.extend(self.child_cancellations(id, &events));
        self.spread_pause(id, &pause, &events, &mut append);
        self.hold_what_follows(id, &append, events);
        self.hold_calls(id, calls);
        if ended {
            self.held.push(Outgoing::Ended {
                execution: id.clone(),
                status: standing.status,
            });
        }
        self.pending.push(append);
        self.went_on(id);
    }

    /// Handles the outstanding calls of an execution that was loaded. Calls that are tasks of
    /// queues are already stored in their queues, unless the resource map has changed since and
    /// only now leads them to a queue.
    pub(super) fn take_up_calls(&mut self, id: &Text, calls: Vec<CallToSend>, now: Timestamp, new: bool) {
        let stands = |call: &CallToSend| !new && self.state(id).is_some_and(|state| state.is_queued(call.call));
        let (standing, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| stands(call));
        let lost = self.note_queued(id, standing);
        if !new {
            self.withdraw_messages(id, &calls);
        }
        let (mut leaving, queued) = match self.is_paused(id) {
            // They go into their queues when it goes on.
            true => (self.note_queued(id, calls), Vec::new()),
            false => self.split_calls(id, calls, now),
        };
        leaving.extend(lost);
        if let Some(live) = self.executions.get_mut(id).filter(|_| !queued.is_empty()) {
            live.unsettled += 1;
            let append = Append {
                execution: id.clone(),
                expected: live.state.last_event(),
                queued,
                ..Append::default()
            };
            self.hold_tasks(&append);
            self.pending.push(append);
        }
        self.hold_calls(id, leaving);
    }

    /// Lets calls leave with the next batch, and records the remaining work of an execution.
    pub(super) fn hold_calls(&mut self, id: &Text, calls: Vec<CallToSend>) {
        for call in calls {
            self.note_sync(id, &call);
            self.held.push(Outgoing::Send {
                execution: id.clone(),
                call: Box::new(call),
            });
        }
        if self.state(id).is_some_and(State::must_continue) {
            self.continuing.push_back(id.clone());
        }
        self.note_wakeup(id);
    }

    fn hold_what_follows(&mut self, id: &Text, append: &Append, events: Vec<Event>) {
        for event in &events {
            let given_up = match &event.detail {
                EventKind::TaskCancelled { of, .. } => *of,
                EventKind::TaskTimedOut { .. } => event.caused_by,
                _ => continue,
            };
            self.held.push(Outgoing::Cancel {
                execution: id.clone(),
                call: given_up,
            });
        }
        self.hold_tasks(append);
        self.held.push(Outgoing::Turn {
            execution: id.clone(),
            events,
        });
        if append.expected == EventId(0) {
            let live = self.executions.get(id);
            self.held.push(Outgoing::Started {
                execution: id.clone(),
                status: live.map(|live| live.state.status()).unwrap_or_default(),
            });
        }
        let incoming = append.sent.iter().cloned().map(Outgoing::Message);
        self.held.extend(incoming);
    }

    /// Marks a message that changes nothing as handled.
    pub(super) fn drop_message(&mut self, message: MessageId) {
        let execution = message.to.clone();
        let live = self.executions.get_mut(&execution).filter(|live| !live.deleted);
        let expected = live.map(|live| {
            live.unsettled += 1;
            live.state.last_event()
        });
        self.pending.push(Append {
            execution,
            expected: expected.unwrap_or_default(),
            received: vec![message],
            ..Append::default()
        });
    }

    /// Asks for [`Outgoing::Mark`] with this number once everything decided so far is durable.
    pub fn mark(&mut self, number: u64) {
        self.held.push(Outgoing::Mark(number));
    }

    /// How many turns wait to be appended.
    pub fn backlog(&self) -> usize {
        self.pending.len()
    }

    /// The bytes that wait to be appended.
    pub fn backlog_bytes(&mut self) -> usize {
        self.count_pending();
        self.counted.bytes
    }

    /// The bytes of an execution in memory that are decided and not durable yet.
    pub(crate) fn undurable_bytes(&mut self, execution: &str) -> usize {
        self.count_pending();
        self.executions.get(execution).map_or(0, |live| live.undurable_bytes)
    }

    /// Counts the appends that were added since the last time.
    fn count_pending(&mut self) {
        for append in self.pending.iter().skip(self.counted.appends) {
            let bytes = append.bytes();
            self.counted.appends += 1;
            self.counted.bytes += bytes;
            if let Some(live) = self.executions.get_mut(&append.execution) {
                live.undurable_bytes += bytes;
            }
        }
    }

    /// Whether there is a batch to append.
    pub fn has_batch(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Counts what is left after appends were taken back. Those of other executions stay counted as theirs.
    pub(super) fn recount_pending(&mut self) {
        let left = self.pending.iter().take(self.counted.appends);
        let bytes = left.map(Append::bytes).sum();
        self.counted.appends = self.counted.appends.min(self.pending.len());
        self.counted.bytes = bytes;
    }

    /// Takes the turns that are decided and not in flight yet. Pass the refusals of each batch to
    /// [`Shard::committed`] in the order in which the batches were taken.
    pub fn take_batch(&mut self) -> Vec<Append> {
        self.count_pending();
        self.counted = CountedPending::default();
        let mut batch = std::mem::take(&mut self.pending);
        self.put_epochs(&mut batch);
        self.in_flight.push_back(InFlightBatch {
            executions: batch.iter().map(|append| append.execution.clone()).collect(),
            bytes: batch.iter().map(Append::bytes).collect(),
            held: std::mem::take(&mut self.held),
        });
        batch
    }

    /// Records that the oldest batch in flight is durable, except for the refused appends. The
    /// output that waited for it may leave.
    pub fn committed(&mut self, refusals: &[(usize, Refusal)]) {
        let Some(batch) = self.in_flight.pop_front() else {
            return;
        };
        for (id, bytes) in batch.executions.iter().zip(&batch.bytes) {
            match self.executions.get_mut(id) {
                Some(live) => {
                    live.unsettled = live.unsettled.saturating_sub(1);
                    live.undurable_bytes = match live.unsettled {
                        0 => 0,
                        _ => live.undurable_bytes.saturating_sub(*bytes),
                    };
                }
                None => self.settle_waiting(id),
            }
        }
        let refused: Vec<&Text> = refusals
            .iter()
            .filter_map(|(index, _)| batch.executions.get(*index))
            .collect();
        for (index, refusal) in refusals {
            if let (Some(execution), Refusal::Exists { .. }) = (batch.executions.get(*index), refusal) {
                self.refuse(execution, refusal.clone());
            }
        }
        for execution in &refused {
            self.waiting.remove(*execution);
        }
        let fenced = batch.fenced(refusals);
        self.fenced = self.fenced.with(&fenced);
        // Appends after a refused start are refused with it. If the execution is still loaded,
        // another process extended it.
        let here =
            |execution: &&&Text| self.executions.contains_key(execution.as_str()) && !fenced.has_execution(execution);
        let lost = refused.iter().filter(here).map(|execution| (*execution).clone());
        self.lost.extend(lost);
        self.lost.dedup();
        let stands = |outgoing: &Outgoing| {
            outgoing.execution().is_none_or(|of| !refused.contains(&of)) && !is_of(outgoing, &fenced)
        };
        let held: Vec<Outgoing> = batch.held.into_iter().filter(stands).collect();
        // A parent hears that its children began before it hears how any of them ended.
        for outgoing in &held {
            if let Outgoing::Started { execution, .. } | Outgoing::Requested { execution } = outgoing {
                self.tell_of_appearance(execution);
                self.notify_parent_of_start(execution);
            }
        }
        held.into_iter().for_each(|outgoing| self.release(outgoing));
        for (id, bytes) in batch.executions.into_iter().zip(batch.bytes) {
            self.forget_deleted(&id);
            self.weigh(&id, bytes);
            self.note_idle(id);
        }
    }

    /// Takes the executions whose appends were refused because another process extended their
    /// histories. Their states here are out of date: [`Shard::forget`] them.
    pub fn take_lost(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.lost)
    }

    /// Releases held output that has nothing to append, or ties it to the last batch in flight. While there is a batch to take, all
    /// of it waits for that one.
    pub(crate) fn release_what_waits_for_nothing(&mut self) {
        if self.held.is_empty() || self.has_batch() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        match self.in_flight.back_mut() {
            Some(batch) => batch.held.extend(held),
            None => held.into_iter().for_each(|outgoing| self.release(outgoing)),
        }
    }

    fn release(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Send { execution, call } if self.is_paused(&execution) => self.hold_back(&execution, call.call),
            Outgoing::Send { execution, call } if self.is_for_child(&execution, &call) => {
                self.call_child(&execution, call);
            }
            Outgoing::Message(message) if message.id.to == ADMISSION => self.tell_admission(message),
            Outgoing::Message(message) => self.deliver(message),
            Outgoing::Ended { ref execution, status } => {
                self.notify_parent_of_undo(execution, status);
                self.outgoing.push_back(outgoing);
            }
            other => self.outgoing.push_back(other),
        }
    }

    /// Drops an execution whose name or id is taken. Nothing of it was stored.
    fn refuse(&mut self, execution: &Text, refusal: Refusal) {
        self.notify_parent_of_refusal(execution, &refusal);
        self.forget(execution);
        self.outgoing.push_back(Outgoing::Refused {
            execution: execution.clone(),
            refusal,
        });
    }
}

impl LoadedExecution {
    /// The messages about the end of an execution: to the parent that waits, to the call that it
    /// reports to, and to admission.
    fn messages_of_end(&self, id: &Text, ended: bool) -> Vec<Message> {
        let watched = ended && self.watched;
        let told = watched.then(|| ended_message(id, self.state.last_event(), self.state.status()));
        let parent = self.parent_message(ended).into_iter();
        parent.chain(self.report_message(ended)).chain(told).collect()
    }

    /// The report of the end, if the start names a call to report to.
    fn report_message(&self, ended: bool) -> Option<Message> {
        let started = self.state.started().filter(|_| ended)?;
        let told = started.terms.report_to.as_ref()?;
        let call = told.event;
        let body = match (self.state.output(), self.state.failure()) {
            (_, Some(failure)) => MessageBody::ReportedFailed {
                call,
                error: failure.error.clone(),
                cause: failure.cause.clone(),
            },
            (output, None) => MessageBody::Reported {
                call,
                output: output.cloned().unwrap_or_else(Value::empty_object),
            },
        };
        Some(Message {
            id: MessageId {
                from: self.state.execution().clone(),
                event: self.state.last_event(),
                to: told.execution.clone(),
            },
            body,
        })
    }

    /// The message to the parent that waits for this execution, if it has ended.
    fn parent_message(&self, ended: bool) -> Option<Message> {
        let started = self.state.started().filter(|_| ended && self.origin.awaited)?;
        let parent = started.parent.as_ref()?;
        let call = parent.event;
        let body = match (self.state.output(), self.state.failure()) {
            (_, Some(failure)) => MessageBody::Failed {
                call,
                version: started.version,
                error: failure.error.clone(),
                cause: failure.cause.clone(),
            },
            (output, None) => MessageBody::Succeeded {
                call,
                version: started.version,
                output: output.cloned().unwrap_or_else(Value::empty_object),
            },
        };
        Some(Message {
            id: MessageId {
                from: self.state.execution().clone(),
                event: self.state.last_event(),
                to: parent.execution.clone(),
            },
            body,
        })
    }
}

impl Outgoing {
    /// The execution it belongs to.
    pub(super) fn execution(&self) -> Option<&Text> {
        match self {
            Self::Started { execution, .. }
            | Self::Requested { execution }
            | Self::Refused { execution, .. }
            | Self::Send { execution, .. }
            | Self::Cancel { execution, .. }
            | Self::Turn { execution, .. }
            | Self::Unqueued { execution, .. }
            | Self::Withdrawn { execution, .. }
            | Self::Noticed { execution }
            | Self::Ended { execution, .. } => Some(execution),
            Self::Queued(task) => Some(&task.execution),
            Self::Message(message) => Some(&message.id.from),
            Self::Mark(_) => None,
        }
    }
}
