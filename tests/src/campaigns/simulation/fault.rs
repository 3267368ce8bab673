//! Faults in a simulation, and bugs planted on purpose.

/// A fault that the world causes in a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A process dies.
    Crash,
    /// A process dies while it starts.
    CrashOnTheWayBack,
    /// An append fails, and nothing of it is kept.
    AppendFailed,
    /// An append is kept, and says that it failed.
    AppendUnsure,
    /// An append of a process that is dead arrives after its death, be it that another one has begun.
    AppendLate,
    /// A function's answer comes twice.
    AnswerTwice,
    /// A function's answer is lost.
    AnswerLost,
    /// A function takes long.
    AnswerSlow,
    /// A report comes twice.
    ReportTwice,
    /// The acknowledgement of a report is lost.
    ReportUnsure,
    /// The acknowledgement of a start is lost.
    StartUnsure,
    /// The clock jumps ahead.
    ClockAhead,
    /// The clock jumps back.
    ClockBack,
    /// Shards move to another process.
    ShardsMoved,
    /// A process stands still, and goes on later.
    StandsStill,
    /// Another process takes the shards of one that stands still.
    TakenOver,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Crash,
        Self::CrashOnTheWayBack,
        Self::AppendFailed,
        Self::AppendUnsure,
        Self::AppendLate,
        Self::AnswerTwice,
        Self::AnswerLost,
        Self::AnswerSlow,
        Self::ReportTwice,
        Self::ReportUnsure,
        Self::StartUnsure,
        Self::ClockAhead,
        Self::ClockBack,
        Self::ShardsMoved,
        Self::StandsStill,
        Self::TakenOver,
    ];

    /// Its name among the figures.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crash => "processes that died",
            Self::CrashOnTheWayBack => "processes that died while they started",
            Self::AppendFailed => "appends that failed",
            Self::AppendUnsure => "appends that were kept and said that they failed",
            Self::AppendLate => "appends of dead processes that came late",
            Self::AnswerTwice => "answers that came twice",
            Self::AnswerLost => "answers lost",
            Self::AnswerSlow => "answers that took long",
            Self::ReportTwice => "reports that came twice",
            Self::ReportUnsure => "acknowledgements of reports lost",
            Self::StartUnsure => "acknowledgements of starts lost",
            Self::ClockAhead => "jumps of the clock ahead",
            Self::ClockBack => "jumps of the clock back",
            Self::ShardsMoved => "moves of shards to another process",
            Self::StandsStill => "processes that stood still",
            Self::TakenOver => "processes whose shards another one took while they stood still",
        }
    }

    /// How often it comes when it may, in a thousand.
    pub(super) fn per_mille(self) -> u32 {
        match self {
            Self::AppendFailed | Self::AppendUnsure => 15,
            Self::CrashOnTheWayBack => 200,
            Self::AppendLate => 900,
            Self::Crash | Self::ClockAhead | Self::ClockBack | Self::ShardsMoved | Self::StandsStill => 300,
            Self::TakenOver => 700,
            _ => 80,
        }
    }
}

/// A bug that is planted, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The store ignores the expected last event of an append.
    IgnoresExpected,
    /// The store says that an append is durable before it is.
    AcknowledgesEarly,
    /// Half of a failing append is kept.
    KeepsHalf,
    /// The store forgets messages between executions at a restart.
    ForgetsMessages,
    /// The store forgets who is to be woken.
    ForgetsSleepers,
    /// The store forgets one of those that are awake.
    ForgetsAwake,
    /// The store reads all but the last turn.
    ReadsBehind,
    /// Each sending of a call has its own key.
    FreshKeys,
    /// Effects leave when a turn is decided, not when it is durable.
    ReleasesEarly,
    /// Calls are not sent again after a restart.
    SendsNothingAgain,
    /// Timers fire a second early.
    TimersEarly,
    /// Reports are acknowledged when they arrive.
    ReportsAcknowledgedEarly,
    /// A process gives shards up before what it decided for them is durable.
    LeavesUnderWay,
    /// A process goes on with shards that another one got.
    GoesOnWithLeft,
    /// The store does not compare epochs.
    EpochsNotCompared,
    /// A process loads what it takes over before it has ended the one that had it.
    LoadsBeforeTheFence,
    /// A process takes no notice that its appends are refused because another one has its shards.
    AcknowledgesFenced,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::IgnoresExpected,
        Self::AcknowledgesEarly,
        Self::KeepsHalf,
        Self::ForgetsMessages,
        Self::ForgetsSleepers,
        Self::ForgetsAwake,
        Self::ReadsBehind,
        Self::FreshKeys,
        Self::ReleasesEarly,
        Self::SendsNothingAgain,
        Self::TimersEarly,
        Self::ReportsAcknowledgedEarly,
        Self::LeavesUnderWay,
        Self::GoesOnWithLeft,
        Self::EpochsNotCompared,
        Self::LoadsBeforeTheFence,
        Self::AcknowledgesFenced,
    ];

    /// Its description.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IgnoresExpected => "the store ignores after which event it is to append",
            Self::AcknowledgesEarly => "the store acknowledges an append before it is durable",
            Self::KeepsHalf => "the store keeps half of a batch that failed",
            Self::ForgetsMessages => "messages between executions are gone after a restart",
            Self::ForgetsSleepers => "who is to be woken is forgotten at a restart",
            Self::ForgetsAwake => "one of those that are awake is forgotten at a restart",
            Self::ReadsBehind => "the store reads all but the last turn",
            Self::FreshKeys => "each sending of a call has a key of its own",
            Self::ReleasesEarly => "effects leave before their turn is durable",
            Self::SendsNothingAgain => "calls are not sent again after a restart",
            Self::TimersEarly => "timers fire a second early",
            Self::ReportsAcknowledgedEarly => "reports are acknowledged before they are durable",
            Self::LeavesUnderWay => "shards are given up with appends under way",
            Self::GoesOnWithLeft => "a process goes on with shards that another one got",
            Self::EpochsNotCompared => "the store does not compare epochs",
            Self::LoadsBeforeTheFence => "who takes shards over loads before the former owner is ended",
            Self::AcknowledgesFenced => "a former owner acknowledges what it was refused",
        }
    }
}
