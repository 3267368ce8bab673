//! How a store tells those apart who have a shard one after the other.

use crate::shards::{SHARDS, ShardSet, shard_of};

/// The number of a stay of a process in a store. A process that joins again has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incarnation(pub u64);

/// Distinguishes those who have a shard one after the other. It grows with each change, also while nobody has the shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Of a shard that nobody has, and of whoever appends without having claimed one.
    pub const NONE: Self = Self(0);
}

/// The epoch of each shard: those that an owner has under theirs, all others under [`Epoch::NONE`].
#[derive(Clone, PartialEq, Eq)]
pub struct Epochs(Box<[Epoch; SHARDS as usize]>);

impl Default for Epochs {
    fn default() -> Self {
        Self(Box::new([Epoch::NONE; SHARDS as usize]))
    }
}

impl std::fmt::Debug for Epochs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let claimed = self.shards();
        f.debug_map()
            .entries(claimed.iter().map(|shard| (shard, self.of(shard).0)))
            .finish()
    }
}

impl Epochs {
    /// The epoch of a shard.
    pub fn of(&self, shard: u8) -> Epoch {
        self.0.get(usize::from(shard)).copied().unwrap_or_default()
    }

    /// The epoch of the shard of an execution.
    pub fn of_execution(&self, execution: &str) -> Epoch {
        self.of(shard_of(execution))
    }

    /// The shards that are claimed.
    pub fn shards(&self) -> ShardSet {
        let claimed = (0..=u8::MAX).zip(self.0.iter());
        claimed
            .filter(|(_, epoch)| **epoch != Epoch::NONE)
            .map(|(shard, _)| shard)
            .collect()
    }

    /// Gives these shards an epoch.
    pub fn set(&mut self, shards: &ShardSet, epoch: Epoch) {
        for shard in shards.iter() {
            if let Some(kept) = self.0.get_mut(usize::from(shard)) {
                *kept = epoch;
            }
        }
    }

    /// Takes over the epochs of claimed shards.
    pub fn take(&mut self, claimed: &Self) {
        for (kept, new) in self.0.iter_mut().zip(claimed.0.iter()) {
            if *new != Epoch::NONE {
                *kept = *new;
            }
        }
    }

    /// The part of these shards.
    #[must_use]
    pub fn part(&self, shards: &ShardSet) -> Self {
        let mut part = Self::default();
        for shard in shards.iter() {
            if let Some(kept) = part.0.get_mut(usize::from(shard)) {
                *kept = self.of(shard);
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_of_claimed_shards_are_taken_over() {
        let mut epochs = Epochs::default();
        epochs.set(&[1, 2].into_iter().collect(), Epoch(1));
        let mut claimed = Epochs::default();
        claimed.set(&[2, 9].into_iter().collect(), Epoch(4));
        epochs.take(&claimed);
        assert_eq!([1, 2, 9].map(|shard| epochs.of(shard).0), [1, 4, 4]);
        assert_eq!(epochs.shards().iter().collect::<Vec<_>>(), [1, 2, 9]);
        let part = epochs.part(&[1, 5].into_iter().collect());
        assert_eq!(part.shards().iter().collect::<Vec<_>>(), [1]);
        assert_eq!(format!("{part:?}"), "{1: 1}");
    }
}
