//! Starts that are not carried out yet. Such an execution is a record and a text in the store: it has no history, and is
//! here only while somebody asks for it.

use super::loaded::{LoadedExecution, Origin};
use super::{Outgoing, Shard, StartError};
use starbridge_flow::graph::{FaultKind, Flow};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EndBeforeStart, Rejection, Signal, StartRecord, State, Status, Waited};
use starbridge_ports::{
    Append, AuditEntry, ExecutionRecord, KeptStart, MessageId, RequestChange, StoreError, StoredHistory,
};
use std::sync::Arc;

/// An execution that waits to begin.
pub(super) struct WaitingStart {
    flow: Arc<Flow>,
    record: ExecutionRecord,
    kept: KeptStart,
    /// How many of its appends are not durable yet.
    unsettled: u32,
}

/// What becomes of a start at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Begin,
    TooLate,
    WaitUntil(Timestamp),
}

/// What becomes of a start that was kept.
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

/// What the first event of a start that was kept records.
fn begun(kept: KeptStart) -> Box<StartRecord> {
    let mut start = kept.start;
    start.terms.waited = Some(Waited {
        requested_time: kept.requested,
        start_at: Some(kept.start_at),
    });
    start
}

/// The times of a start that is to be kept.
#[derive(Clone, Copy)]
pub(super) struct StartTimes {
    pub(super) start_at: Timestamp,
    pub(super) deadline: Option<Timestamp>,
}

impl Shard {
    /// Keeps a start until its time. [`Outgoing::Requested`] leaves when it is durable.
    pub(super) fn keep_start(
        &mut self,
        id: &Text,
        flow: Arc<Flow>,
        start: StartRecord,
        times: StartTimes,
        now: Timestamp,
    ) -> Result<(), StartError> {
        let checked = self.guarded(id, now, |shard| {
            State::new(id.clone(), shard.shared_limits()).check_start(&flow, &start.input)
        });
        match checked {
            Some(checked) => checked?,
            None => return Err(StartError::Panicked(self.take_cause(id).unwrap_or_default())),
        }
        let kept = KeptStart {
            start: Box::new(start),
            requested: now,
            start_at: times.start_at,
            deadline: times.deadline,
        };
        let record = record_of(&kept, now);
        let text = serde_json::to_string(&kept).unwrap_or_default();
        self.pending.push(Append {
            execution: id.clone(),
            record: Some(record.clone()),
            request: RequestChange::Keep(text),
            ..Append::default()
        });
        self.held.push(Outgoing::Requested { execution: id.clone() });
        let waiting = WaitingStart {
            flow,
            record,
            kept,
            unsettled: 1,
        };
        self.waiting.insert(id.clone(), waiting);
        Ok(())
    }

    /// Takes an execution that waits to begin, as it was read. It begins if it is time, and ends if it is too late.
    pub(crate) fn take_up_waiting(
        &mut self,
        id: &Text,
        stored: StoredHistory,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.hold_waiting(id, stored)?;
        self.look_at_waiting(id, now);
        Ok(())
    }

    /// Takes an execution that waits to begin, as it was read. It does not begin, even if it is time.
    pub(crate) fn hold_waiting(&mut self, id: &Text, stored: StoredHistory) -> Result<(), StoreError> {
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
            unsettled: 0,
        };
        if !self.waits_to_begin(id) {
            self.waiting.insert(id.clone(), waiting);
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
        match turn_at(&waiting.kept, now) {
            Turn::Begin => self.begin_waiting(id, now),
            Turn::TooLate => {
                let error = waiting.flow.fault_names.name(&FaultKind::StartDeadline).to_string();
                let cause = "it had not begun when its `startDeadlineSeconds` were over".to_owned();
                // A start that is declined is always taken.
                let _ = self.end_waiting(id, EndBeforeStart::Failed { error, cause }, None, now);
            }
            Turn::WaitUntil(until) => self.rest_unless_resting(id, Some(until)),
        }
    }

    /// Makes sure that the record says that the execution sleeps until then; `None`: until it is resumed.
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

    /// Stores that an execution which waits to begin was paused or goes on. In the second case it begins if it is time.
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
        let until = match (turn_at(&waiting.kept, now), &waiting.record.paused) {
            (_, Some(_)) => None,
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

    fn begin_waiting(&mut self, id: &Text, now: Timestamp) {
        let Some(kept) = self.load_waiting(id) else {
            return;
        };
        let again = kept.clone();
        let started = self.signal(id, Signal::Start(begun(kept)), now);
        if let Err(rejection) = started
            && let Some(live) = self.executions.get(id)
        {
            // The limits are other ones than when it was asked for.
            let error = live.flow.fault_names.name(&FaultKind::Input).to_string();
            let cause = rejection.to_string();
            let end = EndBeforeStart::Failed { error, cause };
            let start = begun(again);
            let _ = self.signal(id, Signal::Decline { start, end }, now);
        }
    }

    /// Ends an execution that waits to begin.
    fn end_waiting(
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

    /// Makes an execution of a start that was kept. It takes [`Signal::Start`] or [`Signal::Decline`] next.
    fn load_waiting(&mut self, id: &Text) -> Option<KeptStart> {
        let waiting = self.waiting.remove(id)?;
        let origin = Origin {
            family: vec![id.clone()],
            ..Origin::default()
        };
        let state = State::new(id.clone(), self.limits.clone());
        let mut live = LoadedExecution::new(waiting.flow, state, origin);
        live.queues = self.fair_queue.is_some();
        live.heartbeats &= !self.heartbeats_elsewhere;
        live.attempts = waiting.record.attempts;
        live.unsettled = waiting.unsettled;
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
        let Signal::Stop {
            error,
            cause,
            by,
            rollback,
        } = signal
        else {
            return self.pause_waiting(id, signal, message, now);
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

    /// Whether an execution is here that waits to begin.
    pub fn waits_to_begin(&self, execution: &str) -> bool {
        self.waiting.contains_key(execution)
    }

    /// The record and input of an execution that is here and waits to begin.
    pub(crate) fn waiting_start(&self, execution: &str) -> Option<(&ExecutionRecord, &Object)> {
        let waiting = self.waiting.get(execution)?;
        Some((&waiting.record, &waiting.kept.start.input))
    }

    /// The flow of an execution that is here and waits to begin.
    pub(super) fn waiting_flow(&self, execution: &str) -> Option<&Arc<Flow>> {
        self.waiting.get(execution).map(|waiting| &waiting.flow)
    }

    /// Leaves those that wait to begin to the store, which has them. Returns them with the times to look at them.
    pub(crate) fn leave_waiting(&mut self) -> Vec<(Text, Option<Timestamp>)> {
        let durable = self.waiting.extract_if(.., |_, waiting| waiting.unsettled == 0);
        durable.map(|(id, waiting)| (id, waiting.record.wake_at)).collect()
    }
}

/// The input in how an execution begins, as the store keeps it.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the text can't be read.
pub fn kept_input(execution: &str, request: &str) -> Result<Object, StoreError> {
    let kept: Result<KeptStart, _> = serde_json::from_str(request);
    let kept = kept.map_err(|_| StoreError::Corrupt(format!("execution {execution}: how it begins can't be read")))?;
    Ok(kept.start.input)
}

/// The record of an execution that waits to begin.
fn record_of(kept: &KeptStart, now: Timestamp) -> ExecutionRecord {
    let KeptStart { start, .. } = kept;
    let wake_at = match turn_at(kept, now) {
        Turn::WaitUntil(until) => until,
        Turn::Begin | Turn::TooLate => now,
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
