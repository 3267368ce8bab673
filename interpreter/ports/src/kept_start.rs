//! Starts, forks and redrives that are carried out later.

use crate::admission::{Dependency, NeededKey};
use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, NewDefinition, StartRecord, Status};

/// How an execution begins that waits to. As JSON it is the text of [`RequestChange::Keep`](crate::RequestChange::Keep).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptStart {
    /// What it begins with.
    pub start: Box<StartRecord>,
    /// When it was asked for.
    pub requested: Timestamp,
    /// The time before which it is not to begin.
    pub start_at: Timestamp,
    /// The time after which it is not to begin any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The concurrency keys of which it needs a slot each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<NeededKey>,
    /// The executions it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Dependency>,
    /// Its ancestors, the parent first, as far as executions may wait for one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Text>,
    /// Whether it was admitted while it was paused, and holds its slots since. Earlier versions wrote this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admitted: bool,
    /// Whether it was admitted while it was paused, and gave its slots back. It asks anew when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_back: bool,
    /// Whether the executions it waits for have ended as they had to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub met: bool,
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

/// Where a fork goes on from that waits to begin. The old history is read again when it does.
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

/// A redrive, or another signal that lets an execution go on which has ended, that waits to be admitted. As JSON it is the text of [`RequestChange::Replace`](crate::RequestChange::Replace).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptRedrive {
    /// The number under which admission was asked.
    pub asked: EventId,
    /// When it was asked for.
    pub requested: Timestamp,
    /// The status to go back to, if it is not carried out.
    pub former: Status,
    /// The name of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The inputs that were given, each with the event of its step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(EventId, Value)>,
    /// The definition it goes on with, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<NewDefinition>,
    /// What is done, if it is no redrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<KeptUndo>,
}

/// How an execution goes on with undoing that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum KeptUndo {
    /// The rollback goes on without the undo that failed.
    Skip {
        /// Why, for people.
        cause: String,
    },
    /// What has succeeded is undone.
    All {
        /// The name of the error; if `None`, the flow language's own name for a stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Why, for people.
        cause: String,
    },
}
