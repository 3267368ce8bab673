//! Why an execution is not moving.

use crate::history::ExecutionRecord;
use starbridge_machine::Status;

/// Declares the reasons with their numbers and words.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal $word:literal)*) => {
        /// Why an execution is not moving. The list is closed. Stores write the numbers, which therefore never change; a new reason
        /// gets the next one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WaitingReason {
            $($(#[$doc])* $name = $number,)*
        }

        impl WaitingReason {
            /// All reasons, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word for it, as the API and the command line use it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

reasons! {
    /// The time at which it may begin has not come.
    StartTime = 1 "startTime"
    /// It waits for other executions to end before it begins.
    Dependency = 2 "dependency"
    /// A concurrency key of it is full.
    Key = 3 "key"
    /// As many executions of its flow run as may.
    FlowLimit = 4 "flowLimit"
    /// Its flow is paused.
    FlowPaused = 5 "flowPaused"
    /// Whether it may begin is not decided yet.
    Admission = 6 "admission"
    /// A step waits for an operator.
    Manual = 7 "manual"
    /// An operator paused it.
    Paused = 8 "paused"
    /// A task is in a queue, and no worker has it.
    Queue = 9 "queue"
    /// A worker has a task.
    Worker = 10 "worker"
    /// Somebody outside is to report.
    Callback = 11 "callback"
    /// A child runs or waits.
    Child = 12 "child"
    /// The next attempt is due later.
    Retry = 13 "retry"
    /// The next call of a poll is due later.
    Poll = 14 "poll"
    /// A wait step waits.
    Timer = 15 "timer"
    /// A call is out.
    Call = 16 "call"
    /// A call is ready, and too many are out.
    Capacity = 17 "capacity"
    /// It computes, or others have their turn.
    Running = 18 "running"
    /// Its shard changes its owner.
    Moving = 19 "moving"
    /// It is set aside: it can't be gone on with.
    Broken = 20 "broken"
}

impl WaitingReason {
    /// The reasons that a record says, so that a list can be asked for them.
    pub const LISTED: [Self; 4] = [Self::Broken, Self::Manual, Self::Paused, Self::StartTime];

    /// The words of [`WaitingReason::LISTED`], for messages.
    pub fn listed_words() -> String {
        Self::LISTED.map(Self::as_str).join(", ")
    }

    /// The reason with this word that a list can be asked for; `None` if there is none.
    pub fn parse_listed(word: &str) -> Option<Self> {
        Self::parse(word).filter(|reason| Self::LISTED.contains(reason))
    }

    /// The reason with this word; `None` if there is none.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
    }

    /// Its number, as stores write it.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl ExecutionRecord {
    /// Why the execution is not moving, as far as its record says: one of [`WaitingReason::Broken`], [`WaitingReason::Manual`],
    /// [`WaitingReason::Paused`] and [`WaitingReason::StartTime`]. What needs a person comes first.
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
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::RecordedPause;
    use starbridge_flow::time::Timestamp;

    #[test]
    fn reasons_keep_their_numbers_and_words() {
        let numbers: Vec<u8> = WaitingReason::ALL.iter().map(|reason| reason.number()).collect();
        assert_eq!(numbers, (1..=20).collect::<Vec<u8>>());
        for reason in WaitingReason::ALL {
            assert_eq!(WaitingReason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(WaitingReason::parse("asleep"), None);
    }

    #[test]
    fn reason_that_needs_a_person_comes_first() {
        let mut record = ExecutionRecord {
            status: Status::Running,
            ..ExecutionRecord::default()
        };
        assert_eq!(record.waiting_reason(), None);
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
