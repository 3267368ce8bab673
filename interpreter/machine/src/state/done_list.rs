//! What could be undone, with the bytes that it takes.

use super::Done;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Tasks that could be undone, in the order in which they were called or completed. Its size is counted as it grows, because it
/// is asked for at each step and a list can have a hundred thousand entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct DoneList {
    entries: Vec<Done>,
    held: usize,
}

impl DoneList {
    /// The bytes that the entries hold.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Adds an entry at the end.
    pub(crate) fn push(&mut self, done: Done) {
        self.held = self.held.saturating_add(done.held());
        self.entries.push(done);
    }

    /// Removes the last entry.
    pub(crate) fn pop(&mut self) -> Option<Done> {
        self.pop_if(|_| true)
    }

    /// Removes the last entry if a condition holds for it.
    pub(crate) fn pop_if(&mut self, holds: impl FnOnce(&Done) -> bool) -> Option<Done> {
        let done = self.entries.pop_if(|done| holds(done))?;
        self.held = self.held.saturating_sub(done.held());
        Some(done)
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl std::ops::Deref for DoneList {
    type Target = [Done];

    fn deref(&self) -> &[Done] {
        &self.entries
    }
}

impl Extend<Done> for DoneList {
    fn extend<T: IntoIterator<Item = Done>>(&mut self, entries: T) {
        entries.into_iter().for_each(|done| self.push(done));
    }
}

impl IntoIterator for DoneList {
    type Item = Done;
    type IntoIter = std::vec::IntoIter<Done>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl From<Vec<Done>> for DoneList {
    fn from(entries: Vec<Done>) -> Self {
        let held = entries.iter().map(Done::held).fold(0, usize::saturating_add);
        Self { entries, held }
    }
}

/// Written as its entries.
impl Serialize for DoneList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.entries.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DoneList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
