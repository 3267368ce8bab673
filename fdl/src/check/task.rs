//! `task` steps.

use super::Checker;
use super::cursor::Cursor;
use super::resource::Reach;
use crate::diagnostics::Code;
use crate::graph::{Call, Pattern, StepKind, Task};

impl Checker<'_> {
    /// A task's own fields.
    pub(super) fn task(&self, cursor: &Cursor<'_>) -> Option<StepKind> {
        let call = self.call(cursor, "task");
        let poll = cursor.member("poll").and_then(|poll| self.poll(&poll, call.as_ref()));
        let rollback = cursor
            .member("rollback")
            .and_then(|rollback| self.rollback(&rollback, call.as_ref()));
        let priority = cursor.member("priority").and_then(|field| self.priority(&field));
        let heartbeat = cursor.member("heartbeatSeconds").and_then(|field| {
            self.check_heartbeat(&field, call.as_ref());
            self.timeout(&field)
        });
        let wait = cursor.member("waitSeconds").and_then(|field| {
            self.check_wait_seconds(&field, call.as_ref());
            self.timeout(&field)
        });
        Some(StepKind::Task(Box::new(Task {
            call: call?,
            poll,
            rollback,
            priority,
            heartbeat,
            wait,
        })))
    }

    fn priority(&self, cursor: &Cursor<'_>) -> Option<u8> {
        self.whole(cursor, 0..=9)
            .and_then(|priority| u8::try_from(priority).ok())
    }

    fn check_heartbeat(&self, cursor: &Cursor<'_>, call: Option<&Call>) {
        let Some(call) = call else { return };
        if call.pattern != Pattern::WaitForCallback && !Reach::of(&call.resource).may_be(Reach::Queue) {
            let message = "nothing sends heartbeats to this task";
            self.report(
                cursor
                    .problem_of_key(Code::HeartbeatMisplaced, message)
                    .help("it goes with `pattern: waitForCallback` and with `queue:` resources"),
            );
        }
    }

    fn check_wait_seconds(&self, cursor: &Cursor<'_>, call: Option<&Call>) {
        let Some(call) = call else { return };
        if !Reach::of(&call.resource).may_be(Reach::Queue) {
            let message = "this task does not wait in a queue";
            self.report(
                cursor
                    .problem_of_key(Code::WaitSecondsMisplaced, message)
                    .help("it goes with `queue:` resources; `timeoutSeconds` bounds every task"),
            );
        }
    }
}
