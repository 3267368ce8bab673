//! Settings of a notifier.

use super::NoticeQueue;
use starbridge_ports::{Clock, Secrets};
use starbridge_runtime::Connectors;
use std::sync::Arc;
use std::time::Duration;

/// What a notifier needs from outside.
#[derive(Clone)]
pub struct NotifierDeps {
    /// The notices to deliver.
    pub notices: Arc<dyn NoticeQueue>,
    /// The connectors `http`, `sqs` and `redis`. They are used only on the runtime of [`super::Notifier::run`].
    pub connectors: Connectors,
    /// The secrets that sign webhooks.
    pub secrets: Arc<dyn Secrets>,
    /// The time by which deliveries are tried again.
    pub clock: Arc<dyn Clock>,
}

/// Settings of deliveries.
#[derive(Clone, Debug)]
pub struct NotifierSettings {
    /// How many notices are out at once, for each target. Default: 8.
    pub at_once: usize,
    /// How long one delivery may take. Default: 10 seconds.
    pub timeout: Duration,
    /// For how long after its event a notice is tried. Default: 3 days.
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
