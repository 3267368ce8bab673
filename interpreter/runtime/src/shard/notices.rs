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

/// Makes the notices about a change, each for a target.
pub(super) type NoticeSource = Arc<dyn Fn(&StatusChange<'_>) -> Vec<KeptNotice> + Send + Sync>;

impl Shard {
    /// Stores with each status change the notices that `tell` makes of it.
    pub fn notify(&mut self, tell: impl Fn(&StatusChange<'_>) -> Vec<KeptNotice> + Send + Sync + 'static) {
        self.tell = Some(Arc::new(tell));
    }

    /// Adds notices about a turn to its append. `told` is the status that the store knew before.
    pub(super) fn collect_notices(&mut self, id: &Text, told: Option<Status>, events: &[Event], append: &mut Append) {
        let (Some(tell), Some(live)) = (&self.tell, self.executions.get(id)) else {
            return;
        };
        let standing = live.kept.unwrap_or_else(|| live.standing());
        let asked = match standing.status {
            Status::Manual => events.iter().rev().find_map(|event| request(live, event)),
            _ => None,
        };
        if told == Some(standing.status) && asked.is_none() {
            return;
        }
        let record = live.record(standing);
        append.notices = tell(&StatusChange {
            execution: id,
            event: live.state.last_event(),
            time: live.state.last_time(),
            failure: asked.as_ref().or(record.failure.as_ref()),
            record: &record,
        });
        if !append.notices.is_empty() {
            self.held.push(Outgoing::Noticed { execution: id.clone() });
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
