//! Messages to executions of this shard.

use super::Shard;
use super::children::{failed, stop, submitted};
use super::pausing::{pause_child, resume_child};
use starbridge_flow::graph::{FaultKind, Origin as ErrorOrigin};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Signal, Status};
use starbridge_ports::{Message, MessageBody};

impl Shard {
    pub(super) fn take_message(&mut self, message: Message, now: Timestamp) {
        let Some(Message { id, body }) = self.take_word_of_admission(message, now) else {
            return;
        };
        let to = id.to.clone();
        let signal = match body {
            MessageBody::GivenUp => stop("the task that waited for it was given up"),
            MessageBody::Succeeded { call, version, output } => {
                self.take_submitted(&to, call, &id.from, version, now);
                Signal::Succeeded {
                    call,
                    result: output,
                    worker: None,
                    held_time: None,
                }
            }
            MessageBody::Failed {
                call,
                version,
                error,
                cause,
            } => {
                self.take_submitted(&to, call, &id.from, version, now);
                failed(call, &error, &cause)
            }
            MessageBody::Reported { call, output } => Signal::Succeeded {
                call,
                result: output,
                worker: None,
                held_time: None,
            },
            MessageBody::ReportedFailed { call, error, cause } => {
                self.reported_failed(&to, call, &error, cause.to_string())
            }
            MessageBody::Pause { by, cause } => pause_child(by, &cause),
            MessageBody::Resume { by } => resume_child(by),
            MessageBody::Stopped {
                error,
                cause,
                by,
                rollback,
                audit,
            } => {
                self.audited = audit.map(|audit| *audit);
                Signal::Stop {
                    error: error.map(|error| self.error_name(&to, &FaultKind::Outside(ErrorOrigin::Operator, error))),
                    cause: cause.to_string(),
                    by: by.map(|by| by.to_string()),
                    rollback,
                    with_parent: false,
                }
            }
            MessageBody::Ask(_)
            | MessageBody::Admit
            | MessageBody::Decline { .. }
            | MessageBody::Watch
            | MessageBody::Met
            | MessageBody::Ended { .. }
            | MessageBody::Withdrawn
            | MessageBody::Reorder { .. }
            | MessageBody::Appeared { .. } => return self.drop_message(id),
        };
        let taken = self.awaits_signal(&to, &signal) && self.signal_with(&to, signal, Some(id.clone()), now).is_ok();
        self.audited = None;
        if !taken {
            self.drop_message(id);
        }
    }

    /// Whether a signal that came with a message still means something to an execution.
    fn awaits_signal(&self, execution: &str, signal: &Signal) -> bool {
        let Some(state) = self.state(execution) else {
            return self.waits_to_begin(execution);
        };
        match signal {
            Signal::Succeeded { call, .. } | Signal::Failed { call, .. } => state.is_in_flight(*call),
            Signal::Pause { .. } | Signal::Resume { .. } => true,
            _ => matches!(state.status(), Status::Running | Status::Manual),
        }
    }

    /// Delivers the child's beginning before its end, even if a crash came between them.
    fn take_submitted(&mut self, parent: &Text, call: EventId, child: &Text, version: u64, now: Timestamp) {
        if self.state(parent).is_some_and(|state| state.is_to_be_sent(call)) {
            let _ = self.signal(parent, submitted(call, child.clone(), version), now);
        }
    }
}
