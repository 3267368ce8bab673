//! The version of the machine that a history needs.

use crate::event::{EventKind, StartRecord};

/// What every version reads.
const FIRST: u32 = 1;
/// Terms of a start, numbers from a step's input, drained executions, redrives with another input or definition, skipped undos, pauses,
/// changed orders, operators of forks, notes of operators, and workers whose tasks failed.
const SECOND: u32 = 2;

impl StartRecord {
    /// The lowest version of the machine that reads an `ExecutionStarted` with these members.
    pub(crate) fn needed_version(&self) -> u32 {
        if self.terms.is_empty() { FIRST } else { SECOND }
    }
}

impl EventKind {
    /// The lowest version of the machine that reads this event. A history needs the highest one of its events.
    pub fn needed_version(&self) -> u32 {
        let is_new = match self {
            Self::ExecutionStarted(started) => return started.machine.max(started.needed_version()),
            Self::ManualResolved(resolution) => resolution.note.is_some(),
            Self::ExecutionRedriven { inputs, definition, .. } => !inputs.is_empty() || definition.is_some(),
            Self::ExecutionForked { by, .. } => by.is_some(),
            Self::RollbackSkipped { .. }
            | Self::ExecutionPaused { .. }
            | Self::ExecutionResumed { .. }
            | Self::ExecutionReordered { .. } => true,
            Self::StepEntered { settings } => settings.is_some(),
            Self::TaskScheduled(call) => call.wait.is_some() || call.heartbeat.is_some() || call.priority.is_some(),
            Self::ExecutionTimedOut { drain } => *drain,
            Self::TaskFailed { holder, .. } | Self::TaskTimedOut { holder, .. } => holder.is_some(),
            _ => false,
        };
        if is_new { SECOND } else { FIRST }
    }
}
