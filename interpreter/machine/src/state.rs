//! The state of one execution: a fold over its history, and nothing else.

mod checkpoint;
mod children;
mod frame;
mod outstanding;
mod sound;
mod timers;
mod undoing;
mod walk;

pub(crate) use crate::apply::step_input;
pub use checkpoint::{Checkpoint, CheckpointError};
pub(crate) use children::{Children, Closing, Outcome};
pub(crate) use frame::{ArmRun, At, Frame, Inside, Phase, TaskPhase, TaskRun, Visit, WaitRun};
pub(crate) use timers::{TimerFor, TimerKey, Timers};
pub(crate) use undoing::{Done, DoneClass, UndoPhase, UndoRun, Undoing};
pub(crate) use walk::inside_of;

use crate::event::{EventId, Failure, Started};
use rustc_hash::FxHashMap;
use starbridge_fdl::graph::StepId;
use starbridge_fdl::limits::Limits;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Text};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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

/// The state of one execution.
#[derive(Clone, Debug)]
pub struct State {
    /// The execution's id; task tokens and keys are made of it.
    pub(crate) execution: Text,
    pub(crate) limits: Arc<Limits>,
    pub(crate) book: Book,
    /// The frame the last event was about, so that most events need no walk. A cache: never part of a checkpoint.
    pub(crate) recent: Option<FrameId>,
}

/// All that is folded.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Book {
    pub(crate) started: Option<Box<Started>>,
    pub(crate) started_time: Timestamp,
    pub(crate) last: EventId,
    pub(crate) last_time: Timestamp,
    pub(crate) status: Status,
    pub(crate) output: Option<Object>,
    pub(crate) failure: Option<Failure>,
    pub(crate) failed_step: Option<StepId>,
    pub(crate) broken: Option<EventId>,
    #[serde(with = "checkpoint::sorted")]
    pub(crate) frames: FxHashMap<FrameId, Frame>,
    /// Frames with something to do, in the order they became ready.
    pub(crate) ready: VecDeque<FrameId>,
    /// Calls that have been scheduled and are not over.
    pub(crate) calls: BTreeMap<EventId, InFlight>,
    pub(crate) timers: Timers,
    /// Calls given up whose report, should it come, is to be noted.
    pub(crate) abandoned: BTreeSet<EventId>,
    /// Calls given up whose report came and is noted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) noted: BTreeSet<EventId>,
    pub(crate) ending: Option<Ending>,
    /// Steps that wait for an operator, by their `ManualRequested`.
    pub(crate) manual: BTreeMap<EventId, FrameId>,
    /// The same, come while something was being undone: it takes effect when that has ended.
    pub(crate) late_ending: Option<Ending>,
    /// The flow's input, where a program made it.
    pub(crate) flow_input: Option<Object>,
    /// How many rollbacks are in progress.
    pub(crate) undoing: u32,
    /// How many calls are still to be sent. Rebuilt on loading.
    #[serde(skip)]
    pub(crate) unsent: usize,
    /// How many calls are to wait in queues. Rebuilt on loading.
    #[serde(skip)]
    pub(crate) queued: usize,
}

/// A call that is not over.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct InFlight {
    pub(crate) frame: FrameId,
    pub(crate) rollback: bool,
    /// The send was acknowledged.
    pub(crate) submitted: bool,
    pub(crate) timeout_at: Option<Timestamp>,
    /// It waits in a queue until a worker takes it: nobody sends it.
    #[serde(default)]
    pub(crate) queued: bool,
    /// How long a worker may have it, in milliseconds.
    #[serde(default)]
    pub(crate) timeout_ms: Option<u64>,
}

impl InFlight {
    /// Whether it is still to be sent.
    pub(crate) fn is_unsent(&self) -> bool {
        !self.submitted && !self.queued
    }
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
            book: Book::default(),
            recent: None,
        }
    }

    /// The execution's id.
    pub fn execution(&self) -> &Text {
        &self.execution
    }

    /// Where the execution stands.
    pub fn status(&self) -> Status {
        match self.book.status {
            Status::Running if !self.book.manual.is_empty() => Status::Manual,
            status => status,
        }
    }

    /// Number of the last event; how many there are.
    pub fn last_event(&self) -> EventId {
        self.book.last
    }

    /// Time of the last event.
    pub fn last_time(&self) -> Timestamp {
        self.book.last_time
    }

    /// What the execution was started with.
    pub fn started(&self) -> Option<&Started> {
        self.book.started.as_deref()
    }

    /// When it began.
    pub fn started_time(&self) -> Timestamp {
        self.book.started_time
    }

    /// The output of an execution that succeeded.
    pub fn output(&self) -> Option<&Object> {
        self.book.output.as_ref()
    }

    /// The error of an execution that ended otherwise or is being undone.
    pub fn failure(&self) -> Option<&Failure> {
        self.book.failure.as_ref()
    }

    /// The step in which that error arose, where it arose in one.
    pub fn failed_step(&self) -> Option<StepId> {
        self.book.failed_step
    }

    /// The first event that did not fit, if the history does not fit the flow.
    pub fn broken_at(&self) -> Option<EventId> {
        self.book.broken
    }

    /// Whether pure work is left over from the last turn.
    pub fn must_continue(&self) -> bool {
        !self.book.ready.is_empty() && self.book.broken.is_none()
    }

    /// Whether a call is known, not over, and its sending not acknowledged.
    pub fn is_to_be_sent(&self, call: EventId) -> bool {
        self.book.calls.get(&call).is_some_and(|call| !call.submitted)
    }

    /// Whether a call is known, not over, and waits in a queue or is in the hands of a worker.
    pub fn is_queued(&self, call: EventId) -> bool {
        self.book.calls.get(&call).is_some_and(|call| call.queued)
    }

    /// Whether nothing is left but to wait: for a time, for the end of calls whose sending was acknowledged, or for workers
    /// where there are queues; without, a call to one is still to be sent.
    pub fn is_asleep(&self, queues: bool) -> bool {
        matches!(self.status(), Status::Running | Status::Manual | Status::RollingBack)
            && !self.must_continue()
            && self.book.unsent == 0
            && (queues || self.book.queued == 0)
    }

    /// Counts anew what is still to be sent.
    pub(crate) fn count_unsent(&mut self) {
        self.book.unsent = self.book.calls.values().filter(|call| call.is_unsent()).count();
        self.book.queued = self.book.calls.values().filter(|call| call.queued).count();
    }

    /// Whether a call was given up: cancelled, or out of time.
    pub fn was_given_up(&self, call: EventId) -> bool {
        self.book.abandoned.contains(&call) || self.book.noted.contains(&call)
    }

    /// All calls given up on which no late report was noted.
    pub fn given_up(&self) -> impl Iterator<Item = EventId> + '_ {
        self.book.abandoned.iter().copied()
    }

    /// Whether a call is known and not over.
    pub fn is_in_flight(&self, call: EventId) -> bool {
        self.book.calls.contains_key(&call)
    }
}
