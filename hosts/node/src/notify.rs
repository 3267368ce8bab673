//! Notifications: changes of an execution's status, delivered to webhooks and queues.
//!
//! Each notice goes at least once to each target that wants its status. A target gets the notices of one execution in
//! their order; executions are independent. A target that fails or is slow delays only itself, and never the flows:
//! notices are stored ([`NoticeQueue`]), and every target has its own loop ([`Notifier`]).
//!
//! A 2xx or an acknowledged message ends the delivery. Anything else is tried again: after a second, then each time
//! after twice as long, at most ten minutes, each time shortened a little by chance. After three days the notice is
//! dropped, which is logged and counted.

mod backoff;
mod delivery;
mod notice;
mod notifier;
mod settings;
mod signature;
mod stored;
mod target;
mod target_worker;

pub use notice::{Notice, STEP_EVENTS, StepNotice, failed_undo};
pub use notifier::Notifier;
pub use settings::{NotifierDeps, NotifierSettings};
pub use signature::signature;
pub use stored::StoredNotices;
pub use target::{Target, TargetConfig};
pub use target_worker::DeliveryCounters;

use starbridge_flow::time::Timestamp;
use starbridge_ports::StoreError;

/// The notices that are still to be delivered. Calls must be short, because they run on the notifier's thread.
pub trait NoticeQueue: Send + Sync {
    /// At most `limit` notices that are due for this target, the longest due first. Of each execution only the
    /// earliest stored one counts, whether it is due or not, so that a later one never overtakes it.
    ///
    /// # Errors
    ///
    /// The error of the store.
    fn due(&self, target: &str, now: Timestamp, limit: usize) -> Result<Due, StoreError>;
    /// Deletes a notice that was delivered or given up. The next one of its execution then counts.
    ///
    /// # Errors
    ///
    /// The error of the store.
    fn delivered(&self, target: &str, id: &str) -> Result<(), StoreError>;
    /// Postpones a notice that could not be delivered `failures` times so far.
    ///
    /// # Errors
    ///
    /// The error of the store.
    fn postpone(&self, target: &str, id: &str, failures: u32, until: Timestamp) -> Result<(), StoreError>;
}

/// The notices that are due.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Due {
    /// The due notices, the longest due first.
    pub notices: Vec<Pending>,
    /// When the first of the others is due; `None` if there are none.
    pub next: Option<Timestamp>,
}

/// A notice to deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The notice itself.
    pub notice: Notice,
    /// How often delivery failed.
    pub failures: u32,
}
