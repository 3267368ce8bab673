//! Retention: old executions are deleted, a few at a time.

use super::Node;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_ports::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The largest number of executions deleted at a time. A store takes fewer if their histories are
/// long, so that others do not wait for it long.
const DELETE_BATCH: usize = 1_024;
/// The minimum pause after that. Executions that ended meanwhile are deleted together.
const BATCH_PAUSE: Duration = Duration::from_millis(10);
/// After a long deletion, the additional pause is this part of the time that it took.
const PAUSE_SHARE: u32 = 8;
/// How long to wait after some entries of the audit list were deleted.
const AUDIT_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait if nothing is left to delete.
const IDLE_PAUSE: Duration = Duration::from_secs(60);
/// How long to wait right after a deletion, doubled each time after that: executions that pile up meanwhile
/// take no longer to delete than the wait.
const FIRST_IDLE_PAUSE: Duration = Duration::from_millis(250);

impl Node {
    /// Deletes, forever, executions that ended more than `days` days ago.
    pub async fn clear_periodically(self: Arc<Self>, days: u64) {
        let mut idle = FIRST_IDLE_PAUSE;
        loop {
            let before = self.now().minus(Millis::from_days(days));
            let begun = Instant::now();
            let pause = match self.clear_before(before).await {
                Ok(0) => {
                    let pause = idle;
                    idle = idle.saturating_mul(2).min(IDLE_PAUSE);
                    pause
                }
                Ok(_) => {
                    idle = FIRST_IDLE_PAUSE;
                    (begun.elapsed() / PAUSE_SHARE).clamp(BATCH_PAUSE, IDLE_PAUSE)
                }
                Err(error) => {
                    tracing::warn!(%error, "what has ended can't be cleared away");
                    IDLE_PAUSE
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Deletes, forever, entries of the audit list that are older than `days` days.
    pub async fn clear_audit_periodically(self: Arc<Self>, days: u64) {
        loop {
            let before = self.now().minus(Millis::from_days(days));
            let pause = match self.clear_audit_before(before).await {
                Ok(0) => IDLE_PAUSE,
                Ok(_) => AUDIT_PAUSE,
                Err(error) => {
                    tracing::warn!(%error, "old entries of the audit list can't be cleared away");
                    IDLE_PAUSE
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Deletes a few entries of the audit list that were made before a time, the earliest first. Returns how many.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub async fn clear_audit_before(&self, before: Timestamp) -> Result<usize, StoreError> {
        let store = self.store.clone();
        let cleared = tokio::task::spawn_blocking(move || store.clear_audit(before, DELETE_BATCH)).await;
        cleared.unwrap_or_else(|_| Err(StoreError::Unavailable("clearing away was broken off".to_owned())))
    }

    /// Deletes a few executions and bulk jobs that ended before a time, the earliest first. Returns
    /// how many it handled; 0 means that nothing is left.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub async fn clear_before(&self, before: Timestamp) -> Result<usize, StoreError> {
        let store = self.store.clone();
        let clear = move || {
            let jobs = store.bulk_jobs().map(|jobs| jobs.clear_jobs(before, DELETE_BATCH));
            Ok(store.clear(before, DELETE_BATCH)? + jobs.transpose()?.unwrap_or(0))
        };
        let cleared = tokio::task::spawn_blocking(clear).await;
        cleared.unwrap_or_else(|_| Err(StoreError::Unavailable("clearing away was broken off".to_owned())))
    }
}
