//! The loop of one target: takes due notices and delivers a limited number at once.

use super::delivery::{DeliveryError, deliver};
use super::{Due, Notice, NotifierDeps, NotifierSettings, Pending, Target, backoff};
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::FaultKind;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_ports::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{Id, JoinSet};

/// How long a target's loop waits after the store has failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The counts of a target's deliveries since the start of the process.
#[derive(Debug, Default)]
pub struct DeliveryCounters {
    /// Notices that were delivered.
    pub delivered: AtomicU64,
    /// Deliveries that failed.
    pub failed: AtomicU64,
    /// Notices that were given up.
    pub dropped: AtomicU64,
}

/// A target, with everything needed to deliver to it.
pub(super) struct TargetWorker {
    pub target: Target,
    pub deps: NotifierDeps,
    pub settings: NotifierSettings,
    pub told: DeliveryCounters,
    /// How many deliveries in a row have failed.
    pub failing: AtomicU32,
    /// Whether it was logged that the target fails.
    pub said: AtomicBool,
    pub wake: Notify,
}

/// With each failure in a row, the pause between deliveries to a target grows by this much, up to a
/// limit. So checking whether the target answers again costs little, even if many notices are
/// stored for it.
const SLOWDOWN_STEP: Duration = Duration::from_millis(20);
const MAX_SLOWDOWN: Duration = Duration::from_secs(1);

/// The result of a delivery.
type TryResult = Result<(), DeliveryError>;

impl TargetWorker {
    /// Delivers until it is dropped. Deliveries in progress are repeated at the next start.
    pub(super) async fn run(self: Arc<Self>) {
        let mut out = JoinSet::new();
        let mut flying = BTreeMap::new();
        loop {
            match self.due() {
                Ok(due) => {
                    let next = due.next;
                    match self.send(due, &mut out, &mut flying) {
                        Ok(0) => {}
                        Ok(_) => continue,
                        Err(error) => self.store_failed(&error).await,
                    }
                    let wait = next.map(|next| next.since(self.deps.clock.now()).max(Millis(1)));
                    let timer = async {
                        match wait {
                            Some(span) => tokio::time::sleep(span.into()).await,
                            None => std::future::pending().await,
                        }
                    };
                    let settled = tokio::select! {
                        ended = out.join_next_with_id(), if !out.is_empty() => self.ended(ended, &mut flying),
                        () = self.wake.notified() => Ok(()),
                        () = timer => Ok(()),
                    };
                    if let Err(error) = settled {
                        self.store_failed(&error).await;
                    }
                }
                Err(error) => self.store_failed(&error).await,
            }
        }
    }

    fn due(&self) -> Result<Due, StoreError> {
        let now = self.deps.clock.now();
        self.deps.notices.due(&self.target.name, now, self.settings.at_once)
    }

    /// Starts deliveries of due notices that are not out. A slow target never gets more at once
    /// than it can take. A notice that is too old is given up if the target is failing now. Returns
    /// how many were given up.
    fn send(
        self: &Arc<Self>,
        due: Due,
        out: &mut JoinSet<TryResult>,
        flying: &mut BTreeMap<Id, Pending>,
    ) -> Result<u32, StoreError> {
        let now = self.deps.clock.now();
        let mut given_up = 0;
        for pending in due.notices {
            let is_out = |other: &Pending| {
                other.notice.execution == pending.notice.execution && other.notice.event == pending.notice.event
            };
            if flying.len() >= self.settings.at_once || flying.values().any(is_out) {
                continue;
            }
            if self.failing.load(Ordering::Relaxed) > 0 && now > self.keeps_until(&pending.notice) {
                self.give_up(&pending.notice, pending.failures, "the target fails")?;
                given_up += 1;
                continue;
            }
            let (worker, sent) = (self.clone(), pending.clone());
            let task = out.spawn(async move {
                let time = worker.settings.timeout;
                let tried = deliver(&worker.deps, &worker.target, &sent.notice, sent.failures, time).await;
                worker.take_pace(tried.is_ok()).await;
                tried
            });
            flying.insert(task.id(), pending);
        }
        Ok(given_up)
    }

    async fn take_pace(&self, told: bool) {
        if told {
            self.failing.store(0, Ordering::Relaxed);
            return;
        }
        let failing = self.failing.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let usual = u32::try_from(self.settings.at_once).unwrap_or(u32::MAX);
        let slower = SLOWDOWN_STEP
            .saturating_mul(failing.saturating_sub(usual))
            .min(MAX_SLOWDOWN);
        if !slower.is_zero() {
            tokio::time::sleep(slower).await;
        }
    }

    /// Until when delivery of a notice is tried.
    fn keeps_until(&self, notice: &Notice) -> Timestamp {
        notice.time.plus(self.settings.keep.into())
    }

    fn give_up(&self, notice: &Notice, failures: u32, cause: &str) -> Result<(), StoreError> {
        let (target, id) = (self.target.name.as_str(), notice.id());
        self.told.dropped.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            target_name = target,
            notice = id,
            failures,
            cause,
            "a notification is given up"
        );
        self.deps.notices.delivered(target, &id)
    }

    fn ended(
        &self,
        ended: Option<Result<(Id, TryResult), tokio::task::JoinError>>,
        flying: &mut BTreeMap<Id, Pending>,
    ) -> Result<(), StoreError> {
        let (id, tried) = match ended {
            None => return Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(error)) => {
                let panicked = DeliveryError {
                    error: FAULT_NAMES.name(&FaultKind::Runtime).to_string(),
                    cause: "the connector panicked".to_owned(),
                    retry_after: None,
                };
                (error.id(), Err(panicked))
            }
        };
        match flying.remove(&id) {
            None => Ok(()),
            Some(pending) => self.finish_try(&pending, tried),
        }
    }

    fn finish_try(&self, pending: &Pending, tried: TryResult) -> Result<(), StoreError> {
        let (target, id) = (self.target.name.as_str(), pending.notice.id());
        let Err(untold) = tried else {
            self.told.delivered.fetch_add(1, Ordering::Relaxed);
            if self.said.swap(false, Ordering::Relaxed) {
                tracing::info!(target_name = target, "notifications are told again");
            }
            return self.deps.notices.delivered(target, &id);
        };
        self.told.failed.fetch_add(1, Ordering::Relaxed);
        let now = self.deps.clock.now();
        let failures = pending.failures.saturating_add(1);
        let asked = Duration::from_secs(untold.retry_after.unwrap_or_default().0);
        let pause = backoff::delay(&id, failures).max(asked);
        let again = now.plus(pause.into());
        let (error, cause) = (untold.error.as_str(), untold.cause.as_str());
        if again > self.keeps_until(&pending.notice) {
            return self.give_up(&pending.notice, failures, &format!("{error}: {cause}"));
        }
        // Logged once until a delivery succeeds, even if many notices are stored for a target that
        // does not answer.
        if !self.said.swap(true, Ordering::Relaxed) {
            let until = "they are kept, and tried again";
            tracing::warn!(
                target_name = target,
                error,
                cause,
                "notifications can't be told: {until}"
            );
        }
        tracing::debug!(
            target_name = target,
            notice = id,
            failures,
            error,
            cause,
            "a notification is tried again"
        );
        self.deps.notices.postpone(target, &id, failures, again)
    }

    async fn store_failed(&self, error: &StoreError) {
        tracing::warn!(target_name = self.target.name, %error, "notifications can't be read or kept");
        tokio::time::sleep(STORE_PAUSE).await;
    }
}
