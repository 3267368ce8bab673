//! Executions that are set aside. An execution that panicked is tried again from the store, and set
//! aside after the third panic in a row. One that ended the process is also set aside. An operator
//! can stop an execution that is set aside, or release it.

use super::Engine;
use super::replies::Reply;
use crate::shard::{MAX_TRIES, Outgoing, ended_message, stored_turn};
use starbridge_flow::graph::{FaultKind, Origin};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, EventKind, Failure, Rejection, Signal, Status, StepPath, history};
use starbridge_ports::{
    Append, AuditEntry, Broken, CULPRIT, DeadTasksCleared, ExecutionRecord, Mark, Message, MessageBody, MessageId,
    RecordedFailure, StoreError, StoredHistory,
};

/// The content of a stop.
struct Stop {
    error: Option<String>,
    cause: String,
    by: Option<String>,
    audit: Option<AuditEntry>,
}

impl Engine {
    /// Cancels calls of executions that panicked. They are sent again when the execution is loaded again.
    pub(super) fn give_up_panicked(&mut self) {
        for execution in self.shard.take_panicked() {
            self.calls.give_up_those_of(&execution);
            self.heartbeats.forget_all_of(&execution);
        }
    }

    /// Tries executions that panicked again, or sets them aside.
    pub(super) fn see_to_aside(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.give_up_panicked();
        if self.shard.next_aside().is_none_or(|next| next > now) {
            return Ok(());
        }
        for due in self.shard.aside_due(now) {
            if due.tries >= MAX_TRIES {
                let cause = format!("going on with it panicked {MAX_TRIES} times in a row: {}", due.cause);
                self.set_broken(&due.execution, &cause)?;
                continue;
            }
            self.shard.take_back(&due.execution);
            self.fetch(&due.execution)?;
            // Its parent may not know yet that it began.
            self.shard.repeat_start_to_parent(&due.execution);
        }
        Ok(())
    }

    /// Sets aside an execution that ended the process.
    pub(super) fn set_culprit_aside(&mut self, execution: &str, stored: &StoredHistory) -> Result<(), StoreError> {
        let step = self.last_step(stored);
        let after = step
            .map(|step| format!(", last seen at step `{step}`"))
            .unwrap_or_default();
        let cause = format!(
            "the process came to its end {CULPRIT} times while it was gone on with, twice of them with nothing beside it{after}"
        );
        self.set_broken(&execution.into(), &cause)
    }

    fn set_broken(&mut self, execution: &Text, cause: &str) -> Result<(), StoreError> {
        let stored = self.deps.history.load_whole(execution)?.unwrap_or_default();
        let step = self.last_step(&stored).unwrap_or_default();
        let (flow, version) = (&stored.record.flow, stored.record.version);
        tracing::error!(%execution, %flow, version, %step, cause, "an execution is set aside");
        let broken = Broken {
            since: self.now(),
            cause: cause.into(),
        };
        self.deps
            .history
            .mark(&[(execution.clone(), Mark::Broken(broken.clone()))], None)?;
        self.shard.set_aside(execution, &broken);
        self.let_go(execution)
    }

    /// The step of the last event of a history.
    fn last_step(&self, stored: &StoredHistory) -> Option<Text> {
        let flow = self.shard.flows().running(&stored.record.flow, stored.record.version)?;
        let turn = stored.turns.last()?;
        let events = history::read_turn(&flow, turn.first, turn.time, &turn.text).ok()?;
        let step = events.iter().rev().find_map(|event| event.step)?;
        flow.step(step).map(|step| step.name.clone())
    }

    /// Takes an operator's signal to an execution that is set aside or waits to be tried again.
    pub(super) fn signal_aside(
        &mut self,
        id: &Text,
        signal: Signal,
        audit: Option<AuditEntry>,
        now: Timestamp,
    ) -> Result<Reply, StoreError> {
        if matches!(signal, Signal::LeaseEnded { .. } | Signal::TimedOut { .. }) {
            // Queues send this only once, and offer the task again when its execution goes on.
            self.shard.retain_signal(id, signal);
            return Ok(Reply::Held);
        }
        if self.shard.is_unsettled(id) {
            return Ok(Reply::Held);
        }
        match signal {
            // It did not fail in a step, so no step can take another input.
            Signal::Redrive { inputs, .. } if !inputs.is_empty() => {
                let event = inputs.first().map(|edited| edited.event).unwrap_or_default();
                let known = Vec::new();
                Ok(Reply::Rejected(Rejection::NotEnteredAgain { event, known }))
            }
            Signal::Redrive { .. } => {
                let released = audit.map(|entry| AuditEntry {
                    action: "release".into(),
                    ..entry
                });
                self.deps
                    .history
                    .mark(&[(id.clone(), Mark::Whole)], released.as_ref())?;
                self.shard.take_back(id);
                self.fetch(id)?;
                self.shard.put_tasks_again(id, now);
                self.shard.repeat_start_to_parent(id);
                Ok(Reply::Taken)
            }
            Signal::Stop { .. } => self.stop_aside(id, signal, audit, now),
            _ if self.shard.is_set_aside(id) => Ok(Reply::SetAside),
            _ => Ok(Reply::Held),
        }
    }

    /// Stops an execution in the usual way. If that panics, or the execution ended the process last time, stops it
    /// without computing anything.
    fn stop_aside(
        &mut self,
        id: &Text,
        signal: Signal,
        audit: Option<AuditEntry>,
        now: Timestamp,
    ) -> Result<Reply, StoreError> {
        let Some(mut stored) = self.deps.history.load(id)? else {
            return Ok(Reply::NoSuchExecution);
        };
        if stored.has_not_begun() {
            // It has no history to go on with: the stop enters no step.
            self.shard.take_back(id);
            let fork = self.fork_to_begin(id, &stored)?;
            self.shard.hold_waiting(id, stored, fork)?;
            return Ok(match self.shard.signal_audited(id, signal, audit, now) {
                Ok(()) => Reply::Taken,
                Err(rejection) => Reply::Rejected(rejection),
            });
        }
        let broken = stored.record.broken.is_some();
        if !broken || stored.record.attempts == 0 {
            if broken {
                self.deps.history.mark(&[(id.clone(), Mark::Failed)], None)?;
                stored.record.attempts = 1;
            }
            self.shard.take_back(id);
            match self.take_up_stored(id, stored, None) {
                Ok(_) | Err(StoreError::Corrupt(_)) => {}
                Err(error) => return Err(error),
            }
            if self.shard.state(id).is_some() {
                match self.shard.signal_audited(id, signal.clone(), audit.clone(), now) {
                    Ok(()) => return Ok(Reply::Taken),
                    Err(Rejection::Unknown | Rejection::Finished) => {}
                    Err(rejection) => return Ok(Reply::Rejected(rejection)),
                }
            }
            self.shard.throw_away(id);
        }
        let Signal::Stop { error, cause, by, .. } = signal else {
            return Ok(Reply::Held);
        };
        self.give_up_panicked();
        let stop = Stop {
            error,
            cause,
            by,
            audit,
        };
        self.end_without_computing(id, stop, now)
    }

    /// Appends the stop and the end to a history without folding it: no call is cancelled and nothing is undone.
    fn end_without_computing(&mut self, id: &Text, stop: Stop, now: Timestamp) -> Result<Reply, StoreError> {
        let Some(stored) = self.deps.history.load_whole(id)? else {
            return Ok(Reply::NoSuchExecution);
        };
        let mut record = stored.record;
        if record.ended.is_some() {
            return Ok(Reply::Rejected(Rejection::Finished));
        }
        let Some(flow) = self.shard.flows().running(&record.flow, record.version) else {
            return Ok(Reply::NoSuchExecution);
        };
        let last = stored.turns.last().map_or(EventId(0), starbridge_ports::Turn::last);
        let said = stop.error.as_deref();
        let error = said.map(|said| Text::from(flow.fault_names.outside(Origin::Operator, said).as_ref()));
        let error = error.unwrap_or_else(|| flow.fault_names.name(&FaultKind::Stopped));
        let failure = Failure {
            error: error.clone(),
            cause: Text::from(stop.cause.as_str()),
        };
        let event = Event {
            id: last.next(),
            caused_by: last,
            time: now,
            step: None,
            path: StepPath::default(),
            rollback: false,
            detail: EventKind::ExecutionStopped {
                failure,
                by: stop.by.map(Text::from),
            },
        };
        record.status = Status::Stopped;
        (record.awake, record.wake_at, record.ended) = (false, None, Some(now));
        (record.attempts, record.broken, record.paused) = (0, None, None);
        record.failure = Some(RecordedFailure {
            error,
            cause: Text::from(stop.cause.as_str()),
            step: Text::default(),
        });
        let append = Append {
            execution: id.clone(),
            expected: last,
            turn: Some(stored_turn(&flow, last, std::slice::from_ref(&event))),
            sent: parent_message(id, event.id, &record)
                .into_iter()
                .chain(record.watched.then(|| ended_message(id, event.id, Status::Stopped)))
                .collect(),
            record: Some(record),
            dead_cleared: DeadTasksCleared::None,
            audit: stop.audit.into_iter().collect(),
            ..Append::default()
        };
        let outgoing = vec![
            Outgoing::Turn {
                execution: id.clone(),
                events: vec![event],
            },
            Outgoing::Ended {
                execution: id.clone(),
                status: Status::Stopped,
            },
        ];
        self.shard.end_unseen(append, outgoing);
        Ok(Reply::Taken)
    }

    /// Gives back the lease of an execution that is set aside, if there are leases.
    pub(super) fn let_go(&mut self, execution: &str) -> Result<(), StoreError> {
        match &self.deps.leases {
            Some(leases) => leases.release(execution).map(drop),
            None => Ok(()),
        }
    }
}

/// The message to the parent of an execution that was stopped, if the parent waits for it.
fn parent_message(id: &Text, event: EventId, record: &ExecutionRecord) -> Option<Message> {
    let parent = record.parent.as_ref().filter(|_| record.awaited)?;
    let failure = record.failure.as_ref()?;
    Some(Message {
        id: MessageId {
            from: id.clone(),
            event,
            to: parent.execution.clone(),
        },
        body: MessageBody::Failed {
            call: parent.event,
            version: record.version,
            error: failure.error.clone(),
            cause: failure.cause.clone(),
        },
    })
}
