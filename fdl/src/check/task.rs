//! `task` steps.

use super::Checker;
use super::resource::Reach;
use super::spot::Cursor;
use crate::diagnostics::Code;
use crate::graph::{Call, Pattern, StepKind, Task};

/// The priority of whatever gives none.
pub(super) const PRIORITY: u8 = 5;

impl Checker<'_> {
    /// A task's own fields.
    pub(super) fn task(&self, spot: &Cursor<'_>) -> Option<StepKind> {
        let call = self.call(spot, "task");
        let poll = spot.member("poll").and_then(|poll| self.poll(&poll, call.as_ref()));
        let rollback = spot
            .member("rollback")
            .and_then(|rollback| self.rollback(&rollback, call.as_ref()));
        let priority = spot.member("priority").and_then(|field| self.priority(&field));
        let heartbeat = spot.member("heartbeatSeconds").and_then(|field| {
            self.check_heartbeat(&field, call.as_ref());
            self.timeout(&field)
        });
        let wait = spot.member("waitSeconds").and_then(|field| {
            self.check_wait_seconds(&field, call.as_ref());
            self.timeout(&field)
        });
        Some(StepKind::Task(Box::new(Task {
            call: call?,
            poll,
            rollback,
            priority: priority.unwrap_or(PRIORITY),
            heartbeat,
            wait,
        })))
    }

    fn priority(&self, spot: &Cursor<'_>) -> Option<u8> {
        self.whole(spot, 0..=9).and_then(|priority| u8::try_from(priority).ok())
    }

    fn check_heartbeat(&self, spot: &Cursor<'_>, call: Option<&Call>) {
        let Some(call) = call else { return };
        if call.pattern != Pattern::WaitForCallback && !Reach::of(&call.resource).may_be(Reach::Queue) {
            let message = "nothing sends heartbeats to this task";
            self.report(
                spot.problem_of_key(Code::HeartbeatMisplaced, message)
                    .help("it goes with `pattern: waitForCallback` and with `queue:` resources"),
            );
        }
    }

    fn check_wait_seconds(&self, spot: &Cursor<'_>, call: Option<&Call>) {
        let Some(call) = call else { return };
        if !Reach::of(&call.resource).may_be(Reach::Queue) {
            let message = "this task does not wait in a queue";
            self.report(
                spot.problem_of_key(Code::WaitSecondsMisplaced, message)
                    .help("it goes with `queue:` resources; `timeoutSeconds` bounds every task"),
            );
        }
    }
}
