//! Who has which shard, for a store that one process has open: all other incarnations are over then.

use crate::epochs::{Epoch, Epochs, Incarnation};
use crate::error::StoreError;
use crate::owning::IncarnationState;
use crate::shards::ShardSet;
use std::collections::BTreeMap;

/// The bits of an epoch that count the changes since an incarnation joined. Above them is the number of that incarnation.
const CHANGE_BITS: u32 = 32;

/// Who has which shard. It is not kept: a store that outlives its process keeps the number of the last incarnation, and epochs
/// begin with that, so those of a process before are never given again.
#[derive(Debug, Default)]
pub struct ShardOwners {
    /// The number of the last incarnation.
    last: u64,
    last_epoch: u64,
    epochs: Epochs,
    present: BTreeMap<Incarnation, PresentIncarnation>,
}

/// An incarnation that is not over.
#[derive(Debug)]
struct PresentIncarnation {
    name: String,
    beats: u64,
    shards: ShardSet,
}

impl ShardOwners {
    /// Nobody has a shard. `last`: the number of the last incarnation that the store knows.
    pub fn after(last: u64) -> Self {
        Self {
            last,
            ..Self::default()
        }
    }

    /// The epochs under which appends are taken.
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// The number that the next incarnation gets.
    pub fn next(&self) -> Incarnation {
        Incarnation(self.last + 1)
    }

    /// The next incarnation joins.
    pub fn join(&mut self, name: &str) -> Incarnation {
        let incarnation = self.next();
        self.last = incarnation.0;
        self.last_epoch = self.last_epoch.max(incarnation.0 << CHANGE_BITS);
        let joined = PresentIncarnation {
            name: name.to_owned(),
            beats: 0,
            shards: ShardSet::NONE,
        };
        self.present.insert(incarnation, joined);
        incarnation
    }

    fn get_mut(&mut self, own: Incarnation) -> Result<&mut PresentIncarnation, StoreError> {
        self.present.get_mut(&own).ok_or(StoreError::Over)
    }

    /// An incarnation says that it goes on.
    ///
    /// # Errors
    ///
    /// [`StoreError::Over`] if it is over.
    pub fn heartbeat(&mut self, own: Incarnation) -> Result<Vec<IncarnationState>, StoreError> {
        self.get_mut(own)?.beats += 1;
        let states = self.present.iter().map(|(incarnation, present)| IncarnationState {
            incarnation: *incarnation,
            name: present.name.clone(),
            beats: present.beats,
            shards: present.shards,
        });
        Ok(states.collect())
    }

    /// An incarnation claims shards that nobody has, or that it has itself.
    ///
    /// # Errors
    ///
    /// [`StoreError::Over`] if it is over.
    pub fn claim(&mut self, own: Incarnation, shards: &ShardSet) -> Result<Epochs, StoreError> {
        let free = shards.without(&self.epochs.shards());
        let present = self.get_mut(own)?;
        let claimed = free.with(&shards.without(&shards.without(&present.shards)));
        present.shards = present.shards.with(&claimed);
        self.last_epoch += 1;
        self.epochs.set(&claimed, Epoch(self.last_epoch));
        Ok(self.epochs.part(&claimed))
    }

    /// An incarnation gives shards back.
    ///
    /// # Errors
    ///
    /// [`StoreError::Over`] if it is over.
    pub fn give_back(&mut self, own: Incarnation, shards: &ShardSet) -> Result<(), StoreError> {
        let present = self.get_mut(own)?;
        let left = present.shards.without(shards);
        let returned = present.shards.without(&left);
        present.shards = left;
        self.epochs.set(&returned, Epoch::NONE);
        Ok(())
    }

    /// An incarnation is over.
    pub fn end(&mut self, incarnation: Incarnation) {
        if let Some(over) = self.present.remove(&incarnation) {
            self.epochs.set(&over.shards, Epoch::NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Append;

    #[test]
    fn an_append_is_admitted_under_the_epoch_of_its_shard() {
        let id = |shard: u8| format!("0190b3e4-8c1d-7abc-9def-0123456789{shard:02x}");
        let mut epochs = Epochs::default();
        epochs.set(&[3, 200].into_iter().collect(), Epoch(7));
        let append = |shard: u8, epoch: u64| Append {
            execution: id(shard).into(),
            epoch: Epoch(epoch),
            ..Append::default()
        };
        let admitted = [(3, 7), (3, 6), (3, 8), (3, 0), (4, 0), (4, 7), (200, 7)];
        let admitted = admitted.map(|(shard, epoch)| append(shard, epoch).is_of_owner(&epochs));
        assert_eq!(admitted, [true, false, false, false, true, false, true]);
        assert!(Append::default().is_of_owner(&epochs), "it is of no shard");
    }

    #[test]
    fn no_epoch_is_given_twice_even_by_the_next_process() {
        let all = ShardSet::ALL;
        let mut owners = ShardOwners::after(6);
        let one = owners.join("one");
        let mut seen = vec![
            owners.claim(one, &all).unwrap().of(0),
            owners.claim(one, &all).unwrap().of(0),
        ];
        owners.give_back(one, &all).unwrap();
        let two = owners.join("two");
        seen.push(owners.claim(two, &all).unwrap().of(0));
        let mut owners = ShardOwners::after(two.0);
        let three = owners.join("three");
        seen.push(owners.claim(three, &all).unwrap().of(0));
        assert_eq!((one, two, three), (Incarnation(7), Incarnation(8), Incarnation(9)));
        assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
    }
}
