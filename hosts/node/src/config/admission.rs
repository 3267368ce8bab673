//! How admission chooses.

use serde::{Deserialize, Serialize};
use starbridge_runtime::AdmissionSettings;

/// How admission chooses among those that wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdmissionConfig {
    /// After so many admissions through a key, the one that waits longest in its line is next; 0: never.
    pub fair_share: u32,
    /// When so many executions wait to be admitted, starts that may have to are refused.
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
