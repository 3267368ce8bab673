//! Who has which shard, in the store and in the book of the world. Nothing is kept that was appended under an old epoch.

use super::World;
use crate::campaigns::simulation::fault::Bug;
use crate::campaigns::simulation::shelter::Refusals;
use starbridge_flow::value::Text;
use starbridge_ports::{Append, Epoch, Epochs, Incarnation, Owning, Refusal, ShardSet, StoreError, shard_of};

/// What no process hears that nobody has ended.
pub(super) const REFUSED: &str = "a process that owns an execution is refused its append";

impl World {
    /// A stay for the next process of a seat. The one before is over.
    pub(super) fn join(&mut self, seat: usize) -> Incarnation {
        if let Some(former) = self.seats[seat].incarnation {
            self.end(former);
        }
        let joined = self.store.store().join(&seat.to_string());
        let joined = self.told(joined).unwrap_or(Incarnation(0));
        self.seats[seat].incarnation = Some(joined);
        joined
    }

    /// The stay of the process of a seat, if there is one. One that somebody has ended learns it, drops what it has left, and joins
    /// again.
    pub(super) fn present(&mut self, seat: usize) -> Option<Incarnation> {
        let incarnation = self.seats[seat].process.as_ref()?.incarnation;
        if !self.is_over(incarnation) {
            return Some(incarnation);
        }
        let again = self.join(seat);
        let process = self.seats[seat].process.as_mut()?;
        process.drop_fenced(&ShardSet::ALL);
        process.leaving.clear();
        process.incarnation = again;
        Some(again)
    }

    pub(super) fn claim(&mut self, incarnation: Incarnation, shards: &ShardSet) -> Epochs {
        let claimed = self.store.store().claim(incarnation, shards);
        let claimed = self.told(claimed).unwrap_or_default();
        if claimed.shards() != *shards && self.planted != Some(Bug::GoesOnWithLeft) {
            self.findings.problem("shards that nobody has can't be claimed");
        }
        for shard in claimed.shards().iter() {
            self.holders.insert(shard, (incarnation, claimed.of(shard)));
            self.given.insert(claimed.of(shard), incarnation);
        }
        claimed
    }

    /// Answers whether they were given back; otherwise somebody else has taken them over.
    pub(super) fn give_back(&mut self, incarnation: Incarnation, shards: &ShardSet) -> bool {
        match self.store.store().give_back(incarnation, shards) {
            Ok(()) => {
                self.holders
                    .retain(|shard, (holder, _)| *holder != incarnation || !shards.has(*shard));
                true
            }
            Err(StoreError::Over) => false,
            Err(error) => {
                self.findings.problem(error.to_string());
                false
            }
        }
    }

    pub(super) fn end(&mut self, incarnation: Incarnation) {
        let ended = self.store.store().end(incarnation);
        self.told(ended);
        self.holders.retain(|_, (holder, _)| *holder != incarnation);
    }

    pub(super) fn is_over(&self, incarnation: Incarnation) -> bool {
        self.store.store().heartbeat(incarnation).is_err()
    }

    /// The shards that a stay has.
    pub(super) fn held_by(&self, incarnation: Incarnation) -> ShardSet {
        let held = self.holders.iter().filter(|(_, (holder, _))| *holder == incarnation);
        held.map(|(shard, _)| *shard).collect()
    }

    fn told<T>(&mut self, answer: Result<T, StoreError>) -> Option<T> {
        answer.map_err(|error| self.findings.problem(error.to_string())).ok()
    }

    fn epoch_of(&self, execution: &str) -> Epoch {
        let holder = self.holders.get(&shard_of(execution));
        holder.map_or(Epoch::NONE, |(_, epoch)| *epoch)
    }

    /// A batch reaches the store, whoever sent it and whenever that was.
    pub(super) fn keep(&mut self, mut batch: Vec<Append>) -> Refusals {
        let of: Vec<(Text, Epoch, Epoch)> = batch
            .iter()
            .map(|append| (append.execution.clone(), append.epoch, self.epoch_of(&append.execution)))
            .collect();
        if self.planted == Some(Bug::EpochsNotCompared) {
            for append in &mut batch {
                append.epoch = self.epoch_of(&append.execution);
            }
        }
        let appends = batch.len();
        let refusals = self.store.keep(batch);
        if refusals.len() < appends {
            self.written = self.real;
        }
        for (index, (execution, epoch, current)) in of.into_iter().enumerate() {
            let refusal = refusals.iter().find(|(at, _)| *at == index).map(|(_, refusal)| refusal);
            let is_fenced = refusal == Some(&Refusal::Fenced);
            let is_over = epoch != current && self.given.get(&epoch).is_some_and(|of| self.is_over(*of));
            match (epoch == current, is_fenced) {
                (true, false) => {}
                (false, true) if is_over => self.findings.count("appends of former owners refused", 1),
                (_, true) => self.findings.problem(REFUSED),
                (false, false) => self
                    .findings
                    .problem(format!("{execution}: an append under an old epoch is not refused")),
            }
        }
        refusals
    }
}
