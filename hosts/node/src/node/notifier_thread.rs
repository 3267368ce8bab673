//! The notifications of a node. They are delivered on a separate thread, so that targets never delay executions.

use super::threads::{End, note, runtime, spawn, unless_it_panics};
use super::{Node, NodeError, NodeSettings};
use crate::notify::{Notice, Notifier, NotifierDeps, NotifierSettings, StoredNotices, Target};
use starbridge_connector_http::HttpConnector;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::EventId;
use starbridge_machine::history::type_name;
use starbridge_ports::{KeptNotice, Store, StoreError};
use starbridge_runtime::{Connectors, Outgoing, Shard, StatusChange, StepEvent};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;

/// How long a drain waits until the last results are stored.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How many notices for a target that is no longer configured are deleted at a time.
const DELETE_BATCH: usize = 10_000;

/// The notifications of a node. A clone is the same.
#[derive(Clone)]
pub(super) struct Notifications {
    notifier: Arc<Notifier>,
    stored: Arc<StoredNotices>,
}

/// The thread that delivers notices. It ends when this is dropped.
pub(super) struct NotifierThread {
    stop: watch::Sender<bool>,
    over: watch::Receiver<bool>,
}

/// The view of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownTarget {
    /// The name of the target.
    pub name: String,
    /// How many notices were delivered since the start of the process.
    pub told: u64,
    /// How many deliveries failed.
    pub failed: u64,
    /// How many notices were given up.
    pub dropped: u64,
    /// How many notices are stored for it.
    pub waiting: u64,
}

impl Notifications {
    /// Prepares notifications if targets are configured. Notices for other targets are deleted.
    pub(super) fn prepare(settings: &NodeSettings) -> Result<Option<Self>, StoreError> {
        let targets = &settings.notifications;
        forget_others(settings.store.as_ref(), targets)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let stored = Arc::new(StoredNotices::new(settings.store.clone()));
        let mut connectors = Connectors::new();
        settings.optional_connectors.insert_into(&mut connectors);
        connectors.insert("http", Arc::new(HttpConnector::new(settings.http.clone())));
        let deps = NotifierDeps {
            notices: stored.clone(),
            connectors,
            secrets: settings.secrets.clone(),
            clock: settings.clock.clone(),
        };
        let notifier = Notifier::new(targets.clone(), &deps, &NotifierSettings::default());
        Ok(Some(Self {
            notifier: Arc::new(notifier),
            stored,
        }))
    }

    /// Makes a shard store notices.
    pub(super) fn listen_to(&self, shard: &mut Shard) {
        let notifier = self.notifier.clone();
        shard.notify(move |change| notices(&notifier, change));
        if self.notifier.tells_steps() {
            let notifier = self.notifier.clone();
            shard.notify_of_steps(move |event| step_notices(&notifier, event));
        }
    }

    /// Wakes the notifier if the output is a new notice.
    pub(super) fn see(&self, outgoing: &Outgoing) {
        if matches!(outgoing, Outgoing::Noticed { .. }) && self.stored.note_news() {
            self.notifier.wake();
        }
    }

    /// Starts delivery on a separate thread. If the store fails there, the node ends.
    pub(super) fn start(&self, end: &watch::Sender<End>) -> Result<NotifierThread, NodeError> {
        let (own, end) = (self.clone(), end.clone());
        let (stop, stopped) = watch::channel(false);
        let (ended, over) = watch::channel(false);
        spawn("notifier", move |name| {
            let told = unless_it_panics(&name, || own.run_until(stopped));
            if told.is_err() {
                note(&end, told);
            }
            ended.send_replace(true);
        })?;
        Ok(NotifierThread { stop, over })
    }

    fn run_until(&self, mut stop: watch::Receiver<bool>) -> Result<(), NodeError> {
        let runtime = runtime()?;
        let told = runtime.block_on(async {
            tokio::select! {
                () = self.notifier.run() => Ok(()),
                error = self.stored.failed() => Err(error),
                _ = stop.wait_for(|stop| *stop) => self.stored.write_all(),
            }
        });
        // A delivery in progress is repeated at the next start, unless its target answers in time.
        runtime.shutdown_background();
        told.map_err(NodeError::Store)
    }
}

impl NotifierThread {
    /// Stops delivery. Results are stored, if the store answers in time.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        let mut over = self.over.clone();
        if tokio::time::timeout(DRAIN_TIMEOUT, over.wait_for(|over| *over))
            .await
            .is_err()
        {
            tracing::warn!("some of what was told may be told again at the next start");
        }
    }
}

/// The notices about a change, one for each target that wants it.
fn notices(notifier: &Notifier, change: &StatusChange<'_>) -> Vec<KeptNotice> {
    let wanting = notifier.wanting(change.record.status);
    addressed(wanting, (change.event, change.time), || Some(Notice::of(change)))
}

/// The notices about an event of a step, one for each target that wants it.
fn step_notices(notifier: &Notifier, told: &StepEvent<'_>) -> Vec<KeptNotice> {
    let event = told.event;
    let wanting = notifier.wanting_event(type_name(&event.detail));
    addressed(wanting, (event.id, event.time), || Notice::of_step(told))
}

/// One notice for each of these targets. It is made once, and only if there are any.
fn addressed<'n>(
    targets: impl Iterator<Item = &'n str>,
    (event, time): (EventId, Timestamp),
    notice: impl FnOnce() -> Option<Notice>,
) -> Vec<KeptNotice> {
    let mut targets = targets.peekable();
    let Some(notice) = targets.peek().and_then(|_| notice()) else {
        return Vec::new();
    };
    let text = Value::from(notice.message()).to_json();
    let notice = |target: &str| KeptNotice {
        target: Text::from(target),
        event,
        time,
        text: text.clone(),
    };
    targets.map(notice).collect()
}

fn forget_others(store: &dyn Store, targets: &[Target]) -> Result<(), StoreError> {
    for (name, count) in store.notice_counts()? {
        if targets.iter().any(|target| name == *target.name) {
            continue;
        }
        while store.forget_notices(&name, DELETE_BATCH)? > 0 {}
        tracing::warn!(target_name = %name, count, "notifications for a target that is configured no longer are dropped");
    }
    Ok(())
}

impl Node {
    /// The targets of notifications with their counts.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn notifications(&self) -> Result<Vec<ShownTarget>, StoreError> {
        let Some(notifications) = &self.notifications else {
            return Ok(Vec::new());
        };
        let counts = self.store.notice_counts()?;
        let shown = notifications.notifier.counters().map(|(name, told)| {
            let waiting = counts.iter().find(|(target, _)| *target == name);
            ShownTarget {
                name: name.to_owned(),
                told: told.delivered.load(Ordering::Relaxed),
                failed: told.failed.load(Ordering::Relaxed),
                dropped: told.dropped.load(Ordering::Relaxed),
                waiting: waiting.map_or(0, |(_, count)| *count),
            }
        });
        Ok(shown.collect())
    }
}
