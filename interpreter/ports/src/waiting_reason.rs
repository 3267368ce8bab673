//! Why an execution is not moving.

use starbridge_flow::value::Text;

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

            /// The word for it in the API and on the command line.
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
    /// One of its concurrency keys has no free slot.
    Key = 3 "key"
    /// Its flow has reached its limit of running executions.
    FlowLimit = 4 "flowLimit"
    /// An operator paused its flow: none of its executions begins.
    FlowPaused = 5 "flowPaused"
    /// Admission has not decided yet whether it may begin.
    Admission = 6 "admission"
    /// A step waits for an operator.
    Manual = 7 "manual"
    /// An operator paused it.
    Paused = 8 "paused"
    /// A task is in a queue, and no worker has it.
    Queue = 9 "queue"
    /// A worker has a task.
    Worker = 10 "worker"
    /// A report from outside is missing.
    Callback = 11 "callback"
    /// A child runs or waits.
    Child = 12 "child"
    /// The next attempt is due later.
    Retry = 13 "retry"
    /// The next call of a poll is due later.
    Poll = 14 "poll"
    /// A wait step waits.
    Timer = 15 "timer"
    /// A call has no answer yet.
    Call = 16 "call"
    /// A call is ready, but too many calls are out.
    Capacity = 17 "capacity"
    /// It computes, or waits while others compute.
    Running = 18 "running"
    /// Its shard is changing its owner.
    Moving = 19 "moving"
    /// It is set aside: it can't go on.
    Broken = 20 "broken"
}

impl WaitingReason {
    /// The reasons that a record gives, so that a list can be filtered by them.
    pub const LISTED: [Self; 11] = [
        Self::Broken,
        Self::Manual,
        Self::Paused,
        Self::StartTime,
        Self::Queue,
        Self::Callback,
        Self::Child,
        Self::Retry,
        Self::Poll,
        Self::Timer,
        Self::Running,
    ];

    /// The words of [`WaitingReason::LISTED`], for messages.
    pub fn listed_words() -> String {
        Self::LISTED.map(Self::as_str).join(", ")
    }

    /// The reason with this word, if a list can be filtered by it; `None` otherwise.
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

/// What a sleeping execution waits for; of several, the wait that most needs a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedWait {
    /// Why it does not go on. A task in a queue may be held by a worker.
    pub reason: WaitingReason,
    /// The name of the queue, the id of the child, or the name of the step.
    pub of: Text,
}

impl RecordedWait {
    /// Reads what a store has: the number of a reason, and the name of what the execution waits
    /// for. `None` if the reason is not one of a step.
    pub fn read(reason: Option<u8>, of: Option<Text>) -> Option<Self> {
        let of_steps = [
            WaitingReason::Manual,
            WaitingReason::Queue,
            WaitingReason::Callback,
            WaitingReason::Child,
            WaitingReason::Retry,
            WaitingReason::Poll,
            WaitingReason::Timer,
        ];
        let reason = of_steps.into_iter().find(|one| Some(one.number()) == reason)?;
        Some(Self { reason, of: of? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_keep_their_numbers_and_words() {
        let numbers: Vec<u8> = WaitingReason::ALL.iter().map(|reason| reason.number()).collect();
        assert_eq!(numbers, (1..=20).collect::<Vec<u8>>());
        for reason in WaitingReason::ALL {
            assert_eq!(WaitingReason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(WaitingReason::parse("asleep"), None);
    }
}
