//! Signals: the machine's input from outside.

use crate::event::{EditedInput, EventId, Holder, NewDefinition, Resolution, StartRecord};
use starbridge_flow::graph::SchemaViolation;
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_flow::value::{Text, Value};

/// An input of the machine from outside. `call` is always the number of the call's `TaskScheduled`
/// event.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// Begin the execution. The machine fills in `definition_hash` and `machine`.
    Start(Box<StartRecord>),
    /// End an execution that waited to begin, before its first step.
    Decline {
        /// The start that was waiting.
        start: Box<StartRecord>,
        /// How it ends.
        end: EndBeforeStart,
    },
    /// The resource acknowledged the call. Under `poll`, a receipt with `status` 202 means that there is no result
    /// yet: its `location` is where to ask, its `retryAfter` (in seconds) the earliest time.
    Submitted {
        /// The call's `TaskScheduled`.
        call: EventId,
        /// What the resource answered; `None` if it answered nothing.
        receipt: Option<Value>,
        /// The id of the child execution that the call started, if it did.
        execution: Option<Text>,
        /// The version of the flow that the child runs.
        version: Option<u64>,
    },
    /// The call could not be sent.
    SubmitFailed {
        /// The call's `TaskScheduled`.
        call: EventId,
        /// The name of the error.
        error: String,
        /// What happened, for people.
        cause: String,
        /// Whether the resource saw nothing of the call, as in [`Signal::Failed`].
        not_sent: bool,
    },
    /// The result of a call arrived.
    Succeeded {
        /// The call's `TaskScheduled`.
        call: EventId,
        /// The result: any JSON value. The result of a task must be an object.
        result: Value,
        /// The name of the worker that held the task, if one did.
        worker: Option<Text>,
        /// When that worker took the task.
        held_time: Option<Timestamp>,
    },
    /// The call failed.
    Failed {
        /// The call's `TaskScheduled`.
        call: EventId,
        /// The name of the error.
        error: String,
        /// What happened, for people.
        cause: String,
        /// How long the call should not be tried again.
        retry_after: Option<Seconds>,
        /// Whether it is certain that the resource saw nothing of the call, neither now nor when it was sent before.
        /// There is then nothing to undo.
        not_sent: bool,
        /// The worker that held the task, if one did.
        holder: Option<Box<Holder>>,
    },
    /// No heartbeat arrived in time.
    HeartbeatMissed {
        /// The call's `TaskScheduled`.
        call: EventId,
    },
    /// A task of a queue timed out: it waited too long for a worker, or a worker held it too long.
    TimedOut {
        /// The call's `TaskScheduled`.
        call: EventId,
        /// The worker that held the task too long; `None` if none held it.
        holder: Option<Box<Holder>>,
    },
    /// The worker that held a task of a queue missed its heartbeat.
    LeaseEnded {
        /// The call's `TaskScheduled`.
        call: EventId,
        /// How many retries the queue grants where no policy of the step names the error.
        redeliver: u32,
        /// That worker, where it is known.
        holder: Option<Box<Holder>>,
    },
    /// A timer is due: one of those that [`State::due`](crate::State::due) gives.
    TimerDue(Timer),
    /// Stop the execution.
    Stop {
        /// The name of the error; if `None`, the flow language's own name for a stop.
        error: Option<String>,
        /// Why the execution is stopped, for people.
        cause: String,
        /// The name of the operator.
        by: Option<String>,
        /// Whether to undo what the execution has done.
        rollback: bool,
        /// Whether the stop comes because the execution that started this one is being undone. An
        /// execution that has Succeeded then takes the stop, and what it did is undone. An
        /// execution that has ended takes no other stop.
        with_parent: bool,
    },
    /// An operator decided for a step that waits for one.
    Resolve {
        /// The number of its `ManualRequested` event, or of the step's `StepEntered`.
        request: EventId,
        /// The operator's decision.
        resolution: Box<Resolution>,
    },
    /// Go on with what the last turn left at its bounds. Allowed while
    /// [`State::must_continue`](crate::State::must_continue) holds.
    Continue,
    /// Go on, as a new execution, from what was copied from another one. [`State::fork`](crate::State::fork) gives
    /// this signal.
    Fork {
        /// The id of the other execution.
        of: Text,
        /// The event of the other execution to go on from.
        event: EventId,
        /// The name of the new execution.
        name: Text,
        /// The name of the operator, where it is known.
        by: Option<Text>,
    },
    /// Go on with an execution that ended without success.
    Redrive {
        /// The name of the operator.
        by: Option<String>,
        /// Inputs for steps that are entered again, each at most once.
        inputs: Vec<EditedInput>,
        /// The definition that the state is of now, if the execution ran another one before.
        definition: Option<NewDefinition>,
    },
    /// Leave out the undo because of which an execution ended as [`Status::RollbackFailed`](crate::Status::RollbackFailed),
    /// and go on with the next one. If several failed, the one of the outermost list is left out;
    /// the others are tried again.
    Skip {
        /// The name of the operator.
        by: Option<String>,
        /// Why, for people.
        cause: String,
    },
    /// Let nothing new begin and no timer fire, until [`Signal::Resume`] or [`Signal::Stop`].
    /// Reports from outside are recorded, and what follows from them waits.
    Pause {
        /// The name of the operator.
        by: Option<String>,
        /// Why, for people.
        cause: String,
        /// Whether the pause comes because the execution that waits for this one was paused.
        with_parent: bool,
    },
    /// Change the order of the execution, and of its tasks that no worker holds.
    Reorder {
        /// The name of the operator.
        by: Option<String>,
        /// What changes.
        order: NewOrder,
    },
    /// Go on after a pause.
    Resume {
        /// The name of the operator.
        by: Option<String>,
        /// Whether the resume comes because the execution that waits for this one goes on. A pause
        /// of its own then stays.
        with_parent: bool,
    },
}

/// An operator's change to the order of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewOrder {
    /// From 0 to 9, 9 first; `None`: as before.
    pub priority: Option<u8>,
    /// Within a priority the smaller goes first; `None`: as before.
    pub order_time: Option<i64>,
    /// Whether the execution no longer waits for its start time. Only an execution that has not
    /// begun takes this.
    pub start_now: bool,
    /// Whether it no longer waits for other executions. Only an execution that has not begun takes
    /// this.
    pub drop_after: bool,
}

/// How an execution that waited to begin ends.
#[derive(Clone, Debug, PartialEq)]
pub enum EndBeforeStart {
    /// Somebody stopped it.
    Stopped {
        /// The name of the error; if `None`, the flow language's own name for a stop.
        error: Option<String>,
        /// Why it is stopped, for people.
        cause: String,
        /// The name of the operator.
        by: Option<String>,
        /// Whether the stop asked for undoing. The execution has done nothing that could be undone.
        rollback: bool,
    },
    /// It can't begin any more.
    Failed {
        /// The name of the error.
        error: String,
        /// What happened, for people.
        cause: String,
    },
}

/// A point in time that an execution waits for, identified by the event that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When the timer is due.
    pub due: Timestamp,
    /// The number of the event that set the timer.
    pub set_by: EventId,
}

/// Why a signal was rejected. The state is unchanged.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The execution has already begun.
    AlreadyStarted,
    /// The execution has not begun.
    NotStarted,
    /// The execution has ended.
    Finished,
    /// The input does not match the flow's `inputSchema`.
    InvalidInput(Vec<SchemaViolation>),
    /// The input has too many levels of nested containers.
    InputTooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// The input is larger than the limit.
    InputTooLarge {
        /// The size of the input, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The output that an operator gives is larger than the limit of a step's data.
    OutputTooLarge {
        /// The size of the output, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The call already has its result.
    AlreadyCompleted,
    /// The call was given up: it timed out, was cancelled, or a later attempt replaced it.
    Superseded,
    /// There is no such call or timer, or the timer is not due.
    Unknown,
    /// [`Signal::Continue`] came, but no work is left.
    NothingToDo,
    /// The execution has not ended, or it succeeded.
    NotRedrivable,
    /// The execution has ended, and its redrive waits to be admitted.
    WaitsToGoOn,
    /// An input is given for a step that the redrive does not enter again, or twice for one.
    NotEnteredAgain {
        /// The number of the event that was given.
        event: EventId,
        /// Events that could be given: the `StepEntered` of each visit that a new one replaces.
        known: Vec<EventId>,
    },
    /// The execution did not end because something could not be undone.
    NothingToSkip,
    /// The step does not wait for an operator.
    NotManual,
    /// The execution is paused already.
    AlreadyPaused,
    /// The execution is not paused.
    NotPaused,
    /// The history does not match the flow.
    Broken {
        /// The number of the first event that does not match.
        at: EventId,
    },
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AlreadyStarted => f.write_str("the execution has begun already"),
            Self::NotStarted => f.write_str("the execution has not begun"),
            Self::Finished => f.write_str("the execution has ended"),
            Self::InvalidInput(violations) => {
                f.write_str("the input does not fit the flow's inputSchema")?;
                for misfit in violations {
                    let pointer = if misfit.pointer.is_empty() {
                        "the whole"
                    } else {
                        &misfit.pointer
                    };
                    write!(f, "\n  {pointer}: {}", misfit.message)?;
                }
                Ok(())
            }
            Self::InputTooLarge { bytes, limit } => {
                write!(f, "the input has {bytes} bytes, more than the limit of {limit}")
            }
            Self::OutputTooLarge { bytes, limit } => {
                write!(f, "the output has {bytes} bytes, more than the limit of {limit}")
            }
            Self::InputTooDeep { limit } => {
                write!(
                    f,
                    "the input has more than {limit} objects and arrays inside each other"
                )
            }
            Self::AlreadyCompleted => f.write_str("the call has its result already"),
            Self::Superseded => f.write_str("the call was given up before"),
            Self::Unknown => f.write_str("there is no such call or timer"),
            Self::NotRedrivable => f.write_str("only an execution that ended without success can go on"),
            Self::WaitsToGoOn => f.write_str(
                "the execution has ended, and waits to go on: `stop` withdraws what it waits with, and it can be paused once it goes on",
            ),
            Self::NotEnteredAgain { event, known } => {
                const SHOWN: usize = 10;
                write!(
                    f,
                    "no step that began at event {event} is entered again, or it is given twice"
                )?;
                let mut events = known.iter().take(SHOWN);
                match events.next() {
                    None => f.write_str("; the redrive enters no step again")?,
                    Some(first) => write!(f, "; those that are began at event {first}")?,
                }
                events.try_for_each(|event| write!(f, ", {event}"))?;
                f.write_str(if known.len() > SHOWN { ", …" } else { "" })
            }
            Self::NothingToSkip => f.write_str("only an execution that ended as RollbackFailed has an undo to skip"),
            Self::AlreadyPaused => f.write_str("the execution is paused already"),
            Self::NotPaused => f.write_str("the execution is not paused"),
            Self::NotManual => f.write_str("the step does not wait for an operator"),
            Self::NothingToDo => f.write_str("nothing is left to go on with"),
            Self::Broken { at } => write!(f, "the history does not fit the flow from event {at} on"),
        }
    }
}

impl std::error::Error for Rejection {}
