//! The version of the machine that a history needs.

use crate::event::StartRecord;

/// What every version reads.
const FIRST: u32 = 1;
/// Terms of a start.
const SECOND: u32 = 2;

impl StartRecord {
    /// The lowest version of the machine that reads an `ExecutionStarted` with these members.
    pub(crate) fn needed_version(&self) -> u32 {
        if self.terms.is_empty() { FIRST } else { SECOND }
    }
}
