//! Events: the facts of a history (section "history" of the language reference).
//!
//! In memory an event names steps by number; [`crate::history`] writes and reads the stored form.

use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Pattern, Pointer, Settings, StepId};
use starbridge_flow::time::{Millis, Seconds, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use std::sync::Arc;

/// The number of an event in its history, from 1; 0 stands for none.
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

/// One fact of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Numbers are dense: the first event is 1, each later one is one higher.
    pub id: EventId,
    /// The event whose handling produced this one; for the first event of a turn, the event it answers.
    pub caused_by: EventId,
    /// When the turn began; the same for all events of a turn.
    pub time: Timestamp,
    /// The step this event is about; `None` for the flow itself.
    pub step: Option<StepId>,
    /// The composites around that step.
    pub path: StepPath,
    /// Whether the event belongs to a rollback.
    pub rollback: bool,
    /// The kind of the event, with its data.
    pub detail: EventKind,
}

/// The composites around a step, from outside in. A clone costs one reference count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPath(Option<Arc<[PathItem]>>);

/// One composite of a path, and the child of it that the path goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathItem {
    /// The composite's step.
    pub step: StepId,
    /// The child that the path goes through.
    pub child: Child,
}

/// A child of a composite step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Child {
    /// A branch of a parallel, from 0.
    Branch(u32),
    /// An iteration of a foreach, from 0.
    Iteration(u32),
    /// An arm of a choice, from 0; `None` for its default.
    Arm(Option<u32>),
}

impl Child {
    /// The number of a branch or iteration; `None` for an arm.
    pub(crate) fn number(self) -> Option<u32> {
        match self {
            Self::Branch(number) | Self::Iteration(number) => Some(number),
            Self::Arm(_) => None,
        }
    }
}

impl StepPath {
    /// The composites of the path, from outside in.
    pub fn items(&self) -> &[PathItem] {
        self.0.as_deref().unwrap_or(&[])
    }

    /// This path with one more composite at its inner end.
    #[must_use]
    pub fn inside(&self, step: StepId, child: Child) -> Self {
        let items = self.items().iter().copied().chain([PathItem { step, child }]);
        Self(Some(items.collect()))
    }
}

impl From<Vec<PathItem>> for StepPath {
    fn from(items: Vec<PathItem>) -> Self {
        Self((!items.is_empty()).then(|| items.into()))
    }
}

/// What an execution is started with; its first event records it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRecord {
    /// The flow's name.
    pub flow: Text,
    /// The version of the flow, from 1.
    pub version: u64,
    /// The hash of the flow's definition.
    pub definition_hash: Text,
    /// The lowest version of the machine that reads this event. Later events may need a higher one.
    pub machine: u32,
    /// The execution's name, unique in its flow.
    pub name: Text,
    /// The execution's input, as it was given.
    pub input: Value,
    /// The seed of all randomness in this execution.
    pub seed: u64,
    /// Labels, string to string; `None` without labels.
    pub labels: Option<Object>,
    /// The execution and the call that started this one; `None` if no execution did.
    pub parent: Option<Parent>,
    /// Task tokens of the parent's calls that stand in the input.
    #[serde(default)]
    pub tokens: Vec<TokenGrant>,
    /// The order and time that the start asked for.
    #[serde(default, skip_serializing_if = "StartTerms::is_empty")]
    pub terms: StartTerms,
}

/// The order and time that a start asks for, and its links to what belongs to it elsewhere. A
/// history with any of these is of format 2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartTerms {
    /// Who asked for it, where the start says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text>,
    /// A second start of the flow with the same key is this execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_key: Option<Text>,
    /// The priority of tasks that have none of their own: from 0 to 9; 9 goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Within a priority the smaller goes first. A time counts as its milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_time: Option<i64>,
    /// W3C trace context, which every call of it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Text>,
    /// The execution and call to which its end is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_to: Option<Parent>,
    /// What it waited for before it began; `None` if it began at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Waited>,
}

/// What an execution waited for before it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// When it was asked for.
    pub requested_time: Timestamp,
    /// The time before which it was not to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// The executions that had to end first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<WaitedFor>,
    /// The concurrency keys. The execution got one slot of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<WaitedKey>,
}

/// An execution that was to end before another one began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitedFor {
    /// Its flow, if the execution is given by name; `None` if it is given by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Text>,
    /// Its name in that flow, or its id.
    pub execution: Text,
    /// Whether it could end in any way. Otherwise it had to succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_end: bool,
}

/// A concurrency key of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitedKey {
    /// The pool: the name of the flow, unless the flow names another one.
    pub pool: Text,
    /// The name within the pool.
    pub key: Text,
}

impl StartTerms {
    /// Whether no term is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A task token that stands, as a reference, somewhere in an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenGrant {
    /// Where in the input the token stands.
    pub at: Pointer,
    /// The id of the execution that the call belongs to.
    pub execution: Text,
    /// The number of the call's `TaskScheduled` event.
    pub call: EventId,
}

/// The execution, and its call, that started another execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// The id of the parent execution.
    pub execution: Text,
    /// The number of the call's `TaskScheduled` event.
    pub event: EventId,
}

/// A call of a resource, recorded before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduledCall {
    /// The resource, as the flow writes it or as a program made it.
    pub resource: Text,
    /// When the call counts as done.
    #[serde(with = "pattern_word")]
    pub pattern: Pattern,
    /// The attempt it belongs to, from 1.
    pub attempt: u32,
    /// Number of the call in its attempt, from 1.
    pub call: u32,
    /// Service parameters. Paths are resolved, secrets are not.
    pub params: Option<Value>,
    /// When the attempt times out. `None` if the time counts only from when a worker takes the task.
    pub timeout_at: Option<Timestamp>,
    /// How long a worker may have a task of a queue.
    #[serde(default, rename = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// How long the task may wait in a queue, where the step's input gave it.
    #[serde(default, rename = "wait_ms", skip_serializing_if = "Option::is_none")]
    pub wait: Option<Millis>,
    /// The longest silence of a worker or callback, where the step's input gave it.
    #[serde(default, rename = "heartbeat_ms", skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Millis>,
    /// From 0 to 9, where the step's input gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
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

/// How a branch or iteration ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Exit {
    /// Its last step succeeded.
    Done,
    /// A failure left its list.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

/// An error as events record it: a name and a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The name of the error, for example `FnF.TaskTimedOut`.
    pub error: Text,
    /// What happened, for people.
    pub cause: Text,
}

/// The worker that held a task of a queue, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of the worker.
    pub worker: Text,
    /// When it took the task.
    pub held_time: Timestamp,
}

/// The input that an operator gives a step which a redrive enters again.
#[derive(Clone, Debug, PartialEq)]
pub struct EditedInput {
    /// The number of the `StepEntered` event of the visit that is replaced.
    pub event: EventId,
    /// The input of the new visit, in place of what mappings or the list's data give.
    pub input: Value,
}

/// The definition with which an execution goes on after a redrive, if it is another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewDefinition {
    /// The version of the flow.
    pub version: u64,
    /// The hash of the definition.
    pub hash: Text,
}

/// An operator's answer for a step that waits for one.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// What happens to the step.
    pub decision: Decision,
    /// The name of the operator.
    pub by: Text,
    /// What the operator noted, for people.
    pub note: Option<Text>,
}

/// What an operator can decide for a step that waits for one.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Try again. The retries already counted for each policy stay counted.
    Retry,
    /// The step succeeds.
    Succeed {
        /// The step's output; `{}` if `None`.
        output: Option<Value>,
    },
    /// The step fails, and no policy retries it.
    Fail {
        /// The failure; if `None`, the one for which the operator was asked.
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
        /// A failure in the same composite ends that composite.
        SiblingFailed = "SiblingFailed",
        /// The composite around it timed out.
        Timeout = "Timeout",
        /// Its composite has as many successful branches as it wants.
        WaitForMet = "WaitForMet",
        /// The execution was stopped.
        Stopped = "Stopped",
        /// The time of the whole execution was over.
        ExecutionTimedOut = "ExecutionTimedOut",
        /// A rollback failed, which ends the execution.
        RollbackFailed = "RollbackFailed",
    }
}

words! {
    /// Why a late report was ignored: the `code` of a `LateResultIgnored`.
    LateResultCode {
        /// The call was given up before the report: it was cancelled, or it timed out.
        TaskTimedOut = "TaskTimedOut",
    }
}

impl Decision {
    /// The word for this decision in a history.
    pub fn action(&self) -> ResolutionAction {
        match self {
            Self::Retry => ResolutionAction::Retry,
            Self::Succeed { .. } => ResolutionAction::Succeed,
            Self::Fail { .. } => ResolutionAction::Fail,
        }
    }
}

/// The bounds that programs gave an attempt when it began. Bounds that are fixed in the definition
/// are not repeated here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How many lists of a composite may run at once.
    pub concurrency: Option<u32>,
    /// How long the attempt may take.
    pub timeout: Option<Millis>,
}

/// The kind of an event. An event marked † begins a turn and records its signal in full.
#[expect(
    missing_docs,
    reason = "the members are those of the language reference, section \"history\""
)]
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// † The execution began.
    ExecutionStarted(Box<StartRecord>),
    /// A list reached a step. `settings` are the numbers that its input gave.
    StepEntered { settings: Option<Box<Settings>> },
    /// An attempt began. For the flow: its input was made.
    StepStarted {
        attempt: u32,
        input: Option<Value>,
        missing: Vec<Text>,
        bounds: Option<Box<Bounds>>,
    },
    /// An attempt succeeded.
    StepSucceeded { output: Option<Value>, missing: Vec<Text> },
    /// An attempt failed. Attempt 0: the step may not be tried at all.
    StepFailed { failure: Failure, attempt: u32 },
    /// The list goes on after the step. `caught` is what the error mappings made of a caught error.
    StepExited {
        goto: Option<StepId>,
        caught: Option<Value>,
        missing: Vec<Text>,
    },
    /// A branch of a parallel began.
    BranchEntered { branch: u32, deps: Option<Object> },
    /// The branch in whose path this event stands ended.
    BranchExited(Exit),
    /// An iteration of a foreach began.
    IterationEntered { index: u32, item: Value },
    /// The iteration in whose path this event stands ended.
    IterationExited(Exit),
    /// A choice chose an arm: `Some(Some(n))` is the n-th, `Some(None)` the default, `None` none.
    ChoiceTaken { arm: Option<Option<u32>> },
    /// A call is recorded, before it is sent.
    TaskScheduled(Box<ScheduledCall>),
    /// † The resource acknowledged the call. It is not sent again.
    TaskSubmitted {
        receipt: Option<Value>,
        execution: Option<Text>,
        version: Option<u64>,
    },
    /// † The call could not be sent. `not_sent` is as in `TaskFailed`.
    TaskSubmitFailed { failure: Failure, not_sent: bool },
    /// † The call's result arrived.
    TaskSucceeded {
        result: Value,
        worker: Option<Text>,
        held_time: Option<Timestamp>,
    },
    /// † The call failed. `not_sent`: it is certain that the resource saw nothing of the call, so there is nothing to
    /// undo.
    TaskFailed {
        failure: Failure,
        retry_after: Option<Seconds>,
        not_sent: bool,
        holder: Option<Box<Holder>>,
    },
    /// † The call timed out, or its worker missed a heartbeat. `redeliver` is how many retries the queue grants where
    /// no policy names the error.
    TaskTimedOut {
        error: Text,
        redeliver: Option<u32>,
        holder: Option<Box<Holder>>,
    },
    /// The step will be tried again at `due`.
    RetryScheduled {
        policy: u32,
        attempt: u32,
        delay: Millis,
        due: Timestamp,
        value: Option<Value>,
    },
    /// A poll will call the resource again at `due`.
    PollScheduled { call: u32, due: Timestamp },
    /// A wait step began to wait.
    WaitStarted { until: Timestamp },
    /// † The timer that event `of` set is due.
    TimerFired { of: EventId },
    /// A call is cancelled.
    TaskCancelled { of: EventId, reason: CancelReason },
    /// † A report came on a call that is over. It changes nothing else.
    LateResultIgnored { of: EventId, code: LateResultCode },
    /// The rollback of the call `of` began.
    RollbackStarted { of: EventId },
    /// The call was undone.
    RollbackSucceeded,
    /// The call could not be undone. `original` is the failure that caused the rollback, if no earlier event records
    /// it.
    RollbackFailed {
        failure: Failure,
        original: Option<Failure>,
    },
    /// A step waits for an operator.
    ManualRequested(Failure),
    /// † An operator decided.
    ManualResolved(Box<Resolution>),
    /// † The execution was stopped.
    ExecutionStopped { failure: Failure, by: Option<Text> },
    /// † The execution timed out. `drain`: calls that are out may still end.
    ExecutionTimedOut { drain: bool },
    /// It ended with this output.
    ExecutionSucceeded { output: Value },
    /// The execution failed. `step` is where the error arose.
    ExecutionFailed { failure: Failure, step: Option<StepId> },
    /// † An execution that had ended without success goes on.
    ExecutionRedriven {
        from: EventId,
        steps: Vec<StepId>,
        by: Text,
        inputs: Vec<EditedInput>,
        definition: Option<NewDefinition>,
    },
    /// † The undo that failed is left out, and its rollback goes on with the next. `of` is the call that is left out.
    RollbackSkipped { of: EventId, by: Text, cause: Text },
    /// † Nothing new begins from now on. `with_parent`: because the execution that waits for this one was paused.
    ExecutionPaused { by: Text, cause: Text, with_parent: bool },
    /// † The pause is over.
    ExecutionResumed { by: Text },
    /// † The execution and its tasks have another order from now on. A member that is `None` stays
    /// as it is.
    ExecutionReordered {
        priority: Option<u8>,
        order_time: Option<i64>,
        by: Text,
    },
    /// † This execution goes on from an event of another one.
    ExecutionForked {
        execution: Text,
        event: EventId,
        name: Text,
        by: Option<Text>,
    },
    /// † Goes on with the work that the previous turn left at its bounds.
    TurnContinued,
    /// Only in old histories. It changes nothing.
    TaskStarted,
}

impl Event {
    /// The bytes this event counts towards the bound of a turn: its values as compact JSON, and a fixed share for the
    /// rest.
    pub fn weight(&self) -> usize {
        const ENVELOPE_BYTES: usize = 128;
        let value = |value: &Option<Value>| value.as_ref().map_or(0, Value::json_len);
        let failure = |failure: &Failure| failure.error.json_len() + failure.cause.json_len();
        ENVELOPE_BYTES
            + match &self.detail {
                EventKind::ExecutionStarted(started) => started.input.json_len(),
                EventKind::StepStarted { input, .. } => value(input),
                EventKind::StepSucceeded { output, .. } => value(output),
                EventKind::StepExited { caught, .. } => value(caught),
                EventKind::BranchEntered { deps, .. } => deps.as_ref().map_or(0, Object::json_len),
                EventKind::IterationEntered { item, .. } => item.json_len(),
                EventKind::TaskScheduled(scheduled) => value(&scheduled.params),
                EventKind::TaskSubmitted { receipt, .. } => value(receipt),
                EventKind::TaskSucceeded { result, .. } => result.json_len(),
                EventKind::RetryScheduled { value: chosen, .. } => value(chosen),
                EventKind::ExecutionSucceeded { output } => output.json_len(),
                EventKind::ExecutionRedriven { inputs, .. } => {
                    inputs.iter().map(|edited| edited.input.json_len()).sum()
                }
                EventKind::ExecutionPaused { cause, .. } => cause.json_len(),
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
