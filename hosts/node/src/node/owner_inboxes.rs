//! The inboxes of the threads that own executions.

use starbridge_runtime::{Command, ShardTable};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The inbox of each owner, and the table that says which owner has which shard. A clone is the same.
#[derive(Clone)]
pub(super) struct OwnerInboxes {
    inboxes: Arc<[mpsc::Sender<Command>]>,
    shards: Arc<ShardTable>,
}

impl OwnerInboxes {
    /// The inboxes of owners that have equally many shards.
    pub(super) fn new(inboxes: Vec<mpsc::Sender<Command>>) -> Self {
        Self {
            shards: Arc::new(ShardTable::even(inboxes.len())),
            inboxes: inboxes.into(),
        }
    }

    /// The table that says which owner has which shard.
    pub(super) fn shards(&self) -> &Arc<ShardTable> {
        &self.shards
    }

    /// All inboxes, in the order of their owners.
    pub(super) fn all(&self) -> &[mpsc::Sender<Command>] {
        &self.inboxes
    }

    /// The inbox of the owner of an execution. `None` while nobody has its shard.
    pub(super) fn of(&self, execution: &str) -> Option<&mpsc::Sender<Command>> {
        self.inboxes.get(self.shards.owner_of(execution)?)
    }
}
