//! Retries: whether there is a further attempt, and when.

use super::Fault;
use super::data::ceil_millis;
use serde_json::Value;
use std::collections::BTreeMap;

/// Whether a policy or clause names an error.
pub fn names(clause: &Value, fault: &Fault) -> bool {
    let mut errors = clause["errors"].as_array().into_iter().flatten();
    errors.any(|error| *error == "FnF.ALL" || *error == fault.error.as_str())
}

/// Retries used in one visit, by policy.
#[derive(Default)]
pub struct Retries {
    used: BTreeMap<usize, u64>,
}

impl Retries {
    /// Milliseconds until the next attempt, if there is one: the first policy that names the error decides.
    pub fn next(&mut self, policies: &Value, fault: &Fault) -> Option<u64> {
        let policies = policies.as_array()?;
        let index = policies.iter().position(|policy| names(policy, fault))?;
        let policy = policies.get(index)?;
        let number = |key: &str, default: f64| policy[key].as_f64().unwrap_or(default);
        let used = self.used.entry(index).or_default();
        if *used >= policy["maxAttempts"].as_u64().unwrap_or(3) {
            return None;
        }
        let growth = if policy["backoff"] == "fixed" {
            1.0
        } else {
            number("multiplier", 2.0)
        };
        let delay = number("intervalSeconds", 1.0) * growth.powi(i32::try_from(*used).unwrap_or(i32::MAX));
        *used += 1;
        Some(ceil_millis(delay.min(number("maxIntervalSeconds", 86_400.0))))
    }
}
