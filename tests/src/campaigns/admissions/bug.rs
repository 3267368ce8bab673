//! Bugs that are planted to see whether they are found, and the laws that find them.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The slots of one that has ended stay taken.
    SlotLeaked,
    /// That a line is still to be looked at is not kept.
    WakeUpLost,
    /// A start does not count who holds slots.
    LimitExceededAtRestart,
    /// Lines are read from their ends.
    OrderReversed,
    /// A start does not look who has claims.
    ClaimIgnored,
    /// The engine looks a name up before it records that an execution waits for it.
    NameLookedUpFirst,
    /// Messages behind the first page of them stay in the store.
    LaterPagesLost,
}

/// The laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// No key has more holders than its limit.
    Limit,
    /// A waiter that needs no more and stands before another one is admitted first.
    Order,
    /// Slots reserved for a claim are not given to others, and the oldest claim is admitted after
    /// one release of each key.
    Claim,
    /// An execution that waits for a slot waits at a full key, or something durable will look.
    WakeUp,
    /// An execution that waits for others learns of their ends.
    Dependency,
    /// No execution waits for itself through holders and their children.
    Deadlock,
    /// An ended execution holds nothing.
    Release,
    /// An execution that waits holds nothing.
    Holding,
    /// Executions are told what they asked for, once.
    Answer,
    /// When no more executions come, all are admitted or declined, and nothing is kept.
    Rest,
    /// The store works.
    Store,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SlotLeaked,
        Self::WakeUpLost,
        Self::LimitExceededAtRestart,
        Self::OrderReversed,
        Self::ClaimIgnored,
        Self::NameLookedUpFirst,
        Self::LaterPagesLost,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SlotLeaked => "the slots of one that has ended stay taken",
            Self::WakeUpLost => "it is not kept that a line is still to be looked at",
            Self::LimitExceededAtRestart => "a start does not count who holds slots",
            Self::OrderReversed => "lines are read from their ends",
            Self::ClaimIgnored => "a start does not look who has claims",
            Self::NameLookedUpFirst => "a name is looked up before it is noted that somebody waits for it",
            Self::LaterPagesLost => "messages behind the first page of them stay in the store",
        }
    }

    /// The law that it breaks.
    pub fn breaks(self) -> Law {
        match self {
            Self::SlotLeaked => Law::Release,
            Self::WakeUpLost => Law::WakeUp,
            Self::LimitExceededAtRestart => Law::Limit,
            Self::OrderReversed => Law::Order,
            Self::ClaimIgnored => Law::Claim,
            Self::NameLookedUpFirst => Law::Dependency,
            Self::LaterPagesLost => Law::Rest,
        }
    }
}

impl Law {
    /// The law in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Order => "order",
            Self::Claim => "claim",
            Self::WakeUp => "wake-up",
            Self::Dependency => "dependency",
            Self::Deadlock => "deadlock",
            Self::Release => "release",
            Self::Holding => "holding",
            Self::Answer => "answer",
            Self::Rest => "rest",
            Self::Store => "store",
        }
    }
}
