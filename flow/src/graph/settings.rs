//! Numbers of a step that its input gives, in place of numbers fixed in the definition.

use super::{Budget, Fault, Root};
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// The numbers that a step's input gave when the step was entered. What is missing is as the definition has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// 0–9, 9 first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Bound of each attempt.
    #[serde(rename = "timeoutMs", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// Bound of all attempts together.
    #[serde(rename = "totalTimeoutMs", skip_serializing_if = "Option::is_none")]
    pub total_timeout: Option<Millis>,
    /// Longest waiting in a queue.
    #[serde(rename = "waitMs", skip_serializing_if = "Option::is_none")]
    pub wait: Option<Millis>,
    /// Longest silence of a worker or callback.
    #[serde(rename = "heartbeatMs", skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Millis>,
    /// Numbers of retry policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<RetrySettings>,
}

/// The numbers of a retry policy that a step's input gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RetrySettings {
    /// Which policy, from 0.
    pub policy: u32,
    /// Delay before the first retry.
    #[serde(rename = "intervalMs", skip_serializing_if = "Option::is_none")]
    pub interval: Option<Millis>,
    /// Longest delay.
    #[serde(rename = "maxIntervalMs", skip_serializing_if = "Option::is_none")]
    pub max_interval: Option<Millis>,
    /// How many retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u64>,
    /// What the delay grows by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// Largest share of the delay that is taken off at random, 0–1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

/// Reads the numbers of a step from its input. It is pure: the same input gives the same numbers.
pub trait SettingsReader: Debug + Send + Sync {
    /// The numbers.
    ///
    /// # Errors
    ///
    /// A fault that names the member, where nothing or no fitting number is found.
    fn read(&self, input: Root<'_>, budget: &Budget) -> Result<Settings, Fault>;
}
