//! Owners of shards in random runs: each store gives epochs of its own, and both refuse the same.

use starbridge_ports::{Append, Epochs, Incarnation, ShardSet, Store};

/// Who has which shard in both stores.
#[derive(Default)]
pub(super) struct Claims {
    model: Owner,
    tried: Owner,
}

#[derive(Default)]
struct Owner {
    own: Option<Incarnation>,
    now: Epochs,
    former: Epochs,
}

impl Owner {
    /// Another owner ends the one before, and claims these shards. Returns those that it got.
    fn change(&mut self, store: &dyn Store, shards: &ShardSet) -> ShardSet {
        let Some(owning) = store.owning() else {
            return ShardSet::NONE;
        };
        if let Some(former) = self.own.take() {
            owning.end(former).unwrap();
        }
        let own = owning.join("random").unwrap();
        let claimed = owning.claim(own, shards).unwrap();
        self.former = std::mem::replace(&mut self.now, claimed);
        self.own = Some(own);
        self.now.shards()
    }

    fn batch(&self, batch: &[Append], late: bool) -> Vec<Append> {
        let epochs = if late { &self.former } else { &self.now };
        let with = |append: &Append| Append {
            epoch: epochs.of_execution(&append.execution),
            ..append.clone()
        };
        batch.iter().map(with).collect()
    }
}

impl Claims {
    /// Another owner claims these shards in both stores. Returns those that it got in each.
    pub(super) fn change(&mut self, model: &dyn Store, tried: &dyn Store, shards: &ShardSet) -> (ShardSet, ShardSet) {
        (self.model.change(model, shards), self.tried.change(tried, shards))
    }

    /// A batch of the owner for each store; `late`: of the one before.
    pub(super) fn batches(&self, batch: &[Append], late: bool) -> (Vec<Append>, Vec<Append>) {
        (self.model.batch(batch, late), self.tried.batch(batch, late))
    }
}
