//! Starts that are carried out later.

use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_machine::StartRecord;

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
}
