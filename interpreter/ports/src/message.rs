//! Messages between executions: kept with the turn that sends them, until the receiver's turn is kept.

use serde::{Deserialize, Serialize};
use starbridge_flow::value::{Object, Text};
use starbridge_machine::EventId;

/// What a message is known by: who sent it, at which event, and to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId {
    /// The sender.
    pub from: Text,
    /// The last event of the turn that sent it, or the call it is about.
    pub event: EventId,
    /// The receiver.
    pub to: Text,
}

/// A message to another execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// What it is known by.
    pub id: MessageId,
    /// What it says.
    pub body: MessageBody,
}

/// What one execution says to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MessageBody {
    /// A child to its parent: the call that waits for it has its result.
    Succeeded {
        /// The parent's call.
        call: EventId,
        /// The version of its flow that the child runs.
        version: u64,
        /// The child's output.
        output: Object,
    },
    /// A child to its parent: the call that waits for it failed.
    Failed {
        /// The parent's call.
        call: EventId,
        /// The version of its flow that the child runs.
        version: u64,
        /// The child's error.
        error: Text,
        /// Its cause.
        cause: Text,
    },
    /// A parent to its child: nobody waits for it any more.
    GivenUp,
    /// Whoever carries a call to the execution it belongs to, by way of the store: the call's result.
    Reported {
        /// The call.
        call: EventId,
        /// The result.
        output: Object,
    },
    /// The same: the call failed.
    ReportedFailed {
        /// The call.
        call: EventId,
        /// The error's name.
        error: Text,
        /// Its cause.
        cause: Text,
    },
    /// An operator to an execution, by way of the store: it is to stop.
    Stopped {
        /// The error's name; the language's own for a stop where none is given.
        error: Option<Text>,
        /// Its cause.
        cause: Text,
        /// Who.
        by: Option<Text>,
        /// Whether what was done is undone.
        rollback: bool,
    },
}
