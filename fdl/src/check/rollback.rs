//! `rollback`: how a task is undone.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::local::MappingContext;
use super::resource::Reach;
use super::retry::Policies;
use crate::diagnostics::Code;
use crate::graph::{Call, Pattern, Rollback, Undo};

impl Checker<'_> {
    /// A task's `rollback`.
    pub(super) fn rollback(&self, cursor: &Cursor<'_>, call: Option<&Call>) -> Option<Rollback> {
        if !self.check_fields(cursor, &fields::ROLLBACK, &[]) {
            return None;
        }
        let child = cursor.member("child");
        let (undo, undoing) = match &child {
            Some(child) => {
                self.check_child(cursor, child, call);
                (Some(Undo::Child), None)
            }
            None => {
                let undoing = self.call(cursor, "rollback");
                (undoing.clone().map(Undo::Call), undoing)
            }
        };
        let enter = self.mappings(cursor, "inputMappings", MappingContext::Rollback);
        if let Some(undoing) = &undoing {
            self.check_token(cursor, undoing, enter.as_deref());
        }
        let timeout = cursor.member("timeoutSeconds").and_then(|field| self.timeout(&field));
        let retry = self.retry(cursor, Policies::Rollback);
        let poll = cursor
            .member("poll")
            .and_then(|poll| self.poll(&poll, undoing.as_ref()));
        self.check_calling(cursor, undoing.as_ref());
        let calling = self.calling(&|field| cursor.member(field));
        Some(Rollback {
            undo: undo?,
            enter,
            timeout,
            retry,
            poll,
            priority: calling.priority,
            heartbeat: calling.heartbeat,
            wait: calling.wait,
        })
    }

    fn check_child(&self, cursor: &Cursor<'_>, child: &Cursor<'_>, call: Option<&Call>) {
        if self.flag(child) == Some(false) {
            let found = child.problem(Code::OutOfRange, "`child` can only be true");
            self.report(found.help("leave it out and say what undoes the task"));
        }
        for (name, member) in cursor.members().filter(|(name, _)| *name != "child") {
            if fields::ROLLBACK.has(name) {
                let message = format!("`{name}` has no meaning beside `child`");
                let found = member.problem_of_key(Code::ChildNotAlone, message);
                self.report(found.help("the child flow undoes itself, by its own rollbacks"));
            }
        }
        let Some(call) = call else { return };
        if !Reach::of(&call.resource).may_be(Reach::Child) || call.pattern != Pattern::Sync {
            let message = "this task does not wait for a child flow that could be undone";
            let found = child.problem_of_key(Code::ChildMisplaced, message);
            self.report(found.help("`child` goes with a `flow:` resource and `pattern: sync`"));
        }
    }
}
