//! The version of the machine that a history needs.

use crate::event::{EventKind, StartRecord};

/// What every version reads.
const FIRST: u32 = 1;
/// Edited redrives, skipped undos, operators of forks, and notes of operators.
const SECOND: u32 = 2;

impl StartRecord {
    /// The lowest version of the machine that reads an `ExecutionStarted` with these members.
    pub(crate) fn needed_version(&self) -> u32 {
        FIRST
    }
}

impl EventKind {
    /// The lowest version of the machine that reads this event. A history needs the highest one of its events.
    pub fn needed_version(&self) -> u32 {
        let is_new = match self {
            Self::ExecutionStarted(started) => return started.machine.max(started.needed_version()),
            Self::ManualResolved(resolution) => resolution.note.is_some(),
            Self::ExecutionRedriven { inputs, .. } => !inputs.is_empty(),
            Self::ExecutionForked { by, .. } => by.is_some(),
            Self::RollbackSkipped { .. } => true,
            _ => false,
        };
        if is_new { SECOND } else { FIRST }
    }
}
