//! What the senders of commands are told.

use crate::shard::{ForkFailure, StartError};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{ForkError, Rejection};
use starbridge_ports::ExecutionRecord;
use tokio::sync::oneshot;

/// The result of a report or a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It was taken and is in the history.
    Taken,
    /// The call already has its result.
    AlreadyCompleted,
    /// The call was given up.
    TimedOut,
    /// The task token is not valid.
    InvalidToken,
    /// There is no such execution.
    NoSuchExecution,
    /// Another process has the execution and will find it in the store.
    Left,
    /// Another process has the execution, its shard moves, or it is about to be tried again: send it again later.
    Held,
    /// The execution is set aside and only takes signals of operators.
    SetAside,
    /// The execution has not ended.
    NotEnded,
    /// Large executions take all the memory there is for them: send it again later.
    NoRoom,
    /// The machine rejected it.
    Rejected(Rejection),
}

/// An execution at one moment: its record and its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The id of the execution.
    pub execution: Text,
    /// What is known of the execution without reading its history.
    pub record: ExecutionRecord,
    /// The execution's input.
    pub input: Value,
    /// The output, if the execution succeeded.
    pub output: Option<Value>,
}

/// The answer to a start.
#[derive(Debug)]
pub struct StartedExecution {
    /// The execution when its first turn was durable.
    pub snapshot: Snapshot,
    /// Gives the execution when it has ended. `None` if the sender does not wait for that, or the execution has
    /// already ended.
    pub end: Option<oneshot::Receiver<Snapshot>>,
}

/// Why no execution was started.
#[derive(Clone, Debug, PartialEq)]
pub enum StartFailure {
    /// The request is refused.
    Refused(StartError),
    /// The fork is not possible.
    NoFork(ForkError),
    /// The flow has an execution with that name: the one with this id.
    Exists(Text),
    /// Too many commands are waiting: try again later.
    Busy,
    /// Large executions take all the memory there is for them: try again later.
    NoRoom,
    /// The engine is stopping and takes nothing more.
    Stopping,
}

impl From<ForkFailure> for StartFailure {
    fn from(failure: ForkFailure) -> Self {
        match failure {
            ForkFailure::Refused(error) => Self::NoFork(error),
            ForkFailure::InvalidKey(why) => Self::Refused(StartError::InvalidKey(why)),
            ForkFailure::Panicked(cause) => Self::Refused(StartError::Panicked(cause)),
        }
    }
}
