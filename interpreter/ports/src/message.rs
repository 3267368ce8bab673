//! Messages between executions: stored with the turn that sends them, until the receiver's turn is stored.

use crate::admission::{Ask, DeclineReason};
use crate::audit::AuditEntry;
use serde::{Deserialize, Serialize};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, Status};

/// The identity of a message: its sender, the sender's event, and its receiver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId {
    /// The id of the sending execution.
    pub from: Text,
    /// The last event of the turn that sent the message, or the call it is about.
    pub event: EventId,
    /// The id of the receiving execution.
    pub to: Text,
}

/// A message from one execution to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The identity of the message.
    pub id: MessageId,
    /// The content of the message.
    pub body: MessageBody,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MessageBody {
    /// From a child to its parent: the call that waits for the child has its result.
    Succeeded {
        /// The number of the parent's call.
        call: EventId,
        /// The version of its flow that the child runs.
        version: u64,
        /// The output of the child.
        output: Value,
    },
    /// From a child to its parent: the call that waits for the child failed.
    Failed {
        /// The number of the parent's call.
        call: EventId,
        /// The version of its flow that the child runs.
        version: u64,
        /// The name of the child's error.
        error: Text,
        /// What happened, for people.
        cause: Text,
    },
    /// From a parent to its child: the parent no longer waits for it.
    GivenUp,
    /// From a parent to a child it waits for: the parent was paused.
    Pause {
        /// The name of the operator.
        by: Option<Text>,
        /// Why, for people.
        cause: Text,
    },
    /// From a parent to a child it waits for: the parent goes on after a pause.
    Resume {
        /// The name of the operator.
        by: Option<Text>,
    },
    /// The result of a call, from a process that does not run the execution and leaves it in the store.
    Reported {
        /// The number of the call.
        call: EventId,
        /// The result of the call.
        output: Value,
    },
    /// The failure of a call, from a process that does not run the execution and leaves it in the store.
    ReportedFailed {
        /// The number of the call.
        call: EventId,
        /// The name of the error.
        error: Text,
        /// What happened, for people.
        cause: Text,
    },
    /// An operator's stop, from a process that does not run the execution and leaves it in the store.
    Stopped {
        /// The name of the error; if `None`, the flow language's own name for a stop.
        error: Option<Text>,
        /// Why the execution is stopped, for people.
        cause: Text,
        /// The name of the operator.
        by: Option<Text>,
        /// Whether to undo what the execution has done.
        rollback: bool,
        /// The audit entry of the stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audit: Option<Box<AuditEntry>>,
    },
    /// From an execution to admission: it waits to be admitted.
    Ask(Box<Ask>),
    /// From admission to an execution that asked: it may begin.
    Admit,
    /// From admission to an execution that asked: it does not begin.
    Decline {
        /// Why it can never begin.
        reason: DeclineReason,
    },
    /// From admission to an execution: admission wants to know when it ends.
    Watch,
    /// From an execution to admission: it has ended, or no longer wants what it asked for.
    Ended {
        /// How it ended.
        status: Status,
    },
    /// From admission to an execution that asked: everything it waited for has ended in the
    /// required way, and it waits for slots.
    Met,
    /// From an execution to admission: it does not want now what it asked for or was given. It may
    /// ask again.
    Withdrawn,
    /// From an execution to admission: its request gets another order.
    Reorder {
        /// From 0 to 9, 9 first.
        priority: u8,
        /// Within a priority the smaller goes first.
        order: i64,
        /// Whether it no longer waits for other executions.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_after: bool,
    },
    /// From an execution to admission: it was started under a name that another execution waits
    /// for.
    Appeared {
        /// The flow of the execution that was started.
        flow: Text,
        /// The name that is waited for.
        name: Text,
    },
}
