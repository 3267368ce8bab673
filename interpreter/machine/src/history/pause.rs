//! Reading the events of a pause.

use super::read::{HistoryError, Members};
use crate::event::EventKind;

impl Members<'_> {
    pub(super) fn paused(&self) -> Result<EventKind, HistoryError> {
        Ok(EventKind::ExecutionPaused {
            by: self.text("by")?,
            cause: self.text("cause")?,
            with_parent: self.maybe("withParent", Self::truth)?.unwrap_or(false),
        })
    }
}
