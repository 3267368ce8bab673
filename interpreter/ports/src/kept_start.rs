//! Starts, forks and redrives that are carried out later.

use crate::admission::{Dependency, NeededKey};
use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, NewDefinition, StartRecord, Status};

/// How an execution that waits will begin. As JSON it is the text of
/// [`RequestChange::Keep`](crate::RequestChange::Keep).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptStart {
    /// The start with which it begins.
    pub start: Box<StartRecord>,
    /// When it was requested.
    pub requested: Timestamp,
    /// The time before which it must not begin.
    pub start_at: Timestamp,
    /// The time after which it must not begin any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The concurrency keys. It needs a slot of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<NeededKey>,
    /// The executions it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Dependency>,
    /// Its ancestors, the parent first, as far as executions may wait for one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Text>,
    /// Whether it was admitted while it was paused, and has held its slots since then. Only earlier
    /// versions wrote this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admitted: bool,
    /// Whether it was admitted while it was paused, and gave its slots back. It asks again when it
    /// is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_back: bool,
    /// Whether the executions it waits for have ended in the required way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub met: bool,
    /// Whether its flow had a limit or a pause when it asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flow_limited: bool,
    /// The history it goes on from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<KeptFork>,
}

impl KeptStart {
    /// The executions it still waits for, as far as it knows.
    pub fn open_after(&self) -> &[Dependency] {
        match self.met {
            true => &[],
            false => &self.after,
        }
    }
}

/// Where a fork that waits to begin goes on from. The old history is read again when the fork
/// begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptFork {
    /// The id of the old execution.
    pub of: Text,
    /// The event to go on from.
    pub event: EventId,
    /// The name of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Text>,
}

/// A redrive that waits to be admitted, or another signal that lets an ended execution go on. As
/// JSON it is the text of [`RequestChange::Replace`](crate::RequestChange::Replace).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptRedrive {
    /// The number under which admission was asked.
    pub asked: EventId,
    /// When it was requested.
    pub requested: Timestamp,
    /// The status to return to if it is not carried out.
    pub former: Status,
    /// The name of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The given inputs, each with the event of its step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(EventId, Value)>,
    /// The definition it goes on with, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<NewDefinition>,
    /// The kind of undoing, if it is not a redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<KeptUndo>,
    /// The place that an operator gave it while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<KeptPlace>,
}

/// A new place of a redrive that waits. The execution has it once it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptPlace {
    /// The new priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The new order within a priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_time: Option<i64>,
    /// The name of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// How an execution whose undoing has ended goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum KeptUndo {
    /// The rollback goes on without the undo that failed.
    Skip {
        /// Why, for people.
        cause: String,
    },
    /// Everything that has succeeded is undone.
    All {
        /// The name of the error; if `None`, the flow language's own name for a stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Why, for people.
        cause: String,
    },
}
