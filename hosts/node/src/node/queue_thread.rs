//! The thread of worker queues: its initial state, and its notifications to owners.

use super::owner_inboxes::OwnerInboxes;
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::Signal;
use starbridge_ports::{Clock, ShardSet, Store, StoreError};
use starbridge_runtime::{
    Command, FairQueue, QueueCommand, QueueEngine, QueueEngineDeps, QueueHandle, QueueSettings, Queues, TaskExpiry,
    Writer,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The kind under which the store keeps settings of queues.
pub(super) const KIND: &str = "queue";

/// The state that owners and queues of a node share.
pub(super) struct Shared {
    pub(super) queue_handle: QueueHandle,
    pub(super) fair_queue: Arc<FairQueue>,
    inbox: mpsc::UnboundedReceiver<QueueCommand>,
}

impl Shared {
    pub(super) fn new() -> Self {
        let (queue_handle, inbox) = QueueHandle::new();
        Self {
            queue_handle,
            fair_queue: Arc::default(),
            inbox,
        }
    }

    /// The engine of the queues, which goes on from what the store has.
    pub(super) fn engine(
        self,
        store: &Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        writer: &Writer,
        owners: OwnerInboxes,
        fair_share: u32,
    ) -> Result<QueueEngine, StoreError> {
        let mut queues = Queues::new(self.fair_queue, fair_share);
        for (name, settings) in kept_settings(store.as_ref())? {
            queues.configure(&name, settings, Millis::ZERO);
        }
        let deps = QueueEngineDeps {
            store: store.clone(),
            shards: ShardSet::ALL,
            clock,
            notify_owner: Box::new(move |expiry| notify_owner(&owners, expiry)),
        };
        QueueEngine::new(queues, deps, &self.queue_handle, self.inbox, writer)
    }
}

/// Tells the owner of an execution that its task expired. Returns false if the owner has no room now, or nobody has its shard.
fn notify_owner(owners: &OwnerInboxes, expiry: &TaskExpiry) -> bool {
    let ((execution, call), signal) = match expiry {
        TaskExpiry::LeaseEnded { key, redeliver } => {
            let (call, redeliver) = (key.1, *redeliver);
            (
                key,
                Signal::LeaseEnded {
                    call,
                    redeliver,
                    holder: None,
                },
            )
        }
        TaskExpiry::TimedOut { key } => (
            key,
            Signal::TimedOut {
                call: key.1,
                holder: None,
            },
        ),
    };
    tracing::debug!(%execution, call = call.0, ?signal, "a task's time is over");
    let command = Command::Signal {
        execution: execution.clone(),
        signal: Box::new(signal),
        audit: None,
        reply: None,
    };
    // An owner that has ended does not need it.
    !matches!(owners.send(execution, command), Err(mpsc::error::TrySendError::Full(_)))
}

fn kept_settings(store: &dyn Store) -> Result<Vec<(Text, QueueSettings)>, StoreError> {
    let mut kept = Vec::new();
    for (name, text) in store.list_values(KIND)? {
        let settings = serde_json::from_str::<Object>(&text).ok();
        let settings = settings.and_then(|object| QueueSettings::read(&object).ok());
        let settings = settings
            .ok_or_else(|| StoreError::Corrupt(format!("the settings of the queue `{name}` are not readable")))?;
        kept.push((Text::from(name), settings));
    }
    Ok(kept)
}
