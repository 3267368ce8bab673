//! Which owner has which shard.

use starbridge_ports::{SHARDS, ShardSet, shard_of};

/// For each shard, the number of the owner that has it. Whoever sends something to the owner of an execution looks it up here.
#[derive(Clone, Debug)]
pub struct ShardTable([Option<u8>; SHARDS as usize]);

impl ShardTable {
    /// A table in which each of so many owners has equally many shards.
    pub fn even(owners: usize) -> Self {
        let mut table = Self([None; SHARDS as usize]);
        for owner in 0..owners {
            table.give(&ShardSet::part(owner, owners), Some(owner));
        }
        table
    }

    /// The owner of an execution. `None` while nobody has its shard: whoever asks tries again.
    pub fn owner_of(&self, execution: &str) -> Option<usize> {
        let owner = self.0.get(usize::from(shard_of(execution)))?;
        owner.map(usize::from)
    }

    /// The shards of an owner.
    pub fn shards_of(&self, owner: usize) -> ShardSet {
        let entries = (0..=u8::MAX).zip(self.0);
        let own = entries.filter(|(_, entry)| entry.is_some_and(|entry| usize::from(entry) == owner));
        own.map(|(shard, _)| shard).collect()
    }

    /// Whether an owner has any shard.
    pub fn has_some(&self, owner: usize) -> bool {
        let mut owners = self.0.iter().flatten();
        owners.any(|entry| usize::from(*entry) == owner)
    }

    /// Gives shards to an owner, or takes them from whoever has them.
    pub fn give(&mut self, shards: &ShardSet, owner: Option<usize>) {
        let owner = owner.and_then(|owner| u8::try_from(owner).ok());
        for shard in shards.iter() {
            if let Some(entry) = self.0.get_mut(usize::from(shard)) {
                *entry = owner;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_the_owner_that_it_was_given_to() {
        let mut table = ShardTable::even(3);
        let id = |shard: u8| format!("0190b3e4-8c1d-7abc-9def-0123456789{shard:02x}");
        let owners = |table: &ShardTable| [0, 1, 4, 255].map(|shard| table.owner_of(&id(shard)));
        assert_eq!(owners(&table), [Some(0), Some(1), Some(1), Some(0)]);
        let moved: ShardSet = [1, 255].into_iter().collect();
        table.give(&moved, None);
        assert_eq!(owners(&table), [Some(0), None, Some(1), None]);
        table.give(&moved, Some(2));
        assert_eq!(owners(&table), [Some(0), Some(2), Some(1), Some(2)]);
        assert_eq!(table.shards_of(2), ShardSet::part(2, 3).with(&moved));
        assert_eq!(table.shards_of(1), ShardSet::part(1, 3).without(&moved));
        table.give(&ShardSet::ALL, Some(1));
        assert_eq!([0, 1, 2].map(|owner| table.has_some(owner)), [false, true, false]);
    }
}
