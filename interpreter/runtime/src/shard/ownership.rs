//! The shards of the store whose executions belong to this owner.

use super::{ExecutionSeed, Outgoing, Shard, StartRequest};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Epoch, Epochs, ShardSet, shard_of};

/// Whether output is of an execution of these shards.
pub(super) fn is_of(outgoing: &Outgoing, shards: &ShardSet) -> bool {
    outgoing.execution().is_some_and(|of| shards.has_execution(of))
}

impl Shard {
    /// Owns the executions of these shards, and no others. Without this call it owns all.
    pub fn own(&mut self, shards: ShardSet) {
        self.shards = shards;
    }

    /// Appends for executions of claimed shards have these epochs from now on.
    pub fn append_under(&mut self, claimed: &Epochs) {
        self.epochs.take(claimed);
    }

    /// The shards whose executions belong here.
    pub fn owned(&self) -> &ShardSet {
        &self.shards
    }

    /// Whether an execution belongs here.
    pub fn owns(&self, execution: &str) -> bool {
        self.shards.has_execution(execution)
    }

    /// Gives shards up: nothing more is decided for their executions, and what was posted to them is dropped. The store has what
    /// must not be lost. Once everything that was decided before is durable, call [`Shard::forget_left`]; [`Shard::mark`] tells when.
    pub fn leave(&mut self, shards: &ShardSet) {
        self.shards = self.shards.without(shards);
        let own = |execution: &Text| !shards.has_execution(execution);
        self.inbox.retain(|(to, _)| own(to));
        self.continuing.retain(own);
        self.wakeups.retain(|(_, id)| own(id));
        self.panicked.retain(own);
        self.aside.retain(|id, _| own(id));
        self.tries.retain(|id, _| own(id));
        self.absent = self.absent.take().filter(own);
        self.leave_held_off(own);
    }

    /// Drops the executions of shards that were given up.
    pub fn forget_left(&mut self, shards: &ShardSet) {
        self.epochs.set(shards, Epoch::NONE);
        let left = self.executions.keys().filter(|id| shards.has_execution(id));
        let left: Vec<Text> = left.cloned().collect();
        for id in &left {
            self.forget(id);
        }
        self.waiting.retain(|id, _| !shards.has_execution(id));
        self.forget_large_waiting();
        self.undoing.retain(|child, _| !shards.has_execution(child));
    }

    /// Takes the shards of which the store said that another owner has them: [`Shard::drop_fenced`] them.
    pub fn take_fenced(&mut self) -> ShardSet {
        std::mem::take(&mut self.fenced)
    }

    /// Drops shards that another owner has, with all that was decided for them and all that waits for it: nothing of it leaves,
    /// and nothing more is appended.
    pub fn drop_fenced(&mut self, shards: &ShardSet) {
        self.leave(shards);
        self.pending.retain(|append| !shards.has_execution(&append.execution));
        self.recount_pending();
        self.held.retain(|outgoing| !is_of(outgoing, shards));
        self.outgoing.retain(|outgoing| !is_of(outgoing, shards));
        for batch in &mut self.in_flight {
            batch.forget(shards);
        }
        self.forget_left(shards);
    }

    /// Puts the epochs of their shards into appends.
    pub(super) fn put_epochs(&self, batch: &mut [Append]) {
        for append in batch {
            append.epoch = self.epochs.of_execution(&append.execution);
        }
    }

    /// The id and the seed of a new execution. An id that nobody gave is one of this owner: only its last byte is changed for that.
    pub(super) fn new_seed(&mut self, request: &StartRequest, now: Timestamp) -> ExecutionSeed {
        let mut seed = (self.id_source)(request, now);
        let is_given = request.id.is_some() || request.parent.is_some();
        if !is_given
            && seed.id.len() == 36
            && !self.owns(&seed.id)
            && let Some(shard) = self.shards.next(shard_of(&seed.id))
        {
            let head = seed.id.get(..34).unwrap_or_default();
            seed.id = Text::from(format!("{head}{shard:02x}"));
        }
        seed
    }
}
