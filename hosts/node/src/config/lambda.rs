//! What counts where the interpreter is a function of AWS Lambda.

use serde::{Deserialize, Serialize};

/// The interpreter as a function of AWS Lambda.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LambdaConfig {
    /// The table of DynamoDB everything is kept in; empty: nothing is kept, and a flow has to end within its invocation.
    pub table: String,
    /// The queue of SQS the function reads, through which executions go on: its name, URL or ARN.
    pub queue: String,
    /// The queue for messages nobody can deal with; empty: where the redrive policy of the queue says.
    pub dead_letters: String,
    /// How often a message that fails is tried before it goes there.
    pub tries: u32,
    /// Where definitions of flows are: a folder of the function's package, or `s3://BUCKET/PREFIX`.
    pub flows: String,
    /// Flows whose histories are written only when they end, sleep or are handed on; `*` means all.
    pub express: Vec<String>,
    /// Milliseconds before the end of an invocation from which on everything is handed on.
    pub margin_ms: u64,
    /// Timers due within so many milliseconds are waited for within the invocation.
    pub linger_ms: u64,
    /// Whether figures are written for CloudWatch, in its embedded form.
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

    /// Whether a flow's histories are written only when they end, sleep or are handed on.
    pub fn is_express(&self, flow: &str) -> bool {
        self.express.iter().any(|name| name == "*" || name == flow)
    }
}
