//! A sorted map. A copy shares everything that does not change afterwards.

use std::collections::HashSet;
use std::sync::Arc;

/// The largest number of entries in a part.
const PART: usize = 64;

/// The parts that were counted before, by address: what several copies share counts once.
pub type VisitSet = HashSet<usize>;

/// A sorted map of parts. A part is copied when it changes while a copy of the map shares it.
#[derive(Clone, Debug)]
pub(super) struct SharedMap<K, V> {
    /// None is empty.
    parts: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            len: 0,
        }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The part that has a key, or would have it.
    fn part_of(&self, key: &K) -> usize {
        let later = |part: &Arc<Vec<(K, V)>>| part.first().is_some_and(|(first, _)| first <= key);
        self.parts.partition_point(later).saturating_sub(1)
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let part = self.parts.get(self.part_of(key))?;
        let at = part.binary_search_by(|(own, _)| own.cmp(key)).ok()?;
        part.get(at).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.part_of(key);
        let part = self.parts.get_mut(place)?;
        let at = part.binary_search_by(|(own, _)| own.cmp(key)).ok()?;
        Arc::make_mut(part).get_mut(at).map(|(_, value)| value)
    }

    /// Changes the value of a key; without one, changes the default value.
    pub(super) fn change(&mut self, key: K, change: impl FnOnce(&mut V))
    where
        V: Default,
    {
        match self.get_mut(&key) {
            Some(value) => change(value),
            None => {
                let mut value = V::default();
                change(&mut value);
                self.insert(key, value);
            }
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        let place = self.part_of(&key);
        let is_last = place + 1 >= self.parts.len();
        let Some(part) = self.parts.get_mut(place) else {
            self.parts.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return;
        };
        let found = part.binary_search_by(|(own, _)| own.cmp(&key));
        let own = Arc::make_mut(part);
        match found {
            Ok(at) => {
                if let Some(entry) = own.get_mut(at) {
                    entry.1 = value;
                }
                return;
            }
            Err(at) if at == own.len() && at >= PART && is_last => {
                // A map that only grows at its end has full parts.
                self.parts.push(Arc::new(vec![(key, value)]));
            }
            Err(at) => {
                own.insert(at, (key, value));
                if own.len() > PART {
                    let half = own.split_off(PART / 2);
                    self.parts.insert(place + 1, Arc::new(half));
                }
            }
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, key: &K) {
        let place = self.part_of(key);
        let Some(part) = self.parts.get_mut(place) else {
            return;
        };
        let Ok(at) = part.binary_search_by(|(own, _)| own.cmp(key)) else {
            return;
        };
        let own = Arc::make_mut(part);
        own.remove(at);
        if own.is_empty() {
            self.parts.remove(place);
        }
        self.len -= 1;
    }

    /// Keeps the entries for which this holds.
    pub(super) fn retain(&mut self, stays: impl Fn(&K, &V) -> bool) {
        for part in &mut self.parts {
            if !part.iter().all(|(key, value)| stays(key, value)) {
                Arc::make_mut(part).retain(|(key, value)| stays(key, value));
            }
        }
        self.parts.retain(|part| !part.is_empty());
        self.len = self.parts.iter().map(|part| part.len()).sum();
    }

    /// The entries from a key on, in order.
    pub(super) fn from(&self, key: &K) -> impl Iterator<Item = (&K, &V)> {
        let parts = self.parts.iter().skip(self.part_of(key));
        let entries = parts.flat_map(|part| part.iter());
        let entries = entries.map(|(own, value)| (own, value));
        entries.skip_while(move |(own, _)| *own < key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let entries = self.parts.iter().flat_map(|part| part.iter());
        entries.map(|(key, value)| (key, value))
    }

    /// The approximate memory of what was not counted before, in bytes. `more`: what a key has elsewhere.
    pub(super) fn bytes(&self, counted: &mut VisitSet, more: usize) -> usize {
        let own = self.parts.capacity() * size_of::<Arc<()>>();
        let fresh = self
            .parts
            .iter()
            .filter(|part| counted.insert(Arc::as_ptr(part).addr()));
        let fresh = fresh.map(|part| part.capacity() * size_of::<(K, V)>() + part.len() * more + 48);
        own + fresh.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn is_the_map_of_the_standard_library_and_copies_keep_their_state() {
        let mut random = 7_u64;
        let mut next = |most: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        let (mut shared, mut naive) = (SharedMap::default(), BTreeMap::new());
        let mut copies = Vec::new();
        for step in 0..4_000_u64 {
            let key = next(700);
            match next(5) {
                0 | 1 => {
                    shared.insert(key, step);
                    naive.insert(key, step);
                }
                2 => {
                    // At the end.
                    shared.insert(10_000 + step, step);
                    naive.insert(10_000 + step, step);
                }
                3 => {
                    shared.remove(&key);
                    naive.remove(&key);
                }
                _ => {
                    if let Some(value) = shared.get_mut(&key) {
                        *value += 1;
                    }
                    naive.entry(key).and_modify(|value| *value += 1);
                }
            }
            assert_eq!((shared.len(), shared.get(&key)), (naive.len(), naive.get(&key)));
            if step % 500 == 0 {
                copies.push((shared.clone(), naive.clone()));
            }
            let from = next(800);
            assert_eq!(shared.from(&from).next(), naive.range(from..).next());
        }
        copies.push((shared, naive));
        for (mut shared, mut naive) in copies {
            assert!(shared.iter().eq(naive.iter()));
            shared.retain(|key, value| (key + value) % 3 != 0);
            naive.retain(|key, value| (*key + *value) % 3 != 0);
            assert!(shared.iter().eq(naive.iter()));
            assert_eq!(shared.len(), naive.len());
        }
    }
}
