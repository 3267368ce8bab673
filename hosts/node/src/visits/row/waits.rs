//! What a visit, or its undoing, waits for.

use super::{Call, Row, Status};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Failure, StepPath};
use starbridge_ports::WaitingReason;

/// What an open visit waits for.
#[derive(Clone, Debug)]
pub struct OpenWait {
    /// Why it does not go on. The history does not record whether a worker holds a task: such a
    /// task is in its queue.
    pub reason: WaitingReason,
    /// The event that entered the step.
    pub event: EventId,
    /// The event that asks an operator, if it waits for one.
    pub request: Option<EventId>,
    /// The name of the step.
    pub step: Text,
    /// The composites around it.
    pub path: StepPath,
    /// Whether the undoing of the step waits.
    pub rollback: bool,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Since when.
    pub since: Timestamp,
    /// The point in time that it waits for.
    pub until: Option<Timestamp>,
    /// The call that is out.
    pub call: Option<EventId>,
    /// When that call times out.
    pub timeout_at: Option<Timestamp>,
    /// What was called.
    pub resource: Option<Text>,
    /// The queue of the task.
    pub queue: Option<Text>,
    /// The execution that the call started.
    pub child: Option<Text>,
    /// The error that caused the retry or the question to an operator.
    pub failure: Option<Failure>,
}

impl Row {
    /// What it waits for; `None` if it is over, or waits for steps inside it.
    pub fn open_wait(&self) -> Option<OpenWait> {
        let undo = self.undo.as_ref().filter(|undo| undo.status.is_open());
        let (status, call, failure) = match undo {
            Some(undo) => (undo.status, &undo.call, &undo.failure),
            None => (self.status, &self.call, &self.failure),
        };
        let reason = match (status, call) {
            (Status::Manual, _) => WaitingReason::Manual,
            (Status::Waiting, _) => WaitingReason::Timer,
            (Status::Retrying, _) => WaitingReason::Retry,
            (Status::Polling, _) => WaitingReason::Poll,
            (Status::Running, Some(call)) => call.reason(),
            _ => return None,
        };
        let call = call.as_ref().filter(|_| status == Status::Running);
        let stopped = matches!(reason, WaitingReason::Manual | WaitingReason::Retry);
        Some(OpenWait {
            reason,
            event: EventId(self.event),
            request: self.request().filter(|_| undo.is_none()),
            step: self.step.clone(),
            path: self.path.clone(),
            rollback: undo.is_some(),
            attempt: undo.map_or(self.attempts, |undo| undo.attempts),
            since: undo.map_or(self.changed, |undo| undo.changed),
            until: undo.map_or(self.until, |undo| undo.until),
            call: call.map(|call| call.number),
            timeout_at: call.and_then(|call| call.timeout_at),
            resource: call.map(|call| call.resource.clone()),
            queue: call.and_then(|call| call.queue().map(Text::from)),
            child: call.and_then(|call| call.child.clone()),
            failure: failure.clone().filter(|_| stopped),
        })
    }
}

impl Call {
    fn reason(&self) -> WaitingReason {
        if self.queue().is_some() {
            WaitingReason::Queue
        } else if self.child.is_some() {
            WaitingReason::Child
        } else if self.reported {
            WaitingReason::Callback
        } else {
            WaitingReason::Call
        }
    }
}
