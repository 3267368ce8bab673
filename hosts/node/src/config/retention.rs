//! How long executions and the audit list are kept.

use serde::{Deserialize, Serialize};

/// How long executions are kept after they ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// How many days; 0: forever.
    pub days: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { days: 14 }
    }
}

/// How long the audit list is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditConfig {
    /// How many days; 0: forever.
    pub days: u64,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { days: 400 }
    }
}
