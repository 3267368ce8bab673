//! All targets at once.

use super::Target;
use super::settings::{NotifierDeps, NotifierSettings};
use super::target_worker::{TargetWorker, Told};
use starbridge_machine::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Tells targets what is to be told.
pub struct Notifier {
    outlets: Vec<Arc<TargetWorker>>,
}

impl Notifier {
    /// A notifier of these targets.
    pub fn new(targets: Vec<Target>, world: &NotifierDeps, settings: &NotifierSettings) -> Self {
        let outlets = targets.into_iter().map(|target| {
            Arc::new(TargetWorker {
                target,
                world: world.clone(),
                settings: settings.clone(),
                told: Told::default(),
                failing: AtomicU32::new(0),
                said: AtomicBool::new(false),
                wake: Notify::new(),
            })
        });
        Self {
            outlets: outlets.collect(),
        }
    }

    /// The targets that are to be told of a change to this status.
    pub fn wanting(&self, status: Status) -> impl Iterator<Item = &str> {
        let wanting = self.outlets.iter().filter(move |outlet| outlet.target.wants(status));
        wanting.map(|outlet| outlet.target.name.as_str())
    }

    /// Says that there is something new to tell.
    pub fn wake(&self) {
        for outlet in &self.outlets {
            outlet.wake.notify_one();
        }
    }

    /// The targets, and what became of their notices.
    pub fn told(&self) -> impl Iterator<Item = (&str, &Told)> {
        self.outlets
            .iter()
            .map(|outlet| (outlet.target.name.as_str(), &outlet.told))
    }

    /// Tells for as long as it is waited for. It asks the store in between, so it belongs on a thread without others.
    pub async fn run(&self) {
        let mut running: JoinSet<()> = self.outlets.iter().map(|outlet| outlet.clone().run()).collect();
        while let Some(ended) = running.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a target's notifications are told no more");
            }
        }
        // Without targets there is nothing to tell, and no end either.
        std::future::pending().await
    }
}
