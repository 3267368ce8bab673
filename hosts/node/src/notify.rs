//! Notifications: changes of an execution's status, told to webhooks and queues.
//!
//! Each notice goes to each target that wants its status, at least once, and to one target in the order things happened in an
//! execution; executions are independent. A target that fails or is slow delays nobody but itself, and never the flows: what
//! is to be told is kept ([`NextNotifications`]), and every target has a loop of its own ([`Notifier`]).
//!
//! What takes a notice (a 2xx, an acknowledged message) has it. Anything else is tried again: after a second, twice as long
//! each time, at most ten minutes, each time a little less than that by chance; after three days it is dropped, which is said
//! in the log and counted.

mod backoff;
mod delivery;
mod notice;
mod notifier;
mod settings;
mod signature;
mod stored;
mod target;
mod target_worker;

pub use notice::{Notice, failed_undo};
pub use notifier::Notifier;
pub use settings::{NotifierDeps, NotifierSettings};
pub use signature::signature;
pub use stored::StoredNotices;
pub use target::{Target, TargetConfig};
pub use target_worker::Told;

use starbridge_fdl::time::Timestamp;
use starbridge_ports::StoreError;

/// Where notices are kept until they are told. Calls are short: they are made between others, on the notifier's thread.
pub trait NextNotifications: Send + Sync {
    /// At most `limit` notices for this target that are due, those first that have been for longest. Of each execution only
    /// the earliest one that is still kept counts, due or not: a later one never overtakes it.
    fn due(&self, target: &str, now: Timestamp, limit: usize) -> Result<Due, StoreError>;
    /// This notice is told, or was given up: it is kept no longer, and the next one of its execution counts.
    fn delivered(&self, target: &str, id: &str) -> Result<(), StoreError>;
    /// This notice could not be told, so many times by now. It is due again then.
    fn postpone(&self, target: &str, id: &str, failures: u32, until: Timestamp) -> Result<(), StoreError>;
}

/// What is due.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Due {
    /// The notices.
    pub notices: Vec<Pending>,
    /// When the first of those that are not yet due will be, where there are any.
    pub next: Option<Timestamp>,
}

/// A notice that is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The notice.
    pub notice: Notice,
    /// How often it could not be told.
    pub failures: u32,
}
