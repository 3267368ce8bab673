//! Settings for the interpreter as a function of AWS Lambda.

use serde::{Deserialize, Serialize};

/// Settings for the interpreter as a function of AWS Lambda.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LambdaConfig {
    /// The table of the store in DynamoDB; empty: there is no store, and a flow must end within its invocation.
    pub table: String,
    /// The queue of SQS that the function reads, through which executions go on: its name, URL or ARN.
    pub queue: String,
    /// The queue for messages that can't be handled; empty: the one of the queue's redrive policy.
    pub dead_letters: String,
    /// After how many failed tries a message goes there.
    pub tries: u32,
    /// Where the definitions of flows are: a folder in the function's package, or `s3://BUCKET/PREFIX`.
    pub flows: String,
    /// Flows whose histories are written only when they end, sleep or are handed over; `*` means all.
    pub express: Vec<String>,
    /// How many milliseconds before the end of an invocation everything is handed over.
    pub margin_ms: u64,
    /// A timer due within this many milliseconds is waited for in the invocation.
    pub linger_ms: u64,
    /// Whether metrics are written for CloudWatch, in its embedded format.
    pub metrics: bool,
}

impl Default for LambdaConfig {
    fn default() -> Self {
        Self {
            table: String::new(),
            queue: String::new(),
            dead_letters: String::new(),
            tries: 3,
            flows: "flows".to_owned(),
            express: Vec::new(),
            margin_ms: 3_000,
            linger_ms: 2_000,
            metrics: false,
        }
    }
}

impl LambdaConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.queue.is_empty() && !self.table.is_empty() {
            return Err(
                "`lambda.table` needs `lambda.queue`: what does not end within an invocation goes on through it"
                    .to_owned(),
            );
        }
        if self.table.is_empty() && !self.queue.is_empty() {
            return Err(
                "`lambda.queue` says nothing without `lambda.table`: nothing would be kept to go on with".to_owned(),
            );
        }
        Ok(())
    }

    /// Whether a flow's histories are written only when they end, sleep or are handed over.
    pub fn is_express(&self, flow: &str) -> bool {
        self.express.iter().any(|name| name == "*" || name == flow)
    }
}
