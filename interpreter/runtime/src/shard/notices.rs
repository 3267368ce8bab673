//! Notices of status changes (section "history", notifications). They are stored with the turn that makes the change.

use super::loaded::LoadedExecution;
use super::{Outgoing, Shard};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, EventKind, Status};
use starbridge_ports::{Append, ExecutionRecord, KeptNotice, RecordedFailure};
use std::sync::Arc;

/// A change of an execution's status, or one more step that waits for an operator.
#[derive(Clone, Copy, Debug)]
pub struct StatusChange<'a> {
    /// The id of the execution.
    pub execution: &'a Text,
    /// The last event of the turn that made the change.
    pub event: EventId,
    /// The time of that turn.
    pub time: Timestamp,
    /// The record of the execution after the change.
    pub record: &'a ExecutionRecord,
    /// The reason, if there is one: the failure of the step that waits for an operator, or of the execution.
    pub failure: Option<&'a RecordedFailure>,
}

/// What a target may want to be told besides changes of status.
#[derive(Clone, Copy, Debug)]
pub struct StepEvent<'a> {
    /// The id of the execution.
    pub execution: &'a Text,
    /// As the history has it.
    pub event: &'a Event,
    /// The name of the step.
    pub step: &'a Text,
    /// The record of the execution after the turn.
    pub record: &'a ExecutionRecord,
}

/// Makes the notices about a change, one for each target.
pub(super) type NoticeSource = Arc<dyn Fn(&StatusChange<'_>) -> Vec<KeptNotice> + Send + Sync>;
/// Makes the notices about an event of a step.
pub(super) type StepNoticeSource = Arc<dyn Fn(&StepEvent<'_>) -> Vec<KeptNotice> + Send + Sync>;

impl Shard {
    /// Stores with each status change the notices that `tell` makes of it.
    pub fn notify(&mut self, tell: impl Fn(&StatusChange<'_>) -> Vec<KeptNotice> + Send + Sync + 'static) {
        self.tell = Some(Arc::new(tell));
    }

    /// Stores with each turn the notices that `tell` makes of its events of steps.
    pub fn notify_of_steps(&mut self, tell: impl Fn(&StepEvent<'_>) -> Vec<KeptNotice> + Send + Sync + 'static) {
        self.tell_steps = Some(Arc::new(tell));
    }

    /// Adds the notices about a turn to its append. `told` is the status that the store knew before.
    pub(super) fn collect_notices(&mut self, id: &Text, told: Option<Status>, events: &[Event], append: &mut Append) {
        self.collect_notices_of_steps(id, events, append);
        self.collect_notices_of_status(id, told, events, append);
        if !append.notices.is_empty() {
            self.held.push(Outgoing::Noticed { execution: id.clone() });
        }
    }

    fn collect_notices_of_steps(&self, id: &Text, events: &[Event], append: &mut Append) {
        let (Some(tell), Some(live)) = (&self.tell_steps, self.executions.get(id)) else {
            return;
        };
        let standing = live.kept.clone().unwrap_or_else(|| live.standing());
        let record = live.record(&standing);
        for event in events {
            if let Some(step) = event.step.and_then(|step| live.flow.step(step)) {
                append.notices.extend(tell(&StepEvent {
                    execution: id,
                    event,
                    step: &step.name,
                    record: &record,
                }));
            }
        }
    }

    /// Adds notices about the change of status of a turn to its append. `told` is the status that the store knew before.
    fn collect_notices_of_status(&self, id: &Text, told: Option<Status>, events: &[Event], append: &mut Append) {
        let (Some(tell), Some(live)) = (&self.tell, self.executions.get(id)) else {
            return;
        };
        let standing = live.kept.clone().unwrap_or_else(|| live.standing());
        let asked = match standing.status {
            Status::Manual => events.iter().rev().find_map(|event| request(live, event)),
            _ => None,
        };
        if told == Some(standing.status) && asked.is_none() {
            return;
        }
        let record = live.record(&standing);
        let notices = tell(&StatusChange {
            execution: id,
            event: live.state.last_event(),
            time: live.state.last_time(),
            failure: asked.as_ref().or(record.failure.as_ref()),
            record: &record,
        });
        // A target has one notice for an event: the notice about a step at the turn's last event
        // takes precedence.
        for notice in notices {
            let same = |kept: &KeptNotice| kept.target == notice.target && kept.event == notice.event;
            if !append.notices.iter().any(same) {
                append.notices.push(notice);
            }
        }
    }
}

/// The failure for which a step waits for an operator.
fn request(live: &LoadedExecution, event: &Event) -> Option<RecordedFailure> {
    let EventKind::ManualRequested(failure) = &event.detail else {
        return None;
    };
    let step = event.step.and_then(|step| live.flow.step(step));
    Some(RecordedFailure {
        error: failure.error.clone(),
        cause: failure.cause.clone(),
        step: step.map(|step| step.name.clone()).unwrap_or_default(),
    })
}
