//! The states of the iterations of a foreach, or of the branches of a parallel.

use super::shared_map::VisitSet;
use starbridge_machine::EventId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of children in a part.
const PART: u32 = 128;

/// A part: for each child, the lowest bits are the state, the others the number of the event that set it.
type Part = [u64; PART as usize];

/// The states of a composite's children. A copy shares the parts that do not change afterwards.
#[derive(Clone, Debug, Default)]
pub struct Children {
    parts: BTreeMap<u32, Arc<Part>>,
    len: u32,
    /// The number of items, if it is known.
    pub total: Option<u64>,
}

/// The state of a child of a composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildStatus {
    /// It has not begun.
    None,
    /// It has begun.
    Running,
    /// It ended without an error.
    Done,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl ChildStatus {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Running, Self::Done, Self::Failed, Self::Cancelled];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "notBegun",
            Self::Running => "running",
            Self::Done => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The letter for it in a map.
    pub fn letter(self) -> char {
        match self {
            Self::None => '.',
            Self::Running => 'r',
            Self::Done => 's',
            Self::Failed => 'f',
            Self::Cancelled => 'c',
        }
    }
}

impl Children {
    pub(super) fn set(&mut self, number: u32, status: ChildStatus, event: EventId) {
        self.len = self.len.max(number.saturating_add(1));
        let part = self.parts.entry(number / PART);
        let part = Arc::make_mut(part.or_insert_with(|| Arc::new([0; PART as usize])));
        if let Some(child) = part.get_mut((number % PART) as usize) {
            *child = (event.0 << 3) | status as u64;
        }
    }

    /// The number of known children.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether none has begun.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The state of each, and the event that set it.
    pub fn each(&self) -> impl Iterator<Item = (ChildStatus, EventId)> + '_ {
        const NONE: &Part = &[0; PART as usize];
        let parts = (0..self.len.div_ceil(PART)).map(|part| self.parts.get(&part).map_or(NONE, Arc::as_ref));
        parts.flatten().take(self.len()).map(|child| {
            let status = ChildStatus::ALL.get((child & 7) as usize).copied();
            (status.unwrap_or(ChildStatus::None), EventId(child >> 3))
        })
    }

    /// Cancels the children that have begun and not ended.
    pub(super) fn give_up(&mut self) {
        let runs = |child: &u64| child & 7 == ChildStatus::Running as u64;
        for part in self.parts.values_mut().filter(|part| part.iter().any(runs)) {
            for child in Arc::make_mut(part).iter_mut().filter(|child| runs(child)) {
                *child = (*child & !7) | ChildStatus::Cancelled as u64;
            }
        }
    }

    /// The approximate memory of what was not counted before, in bytes.
    pub(super) fn bytes(&self, counted: &mut VisitSet) -> usize {
        const ENTRY: usize = 24;
        let fresh = self.parts.values();
        let fresh = fresh.filter(|part| counted.insert(Arc::as_ptr(part).addr())).count();
        size_of::<Self>() + self.parts.len() * ENTRY + fresh * size_of::<Part>()
    }
}
