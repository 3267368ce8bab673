//! Numbers of a step that its input gives, in place of numbers fixed in the definition.

use super::{Budget, Fault, Root};
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// The numbers that a step's input gave when the step was entered. For a missing one, the
/// definition's value holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// From 0 to 9; 9 goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The time limit of each attempt.
    #[serde(rename = "timeoutMs", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// The time limit of all attempts together.
    #[serde(rename = "totalTimeoutMs", skip_serializing_if = "Option::is_none")]
    pub total_timeout: Option<Millis>,
    /// The longest wait in a queue.
    #[serde(rename = "waitMs", skip_serializing_if = "Option::is_none")]
    pub wait: Option<Millis>,
    /// The longest time without a heartbeat of a worker or callback.
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
    /// The growth factor of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// The largest random reduction of the delay, as a share from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

/// Reads the numbers of a step from its input. It is pure: the same input gives the same numbers.
pub trait SettingsReader: Debug + Send + Sync {
    /// The numbers.
    ///
    /// # Errors
    ///
    /// A fault that names the member, if no number or no fitting number is found.
    fn read(&self, input: Root<'_>, budget: &Budget) -> Result<Settings, Fault>;
}
