//! What could be undone, with the bytes that it takes.

use crate::event::{EventId, StepPath};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use starbridge_flow::graph::StepId;
use starbridge_flow::value::{Document, Overlay, Text, Value};

/// A task that has a rollback and was called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) class: DoneClass,
    /// The order within a class: the number of the event that completed the task, or of its call if it did not
    /// complete.
    pub(crate) order: EventId,
    /// The number of its last call.
    pub(crate) call: EventId,
    pub(crate) step: StepId,
    #[serde(with = "path_items")]
    pub(crate) path: StepPath,
    #[serde(serialize_with = "merged", deserialize_with = "from_merged")]
    pub(crate) input: Overlay,
    /// The call's result; `{}` if there was none.
    pub(crate) result: Document,
    /// The id of the child execution that the call started.
    pub(crate) child: Option<Text>,
    /// The bytes of the input that are its own and not those of the list's input; 0 if they are few.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) own: usize,
}

/// An input of its own below this many bytes is part of what each entry takes.
const FEW_BYTES: usize = 4096;

impl Done {
    /// The number of bytes of an input that are its own, as a state counts them: what a program made, otherwise the
    /// variables that the list had then.
    pub(crate) fn own_bytes(mapped: Option<&Document>, input: &Overlay) -> usize {
        let own = mapped.map_or_else(|| input.over().json_len(), Document::json_len);
        if own < FEW_BYTES { 0 } else { own }
    }
}

/// The classes of what is undone. The failed task is undone first, then what was cancelled, then what had completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum DoneClass {
    Completed,
    Cancelled,
    Failed,
}

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

fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(super) fn merged<S: Serializer>(overlay: &Overlay, serializer: S) -> Result<S::Ok, S::Error> {
    overlay.to_value().serialize(serializer)
}

pub(super) fn from_merged<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Overlay, D::Error> {
    Value::deserialize(deserializer).map(Overlay::new)
}

mod path_items {
    use crate::event::{PathItem, StepPath};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &StepPath, serializer: S) -> Result<S::Ok, S::Error> {
        path.items().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StepPath, D::Error> {
        Vec::<PathItem>::deserialize(deserializer).map(StepPath::from)
    }
}
