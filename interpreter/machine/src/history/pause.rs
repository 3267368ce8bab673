//! Reading the events of a pause.

use super::read::{HistoryError, Members};
use crate::event::EventKind;

impl Members<'_> {
    /// The detail of an `ExecutionPaused` or an `ExecutionResumed`.
    pub(super) fn pause(&self, kind: &str) -> Result<EventKind, HistoryError> {
        let by = self.text("by")?;
        if kind == "ExecutionResumed" {
            return Ok(EventKind::ExecutionResumed { by });
        }
        Ok(EventKind::ExecutionPaused {
            by,
            cause: self.text("cause")?,
            with_parent: self.maybe("withParent", Self::truth)?.unwrap_or(false),
        })
    }
}
