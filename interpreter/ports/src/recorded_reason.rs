//! Why an execution is not moving, as far as its record says.

use crate::history::ExecutionRecord;
use crate::waiting_reason::WaitingReason;
use starbridge_flow::value::Text;
use starbridge_machine::Status;

impl ExecutionRecord {
    /// Why the execution is not moving, as far as its record says: one of
    /// [`WaitingReason::LISTED`]. Reasons that need a person come first. [`WaitingReason::Running`]
    /// means that it is awake: it computes, or waits for the answer of a call. `None` if it has
    /// ended, waits to be admitted, or an earlier version let it fall asleep.
    pub fn waiting_reason(&self) -> Option<WaitingReason> {
        if self.ended.is_some() || self.status.is_ended() {
            None
        } else if self.broken.is_some() {
            Some(WaitingReason::Broken)
        } else if self.status == Status::Manual {
            Some(WaitingReason::Manual)
        } else if self.paused.is_some() {
            Some(WaitingReason::Paused)
        } else if self.status == Status::Delayed {
            Some(WaitingReason::StartTime)
        } else if self.status.is_before_start() {
            None
        } else if self.awake {
            Some(WaitingReason::Running)
        } else {
            self.waits.as_ref().map(|waits| waits.reason)
        }
    }

    /// The number of the reason that a store keeps, and the name of what the execution waits for.
    /// Whether it is awake follows from its record.
    pub fn stored_reason(&self) -> Option<(WaitingReason, Option<&Text>)> {
        let reason = self
            .waiting_reason()
            .filter(|reason| *reason != WaitingReason::Running)?;
        let waits = self.waits.as_ref().filter(|waits| waits.reason == reason);
        Some((reason, waits.map(|waits| &waits.of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::RecordedPause;
    use crate::waiting_reason::RecordedWait;
    use starbridge_flow::time::Timestamp;

    #[test]
    fn reason_that_needs_a_person_comes_first() {
        let mut record = ExecutionRecord {
            status: Status::Running,
            ..ExecutionRecord::default()
        };
        assert_eq!(record.waiting_reason(), None);
        record.waits = RecordedWait::read(Some(9), Some("agents".into()));
        assert_eq!(record.waiting_reason(), Some(WaitingReason::Queue));
        assert_eq!(
            record.stored_reason(),
            Some((WaitingReason::Queue, Some(&"agents".into())))
        );
        record.awake = true;
        assert_eq!(
            (record.waiting_reason(), record.stored_reason()),
            (Some(WaitingReason::Running), None)
        );
        record.paused = Some(RecordedPause::default());
        assert_eq!(record.waiting_reason(), Some(WaitingReason::Paused));
        record.status = Status::Delayed;
        assert_eq!(record.waiting_reason(), Some(WaitingReason::Paused));
        record.status = Status::Manual;
        assert_eq!(record.waiting_reason(), Some(WaitingReason::Manual));
        record.ended = Some(Timestamp(1));
        assert_eq!(record.waiting_reason(), None);
    }
}
