//! The place of a waiting task in its queue.

use super::TaskKey;
use starbridge_flow::time::Timestamp;
use starbridge_ports::QueuedTask;
use std::cmp::Reverse;

/// The task's order key, then its own key. The smallest is taken first.
pub(super) type QueuePosition = ((Reverse<u8>, u64, Timestamp), TaskKey);

pub(super) fn position(task: &QueuedTask) -> QueuePosition {
    let key = (task.execution.clone(), task.call);
    (task.order_key(), key)
}
