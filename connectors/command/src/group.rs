//! A program and all it starts: one process group.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Kills what is left of a process group once nobody waits for it any more.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group a child that was started with `process_group(0)` leads.
    pub(crate) fn led_by(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    /// Kills what is left of it, now. To be called as soon as the leader has ended: the number may be another's later.
    pub(crate) fn end(&mut self) {
        if let Some(group) = self.0.take() {
            // Mostly nothing is left, which is the error ignored here.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
