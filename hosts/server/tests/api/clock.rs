//! A clock that stands still until a test sets it.

use starbridge_flow::time::Timestamp;
use starbridge_ports::{Clock, ClockSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::Notify;

/// Where it begins: 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600_000;

/// A clock that stands still until it is set.
pub struct StandingClock {
    now: AtomicI64,
    set: Notify,
}

impl StandingClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            now: AtomicI64::new(BEGIN),
            set: Notify::new(),
        })
    }

    /// Lets this many milliseconds pass at once.
    pub fn pass(&self, millis: i64) {
        self.now.fetch_add(millis, Ordering::SeqCst);
        self.set.notify_waiters();
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    fn set(&self) -> ClockSet<'_> {
        Box::pin(self.set.notified())
    }
}
