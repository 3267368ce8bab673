//! The queue of SQS that reports come through.

use crate::aws;
use serde::{Deserialize, Serialize};
use starbridge_ports::ReplySource;
use std::sync::Arc;

/// The queue of SQS that reports come through. Where it is, and who asks, is configured the ways of AWS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqsConfig {
    /// The queue: its name, URL or ARN; empty: none.
    pub reply_queue: String,
    /// Where messages go that nobody can deal with; empty: where the redrive policy of the queue says.
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
