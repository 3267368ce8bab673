//! Changes of status that others are to be told of (section "history", notifications): kept with the turn that made them.

use super::loaded::LoadedExecution;
use super::{Outgoing, Shard};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, EventKind, Status};
use starbridge_ports::{Append, KeptNotice, Record, RecordedFailure};
use std::sync::Arc;

/// An execution's status is another one, or one more of its steps waits for an operator.
#[derive(Clone, Copy, Debug)]
pub struct StatusChange<'a> {
    /// The execution.
    pub execution: &'a Text,
    /// The last event of the turn that made the change.
    pub event: EventId,
    /// When.
    pub time: Timestamp,
    /// What is known of the execution from now on.
    pub record: &'a Record,
    /// Why: what a step that waits for an operator failed with, what the execution fails with.
    pub failure: Option<&'a RecordedFailure>,
}

/// Who is to be told of a change, and what.
pub(super) type Tell = Arc<dyn Fn(&StatusChange<'_>) -> Vec<KeptNotice> + Send + Sync>;

impl Shard {
    /// Keeps with each change of a status what `tell` says of it.
    pub fn notify(&mut self, tell: impl Fn(&StatusChange<'_>) -> Vec<KeptNotice> + Send + Sync + 'static) {
        self.tell = Some(Arc::new(tell));
    }

    /// Puts into a turn's append what others are to be told of it. `told` is the status the store was told of before.
    pub(super) fn tell(&mut self, id: &Text, told: Option<Status>, events: &[Event], append: &mut Append) {
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

/// What a step asks an operator about.
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
