//! Signals: what arrives from outside.

use crate::event::{EventId, Resolution, Started};
use starbridge_flow::graph::SchemaViolation;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};

/// Something arrived. `call` is always the number of the call's `TaskScheduled`.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// The execution is to begin. `definition_hash` and `machine` are filled in by the machine.
    Start(Box<Started>),
    /// The send was acknowledged. Under `poll`, a receipt with `status` 202 means that there is no result yet;
    /// its `location` is where to ask, its `retryAfter` (seconds) the earliest time.
    Submitted {
        /// The call.
        call: EventId,
        /// What the resource answered.
        receipt: Option<Value>,
        /// The child execution started.
        execution: Option<Text>,
        /// The version of its flow.
        version: Option<u64>,
    },
    /// The sending failed.
    SubmitFailed {
        /// The call.
        call: EventId,
        /// The error's name.
        error: String,
        /// Its cause.
        cause: String,
        /// As in [`Signal::Failed`].
        not_sent: bool,
    },
    /// A result came.
    Succeeded {
        /// The call.
        call: EventId,
        /// The result, whatever it is; a task's must be an object.
        result: Value,
        /// The worker that held the task.
        worker: Option<Text>,
        /// Since when it held it.
        held_time: Option<Timestamp>,
    },
    /// The call failed.
    Failed {
        /// The call.
        call: EventId,
        /// The error's name.
        error: String,
        /// Its cause.
        cause: String,
        /// Seconds before which it should not be tried again.
        retry_after: Option<u64>,
        /// Whether it is certain that the resource saw nothing of the call, by this sending or an earlier one: then there is
        /// nothing to undo.
        not_sent: bool,
    },
    /// No heartbeat came in time.
    HeartbeatMissed {
        /// The call.
        call: EventId,
    },
    /// A task of a queue had its time: waiting for a worker, or in the hands of one.
    TimedOut {
        /// The call.
        call: EventId,
    },
    /// The worker that held a task of a queue fell silent.
    LeaseEnded {
        /// The call.
        call: EventId,
        /// How many retries the queue gives it where no policy names that.
        redeliver: u32,
    },
    /// A timer is due.
    TimerDue(Timer),
    /// Somebody stops the execution.
    Stop {
        /// The error's name; the language's own for a stop where none is given.
        error: Option<String>,
        /// Its cause.
        cause: String,
        /// Who.
        by: Option<String>,
        /// Whether what was done is undone.
        rollback: bool,
    },
    /// An operator decided about a step that waits for one.
    Resolve {
        /// Its `ManualRequested`.
        request: EventId,
        /// What was decided.
        resolution: Box<Resolution>,
    },
    /// What the last turn left undone is to go on.
    Continue,
    /// What was copied from another execution is to go on as this one: [`State::fork`](crate::State::fork) gives it.
    Fork {
        /// The other execution.
        of: Text,
        /// Its event.
        event: EventId,
        /// The name of this one.
        name: Text,
    },
    /// An execution that ended without success is to go on.
    Redrive {
        /// Who.
        by: Option<String>,
    },
}

/// A point in time an execution waits for, named by the event that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When.
    pub due: Timestamp,
    /// The event that set it.
    pub set_by: EventId,
}

/// Why a signal can't be taken. The state is as it was.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The execution has begun already.
    AlreadyStarted,
    /// It has not begun.
    NotStarted,
    /// It has ended.
    Finished,
    /// The input does not fit the flow's `inputSchema`.
    InvalidInput(Vec<SchemaViolation>),
    /// Too many containers stand inside each other in the input.
    InputTooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// The input is larger than allowed.
    InputTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The call has its result already.
    AlreadyCompleted,
    /// The call was given up before: timed out, cancelled, or replaced by a later attempt.
    Superseded,
    /// There is no such call or timer, or it is not due.
    Unknown,
    /// Nothing is left to go on with.
    NothingToDo,
    /// It has not ended, or it ended well.
    NotRedrivable,
    /// The history does not fit the flow.
    Broken {
        /// The first event that does not fit.
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
            Self::NothingToDo => f.write_str("nothing is left to go on with"),
            Self::Broken { at } => write!(f, "the history does not fit the flow from event {at} on"),
        }
    }
}

impl std::error::Error for Rejection {}
