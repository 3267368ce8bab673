//! The state of one execution: a fold over its history, and nothing else.

mod calls;
mod checkpoint;
mod children;
mod done;
mod frames;
mod held;
mod invariants;
mod maybe_document;
mod outstanding;
mod pairs;
mod paused;
mod readiness;
mod removal;
mod rest;
mod timers;
mod undoing;

pub(crate) use calls::{Calls, InFlight};
pub use checkpoint::{Checkpoint, CheckpointError};
pub(crate) use children::{Children, Closing, Outcome};
pub(crate) use done::{Done, DoneClass, DoneList};
pub(crate) use frames::{
    ArmRun, Frame, FramePosition, Frames, StepRun, TaskPhase, TaskRun, Visit, VisitPhase, WaitRun,
};
pub(crate) use outstanding::resource_again;
pub use paused::Paused;
pub use rest::{OpenWait, OpenWaitKind};
pub(crate) use timers::{TimerFor, TimerKey, Timers};
pub(crate) use undoing::{UndoPhase, UndoPolling, UndoRun, Undoing};

use crate::event::{EventId, Failure, StartRecord};
use starbridge_flow::graph::StepId;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A frame is identified by the event that made it; 1 is the flow's own list.
pub(crate) type FrameId = EventId;

/// The frame of the flow's own list.
pub(crate) const ROOT: FrameId = EventId(1);

/// The status of an execution (section "operating executions").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Status {
    /// It has not begun.
    #[default]
    New,
    /// Its steps run.
    Running,
    /// A step waits for an operator.
    Manual,
    /// What it did is being undone; then it ends.
    RollingBack,
    /// It ended with an output.
    Succeeded,
    /// It ended with an error.
    Failed,
    /// It took too long.
    TimedOut,
    /// An operator stopped it.
    Stopped,
    /// An undo of its rollback failed: it can be redriven, or go on without that undo.
    RollbackFailed,
    /// It had succeeded, and was rolled back afterwards.
    RolledBack,
    /// It is to begin later.
    Delayed,
    /// It waits for other executions to end before it begins.
    Blocked,
    /// It waits for a place before it begins.
    Queued,
}

impl Status {
    /// Every status of an execution that was started.
    pub const ALL: [Self; 12] = [
        Self::Delayed,
        Self::Blocked,
        Self::Queued,
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

    /// Reads a status as [`Status::as_str`] writes it; `None` if there is no such status. [`Status::New`] is not
    /// among them.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the execution has ended.
    pub fn is_ended(self) -> bool {
        !self.is_before_start() && !matches!(self, Self::Running | Self::Manual | Self::RollingBack)
    }

    /// Whether the execution has not begun yet.
    pub fn is_before_start(self) -> bool {
        matches!(self, Self::New | Self::Delayed | Self::Blocked | Self::Queued)
    }

    /// The status as the API, stores and histories write it.
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
            Self::Delayed => "Delayed",
            Self::Blocked => "Blocked",
            Self::Queued => "Queued",
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
    /// The execution's id. Task tokens and idempotency keys contain it.
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
    pub(crate) started: Option<Box<StartRecord>>,
    pub(crate) started_time: Timestamp,
    pub(crate) last: EventId,
    pub(crate) last_time: Timestamp,
    pub(crate) status: Status,
    pub(crate) output: Option<Value>,
    pub(crate) failure: Option<Failure>,
    pub(crate) failed_step: Option<StepId>,
    pub(crate) broken: Option<EventId>,
    pub(crate) ending: Option<Ending>,
    /// The execution's time is over, and calls that are out may still end: nothing new begins.
    pub(crate) draining: bool,
    /// Set while nothing new may begin.
    pub(crate) paused: Option<Box<Paused>>,
    /// Steps that wait for an operator, by their `ManualRequested`.
    pub(crate) manual: BTreeMap<EventId, FrameId>,
    /// An end that was asked for during a rollback. It takes effect when the rollback has ended.
    pub(crate) late_ending: Option<Ending>,
    /// The flow's input, if a program made it.
    pub(crate) flow_input: Option<Value>,
    /// Inputs that an operator gave to steps that a redrive has yet to enter again, by their former
    /// `StepEntered`.
    pub(crate) edits: BTreeMap<EventId, Value>,
    /// The lowest version of the machine that reads the events so far.
    pub(crate) needed_version: u32,
}

/// The execution is being brought to an end from outside.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ending {
    /// The status at the end.
    pub(crate) status: Status,
    pub(crate) failure: Failure,
    /// Whether to undo what was done first.
    pub(crate) undo: bool,
    /// The end that was in progress when a rollback failed. A redrive goes on with it.
    #[serde(default)]
    pub(crate) interrupted: Option<Box<Ending>>,
}

impl State {
    /// The state before the first event, of the execution with this id.
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

    /// The current status; [`Status::Manual`] while at least one step of a running execution waits for an operator.
    pub fn status(&self) -> Status {
        match self.data.status {
            Status::Running if !self.data.manual.is_empty() => Status::Manual,
            status => status,
        }
    }

    /// The number of the last event, which is also the number of events; 0 before the first.
    pub fn last_event(&self) -> EventId {
        self.data.last
    }

    /// The lowest version of the machine that reads the history so far.
    pub fn needed_version(&self) -> u32 {
        self.data.needed_version.max(1)
    }

    /// The time of the last event.
    pub fn last_time(&self) -> Timestamp {
        self.data.last_time
    }

    /// What the execution was started with; `None` before the first event.
    pub fn started(&self) -> Option<&StartRecord> {
        self.data.started.as_deref()
    }

    /// When the execution began.
    pub fn started_time(&self) -> Timestamp {
        self.data.started_time
    }

    /// The output of an execution that succeeded.
    pub fn output(&self) -> Option<&Value> {
        self.data.output.as_ref()
    }

    /// The error of an execution that ended without success or is being undone.
    pub fn failure(&self) -> Option<&Failure> {
        self.data.failure.as_ref()
    }

    /// The step in which that error arose, if it arose in one.
    pub fn failed_step(&self) -> Option<StepId> {
        self.data.failed_step
    }

    /// The first event that did not fit, if the history does not match the flow.
    pub fn broken_at(&self) -> Option<EventId> {
        self.data.broken
    }

    /// Whether the last turn left pure work at its bounds. [`Signal::Continue`](crate::Signal::Continue) goes on with
    /// it. Work that a pause holds back goes on when the pause ends.
    pub fn must_continue(&self) -> bool {
        self.frames.next_ready().is_some() && self.data.broken.is_none() && self.data.paused.is_none()
    }

    /// Whether the time is over and calls in flight may still end. Nothing new begins.
    pub fn is_draining(&self) -> bool {
        self.data.draining
    }

    /// Whether a call is in flight and its sending is not acknowledged yet.
    pub fn is_to_be_sent(&self, call: EventId) -> bool {
        self.calls.get(call).is_some_and(|call| !call.submitted)
    }

    /// Whether a call is in flight and waits in a queue or is held by a worker.
    pub fn is_queued(&self, call: EventId) -> bool {
        self.calls.get(call).is_some_and(|call| call.queued)
    }

    /// Whether the execution only waits: for a time, for the end of calls whose sending was acknowledged, or, if
    /// `queues` is true, for workers of queues. If `queues` is false, no queues exist here, and a call to one still
    /// has to be sent.
    pub fn is_asleep(&self, queues: bool) -> bool {
        matches!(self.status(), Status::Running | Status::Manual | Status::RollingBack)
            && !self.must_continue()
            && !self.calls.has_unsent()
            && (queues || !self.calls.has_queued())
    }

    /// Since when a call in flight waits in a queue or is held by a worker, not counting pauses; `None` if it is not in a queue, or
    /// an earlier version recorded it.
    pub fn queued_since(&self, call: EventId) -> Option<Timestamp> {
        self.calls.get(call)?.queued_since
    }

    /// Whether a call was given up: it was cancelled or timed out.
    pub fn was_given_up(&self, call: EventId) -> bool {
        self.calls.is_abandoned(call) || self.calls.is_noted(call)
    }

    /// The calls that were given up and on which no late report was noted, in order.
    pub fn given_up(&self) -> impl Iterator<Item = EventId> + '_ {
        self.calls.abandoned()
    }

    /// Whether a call is in flight: scheduled and not over.
    pub fn is_in_flight(&self, call: EventId) -> bool {
        self.calls.get(call).is_some()
    }
}
