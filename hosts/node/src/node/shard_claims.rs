//! The stay of a node in its store, and its claims to shards.

use starbridge_ports::{Epochs, Incarnation, ShardSet, Store, StoreError};
use std::sync::Arc;

/// The name under which a node joins a store that has no name for it.
const NAME: &str = "node";

/// The stay of a node in its store. A clone is the same.
#[derive(Clone)]
pub(super) struct ShardClaims {
    store: Arc<dyn Store>,
    /// `None` if the store keeps no owners.
    incarnation: Option<Incarnation>,
}

impl ShardClaims {
    /// Joins, and ends all other stays: a node has its store alone. What an earlier one still appends is refused.
    pub(super) fn join(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let mut incarnation = None;
        if let Some(owning) = store.owning() {
            let own = owning.join(NAME)?;
            for other in owning.heartbeat(own)? {
                if other.incarnation != own {
                    owning.end(other.incarnation)?;
                }
            }
            incarnation = Some(own);
        }
        Ok(Self { store, incarnation })
    }

    /// Without owners: each execution has a lease.
    pub(super) fn none(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            incarnation: None,
        }
    }

    /// Claims shards, also anew: what was appended under their former epochs and is not durable yet will be refused.
    pub(super) fn claim(&self, shards: &ShardSet) -> Result<Epochs, StoreError> {
        match (self.store.owning(), self.incarnation) {
            (Some(owning), Some(own)) => owning.claim(own, shards),
            _ => Ok(Epochs::default()),
        }
    }

    /// Gives all shards back. Otherwise whoever joins next does it. `store`: a handle of the store that waits for nothing.
    pub(super) fn leave(&self, store: &dyn Store) {
        if let (Some(owning), Some(own)) = (store.owning(), self.incarnation)
            && let Err(error) = owning.end(own)
        {
            tracing::debug!(%error, "the shards can't be given back");
        }
    }
}
