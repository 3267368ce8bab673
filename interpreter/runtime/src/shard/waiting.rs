//! Starts that are not carried out yet. Such an execution is a record and a text in the store: it has no history, and is
//! in memory only while a request concerns it.

mod asked;
mod reorder;

use super::admission::ask_of_start;
use super::loaded::{LoadedExecution, Origin};
use super::{ForkRequest, Outgoing, Shard, StartError};
use asked::question;
use starbridge_flow::graph::{FaultKind, Flow};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EndBeforeStart, Rejection, Signal, StartRecord, State, Status, Waited, WaitedFor, WaitedKey};
use starbridge_ports::{
    Append, AuditEntry, ExecutionRecord, FLOW_POOL, KeptFork, KeptStart, Message, MessageId, PoolKey, RequestChange,
    StoreError, StoredHistory,
};
use std::sync::Arc;

/// An execution that waits to begin.
pub(super) struct WaitingStart {
    flow: Arc<Flow>,
    record: ExecutionRecord,
    kept: KeptStart,
    /// The history that it goes on from, if it is a fork and the history was found.
    pub(super) fork: Option<ForkRequest>,
    /// How many of its appends are not durable yet.
    pub(super) unsettled: u32,
}

/// What happens to a start at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Begin,
    TooLate,
    WaitUntil(Timestamp),
    /// Admission was asked, and there is no deadline.
    Wait,
}

/// What happens to a kept start at this time.
fn turn_at(kept: &KeptStart, now: Timestamp) -> Turn {
    let over = |deadline| now > deadline || now == deadline && kept.start_at > now;
    if kept.deadline.is_some_and(over) {
        Turn::TooLate
    } else if kept.start_at <= now {
        Turn::Begin
    } else {
        Turn::WaitUntil(
            kept.deadline
                .map_or(kept.start_at, |deadline| deadline.min(kept.start_at)),
        )
    }
}

/// What happens to a start that asked admission and is not admitted yet.
fn asked_turn_at(kept: &KeptStart, now: Timestamp) -> Turn {
    match kept.deadline {
        Some(deadline) if now > deadline => Turn::TooLate,
        Some(deadline) => Turn::WaitUntil(deadline.plus(Millis(1))),
        None => Turn::Wait,
    }
}

/// The start record that the first event of a kept start has.
fn begun(kept: KeptStart) -> Box<StartRecord> {
    let mut start = kept.start;
    let after = kept.after.into_iter().map(|dependency| WaitedFor {
        flow: dependency.flow,
        execution: dependency.execution,
        any_end: dependency.any_end,
    });
    let own = kept.flow_limited.then(|| PoolKey {
        pool: FLOW_POOL.into(),
        key: start.flow.clone(),
    });
    let keys = kept.keys.into_iter().map(|needed| needed.key).chain(own);
    let keys = keys.map(|PoolKey { pool, key }| WaitedKey { pool, key });
    start.terms.waited = Some(Waited {
        requested_time: kept.requested,
        start_at: Some(kept.start_at).filter(|start_at| *start_at > kept.requested),
        after: after.collect(),
        keys: keys.collect(),
    });
    start
}

impl Shard {
    /// Keeps a start until its time, or until it is admitted. [`Outgoing::Requested`] leaves when it is durable.
    pub(super) fn keep_start(
        &mut self,
        id: &Text,
        flow: Arc<Flow>,
        kept: KeptStart,
        origin: &Origin,
        now: Timestamp,
    ) -> Result<(), StartError> {
        let checked = self.guarded(id, now, |shard| {
            State::new(id.clone(), shard.shared_limits()).check_start(&flow, &kept.start.input)
        });
        match checked {
            Some(checked) => checked?,
            None => return Err(StartError::Panicked(self.take_cause(id).unwrap_or_default())),
        }
        self.keep(id, flow, kept, origin, None, now);
        Ok(())
    }

    /// Keeps a checked start until its time, or until it is admitted. For a fork, `fork` is the
    /// history that it goes on from.
    pub(super) fn keep(
        &mut self,
        id: &Text,
        flow: Arc<Flow>,
        mut kept: KeptStart,
        origin: &Origin,
        fork: Option<ForkRequest>,
        now: Timestamp,
    ) {
        let mut record = record_of(&kept, origin, now);
        kept.flow_limited = kept.start_at <= now && self.is_limited(&kept.start.flow);
        let question = (kept.start_at <= now).then(|| question(id, &kept, &mut record, now));
        let text = serde_json::to_string(&kept).unwrap_or_default();
        let appeared = self.appeared(id, &kept.start);
        let sent: Vec<Message> = question.into_iter().chain(appeared).collect();
        self.held.push(Outgoing::Requested { execution: id.clone() });
        self.held.extend(sent.iter().cloned().map(Outgoing::Message));
        self.pending.push(Append {
            execution: id.clone(),
            record: Some(record.clone()),
            request: RequestChange::Keep(text),
            sent,
            audit: fork.iter().filter_map(|fork| fork.audit_of(id)).collect(),
            ..Append::default()
        });
        let waiting = WaitingStart {
            flow,
            record,
            kept,
            fork,
            unsettled: 1,
        };
        self.waiting.insert(id.clone(), waiting);
        self.weigh_waiting(id);
    }

    /// Takes up an execution that waits to begin, as it was read. It begins if its time has come,
    /// and ends if it is too late.
    pub(crate) fn take_up_waiting(
        &mut self,
        id: &Text,
        stored: StoredHistory,
        fork: Option<ForkRequest>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.hold_waiting(id, stored, fork)?;
        self.look_at_waiting(id, now);
        Ok(())
    }

    /// Takes up an execution that waits to begin, as it was read. It does not begin, even if its
    /// time has come.
    pub(crate) fn hold_waiting(
        &mut self,
        id: &Text,
        stored: StoredHistory,
        fork: Option<ForkRequest>,
    ) -> Result<(), StoreError> {
        let corrupt = |why: &str| StoreError::Corrupt(format!("execution {id}: {why}"));
        let record = stored.record;
        let text = stored.request.ok_or_else(|| corrupt("how it begins is gone"))?;
        let kept = serde_json::from_str(&text).map_err(|_| corrupt("how it begins can't be read"))?;
        let flow = self.flows.running(&record.flow, record.version);
        let flow = flow.ok_or_else(|| corrupt("its flow is gone"))?;
        let waiting = WaitingStart {
            flow,
            record,
            kept,
            fork,
            unsettled: 0,
        };
        if !self.waits_to_begin(id) {
            self.waiting.insert(id.clone(), waiting);
            self.weigh_waiting(id);
        }
        Ok(())
    }

    fn look_at_waiting(&mut self, id: &Text, now: Timestamp) {
        let Some(waiting) = self.waiting.get(id) else {
            return;
        };
        if waiting.record.paused.is_some() {
            return self.rest_unless_resting(id, None);
        }
        match waiting.turn_at(now) {
            Turn::Begin if waiting.kept.admitted => self.begin_waiting(id, None, now),
            Turn::Begin => {
                let kept = &waiting.kept;
                let (flow, keys, after) = (kept.start.flow.clone(), kept.keys.clone(), kept.open_after().to_vec());
                match self.must_ask(&flow, &keys, &after) {
                    true => self.ask_for_waiting(id, now),
                    false => self.begin_waiting(id, None, now),
                }
            }
            Turn::TooLate => self.end_late(id, None, now),
            Turn::WaitUntil(until) => self.rest_unless_resting(id, Some(until)),
            Turn::Wait => self.rest_unless_resting(id, None),
        }
    }

    /// Makes sure that the record has this wake-up time; `None`: it sleeps until it is resumed.
    fn rest_unless_resting(&mut self, id: &Text, until: Option<Timestamp>) {
        let Some(waiting) = self.waiting.get(id) else {
            return;
        };
        let record = &waiting.record;
        if record.awake || record.wake_at != until || record.attempts > 0 {
            // An operator released it, or a process ended while it was looked at.
            self.rest(id, until, None, None);
        }
    }

    fn rest(&mut self, id: &Text, until: Option<Timestamp>, message: Option<MessageId>, audit: Option<AuditEntry>) {
        let Some(waiting) = self.waiting.get_mut(id) else {
            return;
        };
        let record = &mut waiting.record;
        record.awake = false;
        record.wake_at = until;
        record.attempts = 0;
        record.broken = None;
        waiting.unsettled += 1;
        self.pending.push(Append {
            execution: id.clone(),
            record: Some(record.clone()),
            received: message.into_iter().collect(),
            audit: audit.into_iter().collect(),
            ..Append::default()
        });
    }

    /// Stores that a waiting execution was paused or resumed. A resumed one begins if its time has
    /// come.
    pub(super) fn rest_waiting(
        &mut self,
        id: &Text,
        message: Option<MessageId>,
        audit: Option<AuditEntry>,
        now: Timestamp,
    ) {
        let Some(waiting) = self.waiting.get(id) else {
            return;
        };
        let until = match (waiting.turn_at(now), &waiting.record.paused) {
            (_, Some(_)) | (Turn::Wait, None) => None,
            (Turn::WaitUntil(until), None) => Some(until),
            (Turn::Begin | Turn::TooLate, None) => Some(now),
        };
        self.rest(id, until, message, audit);
        self.look_at_waiting(id, now);
    }

    /// The record of an execution that waits to begin.
    pub(super) fn waiting_record(&mut self, id: &str) -> Option<&mut ExecutionRecord> {
        self.waiting.get_mut(id).map(|waiting| &mut waiting.record)
    }

    /// Fails a start that had not begun in time.
    fn end_late(&mut self, id: &Text, message: Option<MessageId>, now: Timestamp) {
        let error = self.error_name(id, &FaultKind::StartDeadline);
        let cause = "it had not begun when its `startDeadlineSeconds` were over".to_owned();
        // A start that is declined is always taken.
        let _ = self.end_waiting(id, EndBeforeStart::Failed { error, cause }, message, now);
    }

    fn begin_waiting(&mut self, id: &Text, message: Option<MessageId>, now: Timestamp) {
        let fork = self.waiting.get(id).and_then(|waiting| waiting.kept.fork.clone());
        if let Some(KeptFork { of, .. }) = fork {
            return self.begin_kept_fork(id, &of, message, now);
        }
        let Some(kept) = self.load_waiting(id) else {
            return;
        };
        let again = kept.clone();
        let start = Signal::Start(begun(kept));
        let started = self.signal_with(id, start, message.clone(), now);
        self.weigh(id, again.start.input.json_len());
        if let Err(rejection) = started
            && let Some(live) = self.executions.get(id)
        {
            // The limits have changed since the request.
            let error = live.flow.fault_names.name(&FaultKind::Input).to_string();
            let cause = rejection.to_string();
            let end = EndBeforeStart::Failed { error, cause };
            let start = begun(again);
            let _ = self.signal_with(id, Signal::Decline { start, end }, message, now);
        }
    }

    /// Ends an execution that waits to begin.
    pub(super) fn end_waiting(
        &mut self,
        id: &Text,
        end: EndBeforeStart,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let kept = self.load_waiting(id).ok_or(Rejection::Unknown)?;
        let start = begun(kept);
        self.signal_with(id, Signal::Decline { start, end }, message, now)
    }

    /// Makes an execution of a kept start. It takes [`Signal::Start`] or [`Signal::Decline`] next.
    fn load_waiting(&mut self, id: &Text) -> Option<KeptStart> {
        let mut waiting = self.waiting.remove(id)?;
        // The limit or the pause may have come while it waited for something else.
        let has_asked = waiting.record.status != Status::Delayed;
        waiting.kept.flow_limited |= has_asked && self.is_limited(&waiting.kept.start.flow);
        let ancestors = waiting.kept.ancestors.iter().cloned();
        let origin = Origin::of_record(id, &waiting.record, ancestors);
        let state = State::new(id.clone(), self.limits.clone());
        let mut live = LoadedExecution::new(waiting.flow, state, origin);
        live.queues = self.fair_queue.is_some();
        live.heartbeats &= !self.heartbeats_elsewhere;
        live.attempts = waiting.record.attempts;
        live.unsettled = waiting.unsettled;
        live.watched = waiting.record.watched;
        live.change = RequestChange::Begin;
        self.executions.insert(id.clone(), live);
        Some(waiting.kept)
    }

    /// Gives a signal to an execution that waits to begin: a stop ends it, and it can be paused.
    pub(super) fn signal_waiting(
        &mut self,
        id: &Text,
        signal: Signal,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let (error, cause, by, rollback) = match signal {
            Signal::Stop {
                error,
                cause,
                by,
                rollback,
                ..
            } => (error, cause, by, rollback),
            Signal::Reorder { order, .. } => return self.reorder_waiting(id, order, now),
            signal => return self.pause_waiting(id, signal, message, now),
        };
        let end = EndBeforeStart::Stopped {
            error,
            cause,
            by,
            rollback,
        };
        self.end_waiting(id, end, message, now)
    }

    /// Notes that an append of an execution that waits to begin is durable.
    pub(super) fn settle_waiting(&mut self, id: &Text) {
        if let Some(waiting) = self.waiting.get_mut(id) {
            waiting.unsettled = waiting.unsettled.saturating_sub(1);
        }
    }

    /// Whether an execution that waits to begin is in memory.
    pub fn waits_to_begin(&self, execution: &str) -> bool {
        self.waiting.contains_key(execution)
    }

    /// The record and input of an execution that waits to begin and is in memory.
    pub(crate) fn waiting_start(&self, execution: &str) -> Option<(&ExecutionRecord, &Value)> {
        let waiting = self.waiting.get(execution)?;
        Some((&waiting.record, &waiting.kept.start.input))
    }

    /// The start record of an execution that waits to begin and is in memory.
    pub(super) fn waiting_start_record(&self, execution: &str) -> Option<&StartRecord> {
        let waiting = self.waiting.get(execution)?;
        Some(&waiting.kept.start)
    }

    /// The flow of an execution that waits to begin and is in memory.
    pub(super) fn waiting_flow(&self, execution: &str) -> Option<&Arc<Flow>> {
        self.waiting.get(execution).map(|waiting| &waiting.flow)
    }

    /// Whether any execution in memory waits for admission.
    pub(crate) fn awaits_admission(&self) -> bool {
        let mut statuses = self.waiting.values().map(|waiting| waiting.record.status);
        statuses.any(|status| status != Status::Delayed)
    }

    /// Removes executions that wait to begin from memory; the store has them. Returns them with the
    /// times to look at them.
    pub(crate) fn leave_waiting(&mut self) -> Vec<(Text, Option<Timestamp>)> {
        let durable = self.waiting.extract_if(.., |_, waiting| waiting.unsettled == 0);
        let left = durable.map(|(id, waiting)| (id, waiting.record.wake_at)).collect();
        self.forget_large_waiting();
        left
    }
}

/// The input of a start that the store keeps.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the text can't be read.
pub fn kept_input(execution: &str, request: &str) -> Result<Value, StoreError> {
    let kept: Result<KeptStart, _> = serde_json::from_str(request);
    let kept = kept.map_err(|_| StoreError::Corrupt(format!("execution {execution}: how it begins can't be read")))?;
    Ok(kept.start.input)
}

impl WaitingStart {
    /// How many bytes its input has, as compact JSON.
    pub(super) fn input_bytes(&self) -> usize {
        self.kept.start.input.json_len()
    }

    /// What happens to it at this time.
    fn turn_at(&self, now: Timestamp) -> Turn {
        match self.record.status {
            Status::Delayed => turn_at(&self.kept, now),
            _ if self.kept.admitted || self.kept.given_back => match asked_turn_at(&self.kept, now) {
                Turn::TooLate => Turn::TooLate,
                _ => Turn::Begin,
            },
            _ => asked_turn_at(&self.kept, now),
        }
    }
}

/// The record of an execution that waits to begin.
fn record_of(kept: &KeptStart, origin: &Origin, now: Timestamp) -> ExecutionRecord {
    let KeptStart { start, .. } = kept;
    let wake_at = match turn_at(kept, now) {
        Turn::WaitUntil(until) => until,
        Turn::Begin | Turn::TooLate | Turn::Wait => now,
    };
    ExecutionRecord {
        flow: start.flow.clone(),
        version: start.version,
        name: start.name.clone(),
        status: Status::Delayed,
        wake_at: Some(wake_at),
        started: now,
        requested: Some(now),
        labels: start.labels.clone(),
        once_key: start.terms.once_key.clone(),
        priority: start.terms.priority,
        order_time: start.terms.order_time,
        parent: start.parent.clone(),
        root: origin.root.clone(),
        depth: origin.depth,
        awaited: origin.awaited,
        forked: origin.forked.clone(),
        ..ExecutionRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(start_at: i64, deadline: Option<i64>) -> KeptStart {
        let start: StartRecord = serde_json::from_str(
            r#"{"flow": "f", "version": 1, "definition_hash": "", "machine": 0, "name": "n", "input": {}, "seed": 1,
                "labels": null, "parent": null}"#,
        )
        .unwrap();
        KeptStart {
            start: Box::new(start),
            requested: Timestamp(0),
            start_at: Timestamp(start_at),
            deadline: deadline.map(Timestamp),
            keys: Vec::new(),
            after: Vec::new(),
            ancestors: Vec::new(),
            admitted: false,
            given_back: false,
            met: false,
            flow_limited: false,
            fork: None,
        }
    }

    #[test]
    fn start_is_due_between_its_time_and_its_deadline() {
        for (start_at, deadline, now, turn) in [
            (10, None, 9, Turn::WaitUntil(Timestamp(10))),
            (10, None, 10, Turn::Begin),
            (10, None, 99, Turn::Begin),
            (10, Some(20), 9, Turn::WaitUntil(Timestamp(10))),
            (10, Some(20), 20, Turn::Begin),
            (10, Some(20), 21, Turn::TooLate),
            (30, Some(20), 19, Turn::WaitUntil(Timestamp(20))),
            (30, Some(20), 20, Turn::TooLate),
            (20, Some(20), 20, Turn::Begin),
        ] {
            assert_eq!(
                turn_at(&kept(start_at, deadline), Timestamp(now)),
                turn,
                "{start_at} {deadline:?} {now}"
            );
        }
    }

    #[test]
    fn kept_start_is_read_as_it_was_written() {
        let mut start = kept(10, Some(20));
        start.start.terms.priority = Some(7);
        let text = serde_json::to_string(&start).unwrap();
        let read: KeptStart = serde_json::from_str(&text).unwrap();
        assert_eq!(read.start, start.start);
        assert_eq!((read.start_at, read.deadline), (start.start_at, start.deadline));
    }
}
