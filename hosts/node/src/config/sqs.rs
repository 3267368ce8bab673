//! Settings for the queue of SQS through which reports arrive.

use crate::aws;
use serde::{Deserialize, Serialize};
use starbridge_ports::ReplySource;
use std::sync::Arc;

/// Settings for the queue of SQS through which reports arrive. Region and credentials are
/// configured as usual for AWS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqsConfig {
    /// The name, URL or ARN of the queue; empty: none.
    pub reply_queue: String,
    /// The queue for messages that can't be handled; empty: the one of the queue's redrive policy.
    pub dead_letters: String,
}

impl SqsConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.reply_queue.is_empty() && !self.dead_letters.is_empty() {
            return Err("`sqs.dead_letters` says nothing without `sqs.reply_queue`".to_owned());
        }
        self.replies().map(drop)
    }

    /// The reply queue, if there is one.
    pub(super) fn replies(&self) -> Result<Option<Arc<dyn ReplySource>>, String> {
        if self.reply_queue.is_empty() {
            return Ok(None);
        }
        let dead_letters = Some(self.dead_letters.as_str()).filter(|queue| !queue.is_empty());
        let replies = aws::replies(&self.reply_queue, dead_letters);
        replies.map(Some).map_err(|error| format!("`sqs.reply_queue`: {error}"))
    }
}
