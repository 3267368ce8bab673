//! Who has which shard.

use crate::MemoryStore;
use starbridge_ports::{Epochs, Incarnation, IncarnationState, Owning, ShardSet, StoreError};

impl Owning for MemoryStore {
    fn join(&self, name: &str) -> Result<Incarnation, StoreError> {
        Ok(self.lock().owners.join(name))
    }

    fn heartbeat(&self, own: Incarnation) -> Result<Vec<IncarnationState>, StoreError> {
        self.lock().owners.heartbeat(own)
    }

    fn claim(&self, own: Incarnation, shards: &ShardSet) -> Result<Epochs, StoreError> {
        self.lock().owners.claim(own, shards)
    }

    fn give_back(&self, own: Incarnation, shards: &ShardSet) -> Result<(), StoreError> {
        self.lock().owners.give_back(own, shards)
    }

    fn end(&self, incarnation: Incarnation) -> Result<(), StoreError> {
        self.lock().owners.end(incarnation);
        Ok(())
    }
}
