//! `task` steps.

use super::Checker;
use super::cursor::Cursor;
use super::resource::Reach;
use crate::diagnostics::Code;
use crate::graph::{Call, Pattern, StepKind, Task};
use crate::time::Millis;

/// How a call waits in a queue, and how it is supervised.
pub(super) struct Calling {
    /// 0–9, if given.
    pub(super) priority: Option<u8>,
    /// Longest silence.
    pub(super) heartbeat: Option<Millis>,
    /// Longest waiting before a worker takes it.
    pub(super) wait: Option<Millis>,
}

impl Checker<'_> {
    /// A task's own fields.
    pub(super) fn task(&self, cursor: &Cursor<'_>) -> Option<StepKind> {
        let call = self.call(cursor, "task");
        let poll = cursor.member("poll").and_then(|poll| self.poll(&poll, call.as_ref()));
        let rollback = cursor
            .member("rollback")
            .and_then(|rollback| self.rollback(&rollback, call.as_ref()));
        self.check_calling(cursor, call.as_ref());
        let calling = self.calling(&|field| self.fixed(cursor, field));
        let total_timeout = self
            .fixed(cursor, "totalTimeoutSeconds")
            .and_then(|field| self.timeout(&field));
        Some(StepKind::Task(Box::new(Task {
            call: call?,
            poll,
            rollback,
            priority: calling.priority,
            heartbeat: calling.heartbeat,
            wait: calling.wait,
            total_timeout,
        })))
    }

    /// The fields of a task or a rollback about waiting and supervision, as far as `member` gives
    /// them.
    pub(super) fn calling<'c>(&self, member: &dyn Fn(&str) -> Option<Cursor<'c>>) -> Calling {
        let timeout = |field: &str| member(field).and_then(|field| self.timeout(&field));
        Calling {
            priority: member("priority").and_then(|field| self.priority(&field)),
            heartbeat: timeout("heartbeatSeconds"),
            wait: timeout("waitSeconds"),
        }
    }

    /// Whether `heartbeatSeconds` and `waitSeconds` are meaningful for this call.
    pub(super) fn check_calling(&self, cursor: &Cursor<'_>, call: Option<&Call>) {
        if let Some(field) = cursor.member("heartbeatSeconds") {
            self.check_heartbeat(&field, call);
        }
        if let Some(field) = cursor.member("waitSeconds") {
            self.check_wait_seconds(&field, call);
        }
    }

    fn priority(&self, cursor: &Cursor<'_>) -> Option<u8> {
        if cursor.str().is_some_and(|text| text.parse::<f64>().is_err()) {
            let message = format!("{} must be a whole number, not a string", cursor.called());
            let found = cursor.problem(Code::WrongType, message);
            self.report(found.help("9 is taken first, 0 last, and 5 is usual"));
            return None;
        }
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
