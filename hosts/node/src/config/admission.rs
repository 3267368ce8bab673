//! How admission selects executions.

use serde::{Deserialize, Serialize};
use starbridge_runtime::AdmissionSettings;

/// How admission selects among waiting executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdmissionConfig {
    /// After this many admissions through a key, the execution that has waited longest in its line
    /// is next; 0: never.
    pub fair_share: u32,
    /// At this many executions that wait to be admitted, starts that may have to wait are refused.
    pub max_waiting: u64,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            fair_share: AdmissionSettings::default().fair_share,
            max_waiting: AdmissionSettings::default().max_waiting,
        }
    }
}

impl AdmissionConfig {
    pub(super) fn settings(&self) -> AdmissionSettings {
        AdmissionSettings {
            fair_share: self.fair_share,
            max_waiting: self.max_waiting,
            ..AdmissionSettings::default()
        }
    }
}
