//! The state of one execution: a fold over its history, and nothing else.

mod calls;
mod checkpoint;
mod children;
mod frames;
mod invariants;
mod outstanding;
mod pairs;
mod readiness;
mod removal;
mod timers;
mod undoing;

pub(crate) use calls::{Calls, InFlight};
pub use checkpoint::{Checkpoint, CheckpointError};
pub(crate) use children::{Children, Closing, Outcome};
pub(crate) use frames::{ArmRun, At, Frame, Frames, Inside, Phase, TaskPhase, TaskRun, Visit, WaitRun};
pub(crate) use timers::{TimerFor, TimerKey, Timers};
pub(crate) use undoing::{Done, DoneClass, UndoPhase, UndoRun, Undoing};

use crate::event::{EventId, Failure, Started};
use starbridge_flow::graph::StepId;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A frame is known by the event that made it: 1 is the flow's own list.
pub(crate) type FrameId = EventId;

/// The flow's own list.
pub(crate) const ROOT: FrameId = EventId(1);

/// Where an execution stands (section "operating executions").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Status {
    /// Nothing happened yet.
    #[default]
    New,
    /// It runs.
    Running,
    /// A step waits for an operator.
    Manual,
    /// What it did is being undone, and then it ends.
    RollingBack,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// It was stopped.
    Stopped,
    /// It could not be undone.
    RollbackFailed,
    /// It had succeeded and was undone.
    RolledBack,
}

impl Status {
    /// All that an execution which has begun can be in.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Manual,
        Self::RollingBack,
        Self::Succeeded,
        Self::Failed,
        Self::TimedOut,
        Self::Stopped,
        Self::RollbackFailed,
        Self::RolledBack,
    ];

    /// The status with that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the execution has ended.
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::New | Self::Running | Self::Manual | Self::RollingBack)
    }

    /// The status' word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::Running => "Running",
            Self::Manual => "Manual",
            Self::RollingBack => "RollingBack",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::TimedOut => "TimedOut",
            Self::Stopped => "Stopped",
            Self::RollbackFailed => "RollbackFailed",
            Self::RolledBack => "RolledBack",
        }
    }
}

/// The state of one execution: it takes signals, gives events, and says what follows from them. It does no I/O.
///
/// What drives an execution calls its methods in this order:
///
/// 1. [`State::new`] before the first event; to load an execution, [`State::from_checkpoint`] if there is a checkpoint, then
///    [`State::apply`] for each later event of its history.
/// 2. [`State::advance`] with a signal and the time: it pushes the events of one turn, which are applied already. A
///    rejected signal changes nothing.
/// 3. The driver appends these events to the history. Until that is durable, nothing that follows from them may leave.
/// 4. [`State::calls_to_send_after`] with the number of the last event before the turn (0 after loading): the calls to
///    send. What comes of each is a signal: [`Signal::Submitted`], [`Signal::Succeeded`], [`Signal::Failed`] and others.
/// 5. While [`State::must_continue`] holds, step 2 with [`Signal::Continue`].
/// 6. [`State::next_wakeup`] is when to come back without a signal from outside: each timer that [`State::due`] gives then
///    is a [`Signal::TimerDue`].
/// 7. Once [`State::is_asleep`] holds, the state need not stay in memory; [`State::checkpoint`] shortens loading it.
///
/// The other methods only look: where the execution stands ([`State::status`], [`State::output`], [`State::failure`]), what
/// is open ([`State::open_steps`], [`State::calls_in_flight`]), and what a single call needs ([`State::call_to_send`]).
///
/// [`Signal::Submitted`]: crate::Signal::Submitted
/// [`Signal::Succeeded`]: crate::Signal::Succeeded
/// [`Signal::Failed`]: crate::Signal::Failed
/// [`Signal::Continue`]: crate::Signal::Continue
/// [`Signal::TimerDue`]: crate::Signal::TimerDue
#[derive(Clone, Debug)]
pub struct State {
    /// The execution's id; task tokens and keys are made of it.
    pub(crate) execution: Text,
    pub(crate) limits: Arc<Limits>,
    pub(crate) data: Data,
    pub(crate) frames: Frames,
    pub(crate) calls: Calls,
    pub(crate) timers: Timers,
}

/// What is known of the execution as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(crate) started: Option<Box<Started>>,
    pub(crate) started_time: Timestamp,
    pub(crate) last: EventId,
    pub(crate) last_time: Timestamp,
    pub(crate) status: Status,
    pub(crate) output: Option<Object>,
    pub(crate) failure: Option<Failure>,
    pub(crate) failed_step: Option<StepId>,
    pub(crate) broken: Option<EventId>,
    pub(crate) ending: Option<Ending>,
    /// Steps that wait for an operator, by their `ManualRequested`.
    pub(crate) manual: BTreeMap<EventId, FrameId>,
    /// An end that came while something was being undone: it takes effect when that has ended.
    pub(crate) late_ending: Option<Ending>,
    /// The flow's input, where a program made it.
    pub(crate) flow_input: Option<Object>,
}

/// The execution is being brought to an end from outside.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ending {
    /// The status once everything is over.
    pub(crate) status: Status,
    pub(crate) failure: Failure,
    /// Whether what was done is undone first.
    pub(crate) undo: bool,
    /// The end that was under way when undoing failed: a redrive goes on with it.
    #[serde(default)]
    pub(crate) interrupted: Option<Box<Ending>>,
}

impl State {
    /// The state before the first event.
    pub fn new(execution: impl Into<Text>, limits: Arc<Limits>) -> Self {
        Self {
            execution: execution.into(),
            limits,
            data: Data::default(),
            frames: Frames::default(),
            calls: Calls::default(),
            timers: Timers::default(),
        }
    }

    /// The execution's id.
    pub fn execution(&self) -> &Text {
        &self.execution
    }

    /// Where the execution stands.
    pub fn status(&self) -> Status {
        match self.data.status {
            Status::Running if !self.data.manual.is_empty() => Status::Manual,
            status => status,
        }
    }

    /// Number of the last event; how many there are.
    pub fn last_event(&self) -> EventId {
        self.data.last
    }

    /// Time of the last event.
    pub fn last_time(&self) -> Timestamp {
        self.data.last_time
    }

    /// What the execution was started with.
    pub fn started(&self) -> Option<&Started> {
        self.data.started.as_deref()
    }

    /// When it began.
    pub fn started_time(&self) -> Timestamp {
        self.data.started_time
    }

    /// The output of an execution that succeeded.
    pub fn output(&self) -> Option<&Object> {
        self.data.output.as_ref()
    }

    /// The error of an execution that ended otherwise or is being undone.
    pub fn failure(&self) -> Option<&Failure> {
        self.data.failure.as_ref()
    }

    /// The step in which that error arose, where it arose in one.
    pub fn failed_step(&self) -> Option<StepId> {
        self.data.failed_step
    }

    /// The first event that did not fit, if the history does not fit the flow.
    pub fn broken_at(&self) -> Option<EventId> {
        self.data.broken
    }

    /// Whether pure work is left over from the last turn.
    pub fn must_continue(&self) -> bool {
        self.frames.next_ready().is_some() && self.data.broken.is_none()
    }

    /// Whether a call is known, not over, and its sending not acknowledged.
    pub fn is_to_be_sent(&self, call: EventId) -> bool {
        self.calls.get(call).is_some_and(|call| !call.submitted)
    }

    /// Whether a call is known, not over, and waits in a queue or is in the hands of a worker.
    pub fn is_queued(&self, call: EventId) -> bool {
        self.calls.get(call).is_some_and(|call| call.queued)
    }

    /// Whether nothing is left but to wait: for a time, for the end of calls whose sending was acknowledged, or for workers
    /// where there are queues; without, a call to one is still to be sent.
    pub fn is_asleep(&self, queues: bool) -> bool {
        matches!(self.status(), Status::Running | Status::Manual | Status::RollingBack)
            && !self.must_continue()
            && !self.calls.has_unsent()
            && (queues || !self.calls.has_queued())
    }

    /// Whether a call was given up: cancelled, or out of time.
    pub fn was_given_up(&self, call: EventId) -> bool {
        self.calls.is_abandoned(call) || self.calls.is_noted(call)
    }

    /// All calls given up on which no late report was noted.
    pub fn given_up(&self) -> impl Iterator<Item = EventId> + '_ {
        self.calls.abandoned()
    }

    /// Whether a call is known and not over.
    pub fn is_in_flight(&self, call: EventId) -> bool {
        self.calls.get(call).is_some()
    }
}
