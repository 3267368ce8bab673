//! A cache of what is known of executions that are being written, for stores.

use starbridge_flow::value::Text;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// How many entries one generation has.
const GENERATION_ENTRIES: usize = 50_000;

/// A cache in two generations: an entry that was not used during a whole generation is dropped. This
/// approximates a clock cache and costs two lookups. `S` is the way of hashing.
pub struct GenerationCache<V, S> {
    young: HashMap<Text, V, S>,
    old: HashMap<Text, V, S>,
}

impl<V, S: Default> Default for GenerationCache<V, S> {
    fn default() -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
        }
    }
}

impl<V, S> std::fmt::Debug for GenerationCache<V, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GenerationCache")
            .field("young", &self.young.len())
            .field("old", &self.old.len())
            .finish()
    }
}

impl<V: Copy, S: BuildHasher + Default> GenerationCache<V, S> {
    /// The entry of an execution, if it is kept here.
    pub fn get(&mut self, execution: &Text) -> Option<V> {
        if let Some(entry) = self.young.get(execution) {
            return Some(*entry);
        }
        let entry = self.old.remove(execution)?;
        self.put(execution, entry);
        Some(entry)
    }

    /// Keeps the entry of an execution, in place of an earlier one.
    pub fn put(&mut self, execution: &Text, entry: V) {
        if let Some(kept) = self.young.get_mut(execution) {
            *kept = entry;
            return;
        }
        if self.young.len() >= GENERATION_ENTRIES {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(execution.clone(), entry);
    }

    /// Drops the entry of an execution.
    pub fn forget(&mut self, execution: &str) {
        self.young.remove(execution);
        self.old.remove(execution);
    }

    /// Drops all entries, because their data may have been rolled back.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::RandomState;

    fn text(number: usize) -> Text {
        Text::from(number.to_string())
    }

    #[test]
    fn an_entry_that_a_whole_generation_did_not_use_is_dropped() {
        let mut cache = GenerationCache::<usize, RandomState>::default();
        cache.put(&text(0), 0);
        cache.put(&text(1), 1);
        for number in 2..=GENERATION_ENTRIES {
            cache.put(&text(number), number);
        }
        assert_eq!(cache.get(&text(0)), Some(0), "from the generation before");
        for number in 0..GENERATION_ENTRIES {
            cache.put(&text(GENERATION_ENTRIES + 1 + number), number);
        }
        assert_eq!(cache.get(&text(1)), None);
        assert_eq!(cache.get(&text(0)), Some(0));
        cache.forget("0");
        assert_eq!(cache.get(&text(0)), None);
        cache.clear();
        assert_eq!(cache.get(&text(GENERATION_ENTRIES + 1)), None);
    }
}
