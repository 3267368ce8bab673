//! Events: the facts of a history (section "history" of the language reference).
//!
//! In memory an event names steps by number; [`crate::history`] writes and reads the form that is kept.

use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Pattern, Pointer, StepId};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use std::sync::Arc;

/// Number of an event in its history, from 1; 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId(pub u64);

impl EventId {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number.
    pub id: EventId,
    /// The event whose handling produced it; for the first of a turn the one it answers.
    pub caused_by: EventId,
    /// The turn's time.
    pub time: Timestamp,
    /// The step it is about; none: the flow.
    pub step: Option<StepId>,
    /// Where that step stands.
    pub path: Path,
    /// Whether it belongs to a rollback.
    pub rollback: bool,
    /// What happened.
    pub detail: EventKind,
}

/// Composites around a step, from outside in; a clone costs one reference count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Option<Arc<[PathItem]>>);

/// A composite and which of its children the way leads through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathItem {
    /// The composite.
    pub step: StepId,
    /// Its child.
    pub child: Child,
}

/// A child of a composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Child {
    /// A branch of a parallel.
    Branch(u32),
    /// An iteration of a foreach.
    Iteration(u32),
    /// An arm of a choice; none: its default.
    Arm(Option<u32>),
}

impl Child {
    /// Its number among those that run beside each other.
    pub(crate) fn number(self) -> Option<u32> {
        match self {
            Self::Branch(number) | Self::Iteration(number) => Some(number),
            Self::Arm(_) => None,
        }
    }
}

impl Path {
    /// The composites, from outside in.
    pub fn items(&self) -> &[PathItem] {
        self.0.as_deref().unwrap_or(&[])
    }

    /// The path one deeper.
    #[must_use]
    pub fn inside(&self, step: StepId, child: Child) -> Self {
        let items = self.items().iter().copied().chain([PathItem { step, child }]);
        Self(Some(items.collect()))
    }
}

impl From<Vec<PathItem>> for Path {
    fn from(items: Vec<PathItem>) -> Self {
        Self((!items.is_empty()).then(|| items.into()))
    }
}

/// What a start says, and the first event keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The flow's name.
    pub flow: Text,
    /// Its version, from 1.
    pub version: u64,
    /// Hash of the definition.
    pub definition_hash: Text,
    /// Version of the machine that wrote the history.
    pub machine: u32,
    /// The execution's name.
    pub name: Text,
    /// The execution's input.
    pub input: Object,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Labels, where there are any.
    pub labels: Option<Object>,
    /// The execution and call that started this one.
    pub parent: Option<Parent>,
    /// Tokens of calls that whoever started it handed down in the input.
    #[serde(default)]
    pub tokens: Vec<Grant>,
}

/// The token of a call that stands, as a reference, at a place of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The place.
    pub at: Pointer,
    /// The execution the call belongs to.
    pub execution: Text,
    /// Number of its `TaskScheduled`.
    pub call: EventId,
}

/// The call of another execution that started this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// The other execution.
    pub execution: Text,
    /// Number of its `TaskScheduled`.
    pub event: EventId,
}

/// A call, written before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    /// What is called.
    pub resource: Text,
    /// When it counts as done.
    #[serde(with = "pattern_word")]
    pub pattern: Pattern,
    /// The attempt it belongs to, from 1.
    pub attempt: u32,
    /// Number of the call in its attempt, from 1.
    pub call: u32,
    /// Service parameters, paths resolved, secrets not.
    pub params: Option<Value>,
    /// When the attempt times out; nothing where the time counts from when a worker takes it.
    pub timeout_at: Option<Timestamp>,
    /// How long a worker may have a task of a queue, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

mod pattern_word {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use starbridge_flow::graph::Pattern;

    pub fn serialize<S: Serializer>(pattern: &Pattern, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(pattern.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        let word = String::deserialize(deserializer)?;
        Pattern::parse(&word).ok_or_else(|| D::Error::custom("unknown pattern"))
    }
}

/// How a branch or iteration came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum Exit {
    /// Its last step is done.
    Done,
    /// A failure left it.
    Failed(Failure),
    /// It was given up.
    Cancelled,
}

/// An error as it stands in events: name and cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The error's name.
    pub error: Text,
    /// Its cause, for people.
    pub cause: Text,
}

/// An operator's answer about a step that waited for one.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// What is to become of the step.
    pub decision: Decision,
    /// Who decided.
    pub by: Text,
}

/// What an operator may decide about a step that waits for one.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Another attempt, with the counts of the policies as they are.
    Retry,
    /// The step ends well.
    Succeed {
        /// Its output; `{}` where none is given.
        output: Option<Object>,
    },
    /// The step fails for good.
    Fail {
        /// The error; the one for which the operator was asked where none is given.
        failure: Option<Failure>,
    },
}

words! {
    /// The `action` of a `ManualResolved`: the word for a [`Decision`].
    ResolutionAction {
        /// [`Decision::Retry`].
        Retry = "retry",
        /// [`Decision::Succeed`].
        Succeed = "succeed",
        /// [`Decision::Fail`].
        Fail = "fail",
    }
}

words! {
    /// Why a call was cancelled: the `reason` of a `TaskCancelled`.
    CancelReason {
        /// A failure beside it ends the composite it stands in.
        SiblingFailed = "SiblingFailed",
        /// The composite it stands in took too long.
        Timeout = "Timeout",
        /// Enough branches of its composite had succeeded.
        WaitForMet = "WaitForMet",
        /// Somebody stopped the execution.
        Stopped = "Stopped",
        /// The execution took too long.
        ExecutionTimedOut = "ExecutionTimedOut",
        /// Something could not be undone, which ends the execution.
        RollbackFailed = "RollbackFailed",
    }
}

words! {
    /// Why a late report was ignored: the `code` of a `LateResultIgnored`.
    LateResultCode {
        /// The call was given up before: it was cancelled, or its time was over.
        TaskTimedOut = "TaskTimedOut",
    }
}

impl Decision {
    /// Its word in a history.
    pub fn action(&self) -> ResolutionAction {
        match self {
            Self::Retry => ResolutionAction::Retry,
            Self::Succeed { .. } => ResolutionAction::Succeed,
            Self::Fail { .. } => ResolutionAction::Fail,
        }
    }
}

/// What programs said about an attempt that began. What is fixed in the definition stands there only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How many lists of a composite may run at once.
    pub concurrency: Option<u32>,
    /// How long the attempt may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// What happened. A † in the comment: begins a turn and holds its signal in full.
#[expect(
    missing_docs,
    reason = "the members are those of the language reference, section \"history\""
)]
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// † The execution began.
    ExecutionStarted(Box<Started>),
    /// A list came to a step.
    StepEntered,
    /// An attempt began; for the flow: its input is made.
    StepStarted {
        attempt: u32,
        input: Option<Object>,
        missing: Vec<Text>,
        bounds: Option<Box<Bounds>>,
    },
    /// An attempt came to its end well.
    StepSucceeded { output: Option<Object>, missing: Vec<Text> },
    /// An attempt failed; attempt 0: the step may not even be tried.
    StepFailed { failure: Failure, attempt: u32 },
    /// The list goes on; `caught` is what the caught step leaves.
    StepExited {
        goto: Option<StepId>,
        caught: Option<Object>,
        missing: Vec<Text>,
    },
    /// A branch began.
    BranchEntered { branch: u32, deps: Option<Object> },
    /// The branch in whose path this stands ended.
    BranchExited(Exit),
    /// An iteration began.
    IterationEntered { index: u32, item: Value },
    /// The iteration in whose path this stands ended.
    IterationExited(Exit),
    /// An arm was chosen: `Some(Some(n))` the n-th, `Some(None)` the default, `None` none.
    ChoiceTaken { arm: Option<Option<u32>> },
    /// A call, before it is sent.
    TaskScheduled(Box<Scheduled>),
    /// † The send was acknowledged; it is not sent again.
    TaskSubmitted {
        receipt: Option<Value>,
        execution: Option<Text>,
        version: Option<u64>,
    },
    /// † The sending failed. `not_sent`: as in `TaskFailed`.
    TaskSubmitFailed { failure: Failure, not_sent: bool },
    /// † The call's result.
    TaskSucceeded {
        result: Value,
        worker: Option<Text>,
        held_time: Option<Timestamp>,
    },
    /// † The call failed. `not_sent`: it is certain that its resource saw nothing of it, so there is nothing to undo.
    TaskFailed {
        failure: Failure,
        retry_after: Option<u64>,
        not_sent: bool,
    },
    /// † The call took too long, or its worker fell silent; `redeliver` is how many retries the queue gives it where no
    /// policy names that.
    TaskTimedOut { error: Text, redeliver: Option<u32> },
    /// The step is tried again later.
    RetryScheduled {
        policy: u32,
        attempt: u32,
        delay_ms: u64,
        due: Timestamp,
        value: Option<Value>,
    },
    /// The resource is called again later.
    PollScheduled { call: u32, due: Timestamp },
    /// A wait began.
    WaitStarted { until: Timestamp },
    /// † The timer set by that event is due.
    TimerFired { of: EventId },
    /// A call is given up.
    TaskCancelled { of: EventId, reason: CancelReason },
    /// † A report on a call that is over.
    LateResultIgnored { of: EventId, code: LateResultCode },
    /// A call begins to be undone.
    RollbackStarted { of: EventId },
    /// It is undone.
    RollbackSucceeded,
    /// It can't be undone. `original` is the failure for which it was to be, where no event before shows it.
    RollbackFailed {
        failure: Failure,
        original: Option<Failure>,
    },
    /// An operator is asked.
    ManualRequested(Failure),
    /// † An operator decided.
    ManualResolved(Box<Resolution>),
    /// † Somebody stopped the execution.
    ExecutionStopped { failure: Failure, by: Option<Text> },
    /// † The execution took too long.
    ExecutionTimedOut,
    /// The flow ended well.
    ExecutionSucceeded { output: Object },
    /// The flow failed; `step` is where the error arose.
    ExecutionFailed { failure: Failure, step: Option<StepId> },
    /// † An ended execution goes on.
    ExecutionRedriven {
        from: EventId,
        steps: Vec<StepId>,
        by: Text,
    },
    /// † This execution goes on from an event of another.
    ExecutionForked {
        execution: Text,
        event: EventId,
        name: Text,
    },
    /// † What the turn before left undone goes on.
    TurnContinued,
    /// Of old histories; says nothing.
    TaskStarted,
}

impl Event {
    /// Bytes this event counts towards the bound of a turn: its values as compact JSON and a fixed share for the rest.
    pub fn weight(&self) -> usize {
        const ENVELOPE: usize = 128;
        let object = |object: &Option<Object>| object.as_ref().map_or(0, Object::json_len);
        let value = |value: &Option<Value>| value.as_ref().map_or(0, Value::json_len);
        let failure = |failure: &Failure| failure.error.json_len() + failure.cause.json_len();
        ENVELOPE
            + match &self.detail {
                EventKind::ExecutionStarted(started) => started.input.json_len(),
                EventKind::StepStarted { input, .. } => object(input),
                EventKind::StepSucceeded { output, .. } => object(output),
                EventKind::StepExited { caught, .. } => object(caught),
                EventKind::BranchEntered { deps, .. } => object(deps),
                EventKind::IterationEntered { item, .. } => item.json_len(),
                EventKind::TaskScheduled(scheduled) => value(&scheduled.params),
                EventKind::TaskSubmitted { receipt, .. } => value(receipt),
                EventKind::TaskSucceeded { result, .. } => result.json_len(),
                EventKind::RetryScheduled { value: chosen, .. } => value(chosen),
                EventKind::ExecutionSucceeded { output } => output.json_len(),
                EventKind::RollbackFailed { failure: f, original } => failure(f) + original.as_ref().map_or(0, failure),
                EventKind::StepFailed { failure: f, .. }
                | EventKind::TaskFailed { failure: f, .. }
                | EventKind::TaskSubmitFailed { failure: f, .. }
                | EventKind::ManualRequested(f)
                | EventKind::ExecutionStopped { failure: f, .. }
                | EventKind::ExecutionFailed { failure: f, .. }
                | EventKind::BranchExited(Exit::Failed(f))
                | EventKind::IterationExited(Exit::Failed(f)) => failure(f),
                _ => 0,
            }
    }
}
