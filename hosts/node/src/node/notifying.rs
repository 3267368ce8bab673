//! Notifications of a node: told on a thread of their own, so that nothing a target does is felt by executions.

use super::threads::{End, note, runtime, spawn, unless_it_panics};
use super::{Node, NodeError, NodeSettings};
use crate::notify::{Notice, Notifier, NotifierDeps, NotifierSettings, StoredNotices, Target};
use starbridge_connector_http::HttpConnector;
use starbridge_flow::value::{Text, Value};
use starbridge_ports::{KeptNotice, Store, StoreError};
use starbridge_runtime::{Connectors, Outgoing, Shard, StatusChange};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;

/// How long a drain waits for the last word to the store.
const PATIENCE: Duration = Duration::from_secs(2);
/// Notices for a target that is configured no longer, deleted at a time.
const FORGOTTEN: usize = 10_000;

/// What is told to whom. A clone is the same.
#[derive(Clone)]
pub(super) struct Notifications {
    notifier: Arc<Notifier>,
    stored: Arc<StoredNotices>,
}

/// The thread that tells. It ends when this is dropped.
pub(super) struct NotifierThread {
    stop: watch::Sender<bool>,
    over: watch::Receiver<bool>,
}

/// A target as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownTarget {
    /// Its name.
    pub name: String,
    /// Notices told, since the start of the process.
    pub told: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Notices given up.
    pub dropped: u64,
    /// Notices that are kept for it.
    pub waiting: u64,
}

impl Notifications {
    /// Gets notifications ready, if anybody is to be told. What is kept for others is forgotten.
    pub(super) fn prepare(settings: &NodeSettings) -> Result<Option<Self>, StoreError> {
        let targets = &settings.notifications;
        forget_others(settings.store.as_ref(), targets)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let stored = Arc::new(StoredNotices::new(settings.store.clone()));
        let mut connectors = Connectors::new();
        settings.further.insert_into(&mut connectors);
        connectors.insert("http", Arc::new(HttpConnector::new(settings.http.clone())));
        let world = NotifierDeps {
            notices: stored.clone(),
            connectors,
            secrets: settings.secrets.clone(),
            clock: settings.clock.clone(),
        };
        let notifier = Notifier::new(targets.clone(), &world, &NotifierSettings::default());
        Ok(Some(Self {
            notifier: Arc::new(notifier),
            stored,
        }))
    }

    /// Lets a shard keep what is to be told.
    pub(super) fn listen_to(&self, shard: &mut Shard) {
        let notifier = self.notifier.clone();
        shard.notify(move |change| notices(&notifier, change));
    }

    /// Sees that there is something to tell.
    pub(super) fn see(&self, outgoing: &Outgoing) {
        if matches!(outgoing, Outgoing::Noticed { .. }) && self.stored.note_news() {
            self.notifier.wake();
        }
    }

    /// Tells on a thread of its own. A store that fails there ends the node.
    pub(super) fn start(&self, end: &watch::Sender<End>) -> Result<NotifierThread, NodeError> {
        let (own, end) = (self.clone(), end.clone());
        let (stop, stopped) = watch::channel(false);
        let (ended, over) = watch::channel(false);
        spawn("notifier", move |name| {
            let told = unless_it_panics(&name, || own.tell(stopped));
            if told.is_err() {
                note(&end, told);
            }
            ended.send_replace(true);
        })?;
        Ok(NotifierThread { stop, over })
    }

    fn tell(&self, mut stop: watch::Receiver<bool>) -> Result<(), NodeError> {
        let runtime = runtime()?;
        let told = runtime.block_on(async {
            tokio::select! {
                () = self.notifier.run() => Ok(()),
                error = self.stored.failed() => Err(error),
                _ = stop.wait_for(|stop| *stop) => self.stored.write_all(),
            }
        });
        // What is out is told again at the next start, unless its target was quick.
        runtime.shutdown_background();
        told.map_err(NodeError::Store)
    }
}

impl NotifierThread {
    /// Stops telling. What was told is taken down, if the store is not at a standstill.
    pub(super) async fn stop(&self) {
        self.stop.send_replace(true);
        let mut over = self.over.clone();
        if tokio::time::timeout(PATIENCE, over.wait_for(|over| *over))
            .await
            .is_err()
        {
            tracing::warn!("some of what was told may be told again at the next start");
        }
    }
}

/// A change as each target that wants it is to be told of it.
fn notices(notifier: &Notifier, change: &StatusChange<'_>) -> Vec<KeptNotice> {
    let mut wanting = notifier.wanting(change.record.status).peekable();
    if wanting.peek().is_none() {
        return Vec::new();
    }
    let text = Value::from(Notice::of(change).message()).to_json();
    let notice = |target: &str| KeptNotice {
        target: Text::from(target),
        event: change.event,
        time: change.time,
        text: text.clone(),
    };
    wanting.map(notice).collect()
}

fn forget_others(store: &dyn Store, targets: &[Target]) -> Result<(), StoreError> {
    for (name, count) in store.notice_counts()? {
        if targets.iter().any(|target| name == *target.name) {
            continue;
        }
        while store.forget_notices(&name, FORGOTTEN)? > 0 {}
        tracing::warn!(target_name = %name, count, "notifications for a target that is configured no longer are dropped");
    }
    Ok(())
}

impl Node {
    /// The targets of notifications, and how they stand.
    pub fn notifications(&self) -> Result<Vec<ShownTarget>, StoreError> {
        let Some(notifications) = &self.notifications else {
            return Ok(Vec::new());
        };
        let counts = self.store.notice_counts()?;
        let shown = notifications.notifier.told().map(|(name, told)| {
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
