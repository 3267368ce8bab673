//! A pause of an execution.

use crate::event::EventId;
use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;

/// A pause: nothing new begins, and no timer fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// The number of its `ExecutionPaused` event.
    pub event: EventId,
    /// When it began.
    pub since: Timestamp,
    /// The name of the operator; empty if it is not known.
    pub by: Text,
    /// Why, for people.
    pub cause: Text,
    /// Whether it began because the execution that waits for this one was paused. It then also ends with that pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_parent: bool,
}
