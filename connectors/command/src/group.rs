//! A program and everything it starts, as one process group.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Kills the rest of a process group when it is dropped.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that is led by a child which was started with `process_group(0)`.
    pub(crate) fn led_by(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    /// Kills the rest of the group now. Call it as soon as the leader has ended: later the number may belong to
    /// another process.
    pub(crate) fn end(&mut self) {
        if let Some(group) = self.0.take() {
            // Usually nothing is left, which is the error that is ignored here.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
