//! What a notifier works with.

use super::NextNotifications;
use starbridge_ports::{Clock, Secrets};
use starbridge_runtime::Connectors;
use std::sync::Arc;
use std::time::Duration;

/// What a notifier meets the world through.
#[derive(Clone)]
pub struct NotifierDeps {
    /// What is to be told.
    pub notices: Arc<dyn NextNotifications>,
    /// `http`, `sqs`, `redis`: used on the runtime [`super::Notifier::run`] is on, and by nobody on another.
    pub connectors: Connectors,
    /// What webhooks are signed with.
    pub secrets: Arc<dyn Secrets>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// How notices are told.
#[derive(Clone, Debug)]
pub struct NotifierSettings {
    /// Notices out at once, for each target. Default: 8.
    pub at_once: usize,
    /// How long a target may take for one. Default: 10 seconds.
    pub timeout: Duration,
    /// How long after what it tells of a notice is tried. Default: 3 days.
    pub keep: Duration,
}

impl Default for NotifierSettings {
    fn default() -> Self {
        Self {
            at_once: 8,
            timeout: Duration::from_secs(10),
            keep: Duration::from_hours(72),
        }
    }
}
