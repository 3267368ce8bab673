//! Shards: the parts of a store that owners divide among themselves.

use starbridge_flow::fnv::fnv1a_32;

/// How many shards a store has. Never changes for an existing store.
pub const SHARDS: u16 = 256;

/// The shard of an execution: the last byte of its UUID, so that a child can get the shard of its parent. For any
/// other id, a hash of its bytes (FNV-1a).
pub fn shard_of(execution: &str) -> u8 {
    let last = execution.len().checked_sub(2).and_then(|from| execution.get(from..));
    let byte = last
        .filter(|_| execution.len() == 36)
        .map(|hex| u8::from_str_radix(hex, 16));
    match byte {
        Some(Ok(shard)) => shard,
        _ => hash_of("", execution),
    }
}

/// The shard of a queue: its tasks may belong to executions of all shards, and one owner decides who gets them.
pub fn shard_of_queue(queue: &str) -> u8 {
    hash_of("queue:", queue)
}

fn hash_of(kind: &str, name: &str) -> u8 {
    let [low, ..] = fnv1a_32(kind.bytes().chain(name.bytes())).to_le_bytes();
    low
}

/// A set of shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSet([u64; 4]);

/// The word of a set that has a shard, and the shard's bit in it.
const fn place(shard: u8) -> (usize, u64) {
    ((shard >> 6) as usize, 1 << (shard & 63))
}

impl ShardSet {
    /// All shards of a store.
    pub const ALL: Self = Self([u64::MAX; 4]);
    /// No shard.
    pub const NONE: Self = Self([0; 4]);

    /// Every `of`-th shard from `first` on: the part of one of `of` owners that have equally many.
    pub fn part(first: usize, of: usize) -> Self {
        (first..usize::from(SHARDS))
            .step_by(of.max(1))
            .filter_map(|shard| u8::try_from(shard).ok())
            .collect()
    }

    /// Whether it has a shard.
    pub fn has(&self, shard: u8) -> bool {
        let (word, bit) = place(shard);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether it has the shard of an execution.
    pub fn has_execution(&self, execution: &str) -> bool {
        self.is_all() || self.has(shard_of(execution))
    }

    /// Whether it has the shard of a queue.
    pub fn has_queue(&self, queue: &str) -> bool {
        self.is_all() || self.has(shard_of_queue(queue))
    }

    /// Whether it has a shard that another one has too.
    pub fn meets(&self, other: &Self) -> bool {
        self.without(other) != *self
    }

    /// Whether it has all shards.
    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// Whether it has no shard.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// How many shards it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Its shards, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|shard| self.has(*shard))
    }

    /// This set with the shards of another one.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// This set without the shards of another one.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// The first shard of the set from this one on, in a circle. `None` if it has no shard.
    pub fn next(&self, from: u8) -> Option<u8> {
        (0..=u8::MAX)
            .map(|step| from.wrapping_add(step))
            .find(|shard| self.has(*shard))
    }
}

impl FromIterator<u8> for ShardSet {
    fn from_iter<I: IntoIterator<Item = u8>>(shards: I) -> Self {
        let mut set = Self::NONE;
        for shard in shards {
            let (word, bit) = place(shard);
            if let Some(word) = set.0.get_mut(word) {
                *word |= bit;
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_owners_divide_the_shards() {
        for owners in [1, 2, 3, 64] {
            let parts: Vec<ShardSet> = (0..owners).map(|which| ShardSet::part(which, owners)).collect();
            assert_eq!(parts.iter().map(ShardSet::len).sum::<usize>(), 256);
            let all = parts.iter().fold(ShardSet::NONE, |all, part| all.with(part));
            assert!(all.is_all());
        }
    }

    #[test]
    fn sets_take_shards_in_and_give_them_up() {
        let set: ShardSet = [0, 63, 64, 255].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert_eq!(set.without(&ShardSet::part(0, 2)).iter().collect::<Vec<_>>(), [63, 255]);
        assert_eq!(
            [0, 1, 65, 255].map(|from| set.next(from)),
            [Some(0), Some(63), Some(255), Some(255)]
        );
        assert_eq!((set.without(&set), ShardSet::NONE.next(7)), (ShardSet::NONE, None));
        assert!(set.has_execution("0190b3e4-8c1d-7abc-9def-012345678940") && !set.has_execution("any"));
    }
}
