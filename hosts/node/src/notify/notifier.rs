//! Delivery to all targets.

use super::Target;
use super::settings::{NotifierDeps, NotifierSettings};
use super::target_worker::{DeliveryCounters, TargetWorker};
use starbridge_machine::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Delivers notices to targets.
///
/// Call [`Notifier::new`], then poll [`Notifier::run`] for as long as notices must be delivered.
/// [`Notifier::wake`] signals a new one.
pub struct Notifier {
    workers: Vec<Arc<TargetWorker>>,
}

impl Notifier {
    /// A notifier for these targets.
    pub fn new(targets: Vec<Target>, deps: &NotifierDeps, settings: &NotifierSettings) -> Self {
        let workers = targets.into_iter().map(|target| {
            Arc::new(TargetWorker {
                target,
                deps: deps.clone(),
                settings: settings.clone(),
                told: DeliveryCounters::default(),
                failing: AtomicU32::new(0),
                said: AtomicBool::new(false),
                wake: Notify::new(),
            })
        });
        Self {
            workers: workers.collect(),
        }
    }

    /// The names of the targets that want a change to this status.
    pub fn wanting(&self, status: Status) -> impl Iterator<Item = &str> {
        let wanting = self.workers.iter().filter(move |worker| worker.target.wants(status));
        wanting.map(|worker| worker.target.name.as_str())
    }

    /// The names of the targets that want an event of a step of this type.
    pub fn wanting_event<'n>(&'n self, event: &'n str) -> impl Iterator<Item = &'n str> {
        let wanting = self
            .workers
            .iter()
            .filter(move |worker| worker.target.wants_event(event));
        wanting.map(|worker| worker.target.name.as_str())
    }

    /// Whether a target wants events of steps.
    pub fn tells_steps(&self) -> bool {
        super::STEP_EVENTS
            .iter()
            .any(|event| self.wanting_event(event).next().is_some())
    }

    /// Signals that there is a new notice.
    pub fn wake(&self) {
        for worker in &self.workers {
            worker.wake.notify_one();
        }
    }

    /// The targets with the counts of their deliveries.
    pub fn counters(&self) -> impl Iterator<Item = (&str, &DeliveryCounters)> {
        self.workers
            .iter()
            .map(|worker| (worker.target.name.as_str(), &worker.told))
    }

    /// Delivers notices for as long as the future is polled. It calls the store in between, so it needs a thread of
    /// its own.
    pub async fn run(&self) {
        let mut running: JoinSet<()> = self.workers.iter().map(|worker| worker.clone().run()).collect();
        while let Some(ended) = running.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a target's notifications are told no more");
            }
        }
        // Without targets there is nothing to deliver, and no end either.
        std::future::pending().await
    }
}
