//! Metrics from invocation to invocation.

use starbridge_node::node::Counters;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts at the end of the last invocation.
#[derive(Debug, Default)]
pub(crate) struct Figures([AtomicU64; 6]);

impl Figures {
    /// The counts since the last call.
    pub(crate) fn since_last(&self, counters: &Counters) -> Vec<(&'static str, u64)> {
        let ended: u64 = counters.ended().iter().map(|(_, count)| count).sum();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let now = [
            ("Started", count(&counters.started)),
            ("Ended", ended),
            ("Turns", count(&counters.turns)),
            ("Calls", count(&counters.calls)),
            ("Failures", count(&counters.failures)),
            ("Retries", count(&counters.retries)),
        ];
        let last = self.0.iter();
        now.into_iter()
            .zip(last)
            .map(|((name, now), last)| (name, now - last.swap(now, Ordering::Relaxed)))
            .collect()
    }
}
