//! Who has which shard. All incarnations are of the process that has the file: those of a process before are over.

use crate::SqliteStore;
use starbridge_ports::{Epochs, Incarnation, IncarnationState, Owning, ShardSet, StoreError};

impl Owning for SqliteStore {
    fn join(&self, name: &str) -> Result<Incarnation, StoreError> {
        self.writer().join(name)
    }

    fn heartbeat(&self, own: Incarnation) -> Result<Vec<IncarnationState>, StoreError> {
        self.writer().owners()?.heartbeat(own)
    }

    fn claim(&self, own: Incarnation, shards: &ShardSet) -> Result<Epochs, StoreError> {
        self.writer().owners()?.claim(own, shards)
    }

    fn give_back(&self, own: Incarnation, shards: &ShardSet) -> Result<(), StoreError> {
        self.writer().owners()?.give_back(own, shards)
    }

    fn end(&self, incarnation: Incarnation) -> Result<(), StoreError> {
        self.writer().owners()?.end(incarnation);
        Ok(())
    }
}
