//! Lines: the waiters that are parked at a key, in their order. The first ones of each line are in memory, the others are in the
//! store.

use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, LinePlace, PoolKey, StoreError, Waiter, Waiters};
use std::collections::{BTreeMap, BTreeSet};

/// How many times a page the first part of a line may be before it is cut back to a page.
const TRIM: usize = 4;
/// How many lines are known at once.
const MAX_LINES: usize = 4_096;
/// How many waiters of lines are known, so that they need not be read once more.
const MAX_WAITERS: usize = 16_384;

/// The first part of a line.
///
/// INVARIANT: it has all waiters of the line whose place is not after `known`.
#[derive(Debug)]
struct Front {
    waiters: BTreeMap<LinePlace, Text>,
    /// `None`: to the end of the line.
    known: Option<LinePlace>,
}

/// The lines of all keys.
#[derive(Debug, Default)]
pub(super) struct Lines {
    fronts: BTreeMap<PoolKey, Front>,
    /// Waiters of lines as the store has them. Nobody else writes their rows.
    read: BTreeMap<Text, Waiter>,
    /// Waiters that were parked since the last append, or whose row changed, by their present lines.
    fresh: BTreeMap<PoolKey, BTreeMap<LinePlace, Text>>,
}

impl Lines {
    /// A waiter is parked at a key.
    pub(super) fn add(&mut self, key: &PoolKey, place: LinePlace, execution: &Text) {
        self.fresh
            .entry(key.clone())
            .or_default()
            .insert(place, execution.clone());
        if let Some(front) = self.fronts.get_mut(key)
            && front.known.is_none_or(|known| place <= known)
        {
            front.waiters.insert(place, execution.clone());
        }
    }

    /// A waiter leaves the line of a key.
    pub(super) fn remove(&mut self, key: &PoolKey, place: LinePlace) {
        if let Some(fresh) = self.fresh.get_mut(key) {
            fresh.remove(&place);
        }
        if let Some(front) = self.fronts.get_mut(key) {
            front.waiters.remove(&place);
        }
    }

    /// The waiters of a line whose rows are not durable as they are, in their order.
    pub(super) fn fresh(&self, key: &PoolKey) -> impl Iterator<Item = &Text> {
        self.fresh.get(key).into_iter().flat_map(BTreeMap::values)
    }

    /// The first waiter of a line. `changed` has the executions whose rows are not what the store says.
    pub(super) fn first(
        &mut self,
        key: &PoolKey,
        page: usize,
        changed: &impl Fn(&Text) -> bool,
        rows: &dyn Admissions,
    ) -> Result<Option<Text>, StoreError> {
        let mut after = match self.fronts.get(key) {
            None => None,
            Some(front) => match (front.waiters.values().next(), front.known) {
                (Some(first), _) => return Ok(Some(first.clone())),
                (None, None) => return Ok(None),
                (None, known) => known,
            },
        };
        loop {
            let read = rows.waiters(Waiters::InLine(key, after), page)?;
            let known = read.last().filter(|_| read.len() >= page).map(Waiter::place);
            let stored = read.into_iter().filter(|waiter| !changed(&waiter.execution));
            let mut waiters = BTreeMap::new();
            if self.read.len() >= MAX_WAITERS {
                self.read.clear();
            }
            for waiter in stored {
                waiters.insert(waiter.place(), waiter.execution.clone());
                self.read.insert(waiter.execution.clone(), waiter);
            }
            for (place, execution) in self.fresh.get(key).into_iter().flatten() {
                if after.is_none_or(|after| *place > after) && known.is_none_or(|known| *place <= known) {
                    waiters.insert(*place, execution.clone());
                }
            }
            let first = waiters.values().next().cloned();
            self.fronts.insert(key.clone(), Front { waiters, known });
            if first.is_some() || known.is_none() {
                return Ok(first);
            }
            after = known;
        }
    }

    /// A waiter as the store has it, if it is known.
    pub(super) fn stored(&self, execution: &Text) -> Option<&Waiter> {
        self.read.get(execution)
    }

    /// The row of a waiter is not what it was.
    pub(super) fn forget(&mut self, execution: &Text) {
        self.read.remove(execution);
    }

    /// Everything that was decided is durable.
    pub(super) fn settle(&mut self, page: usize) {
        let moved: BTreeSet<PoolKey> = std::mem::take(&mut self.fresh).into_keys().collect();
        for key in moved {
            let Some(front) = self.fronts.get_mut(&key) else {
                continue;
            };
            if front.waiters.len() > page * TRIM {
                let rest = front.waiters.keys().nth(page).copied();
                if let Some(rest) = rest {
                    front.waiters.split_off(&rest);
                }
                front.known = front.waiters.keys().next_back().copied();
            }
        }
        if self.fronts.len() > MAX_LINES {
            self.fronts.clear();
        }
    }
}
