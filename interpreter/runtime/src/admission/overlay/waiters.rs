//! Waiters, found among those of the store and those that changed since the last append.

use super::{OLDER, Overlay, ROWS};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, StoreError, Waiter, Waiters};

impl Overlay {
    /// Whether the row of a waiter is not what the store says.
    pub(in crate::admission) fn is_changed(&self, execution: &Text) -> bool {
        self.waiters.contains_key(execution)
    }

    /// The waiters whose rows are not what the store says.
    pub(in crate::admission) fn changed(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.values().filter_map(|changed| changed.now.as_ref())
    }

    /// The waiters that an execution waits for, as an ancestor, and whose rows are not what the store says.
    pub(in crate::admission) fn changed_below<'a>(
        &'a self,
        execution: &Text,
    ) -> impl Iterator<Item = &'a Waiter> + use<'a> {
        let above = execution.clone();
        let below = self.changed_below.get(execution).into_iter().flatten();
        let below = below.filter_map(|child| self.waiters.get(child)?.now.as_ref());
        below.filter(move |waiter| waiter.ask.ancestors.contains(&above))
    }

    /// All waiters of a kind: those of the store that did not change, and those that did and fit.
    pub(in crate::admission) fn all<'a>(
        &self,
        which: impl Fn(u64) -> Waiters<'a>,
        fits: impl Fn(&Waiter) -> bool,
        rows: &dyn Admissions,
    ) -> Result<Vec<Waiter>, StoreError> {
        let mut found: Vec<Waiter> = self.changed().filter(|waiter| fits(waiter)).cloned().collect();
        let mut after = 0;
        loop {
            let read = rows.waiters(which(after), ROWS)?;
            let last = read.last().map(|waiter| waiter.number).filter(|_| read.len() >= ROWS);
            found.extend(read.into_iter().filter(|waiter| !self.is_changed(&waiter.execution)));
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        found.sort_by_key(|waiter| waiter.number);
        Ok(found)
    }

    /// Waiters of a kind with numbers below this one, at most so many as are read at once, and whether these are all. `changed`:
    /// those of the kind whose rows are not what the store says.
    pub(in crate::admission) fn older<'a>(
        &self,
        which: Waiters<'_>,
        changed: impl Iterator<Item = &'a Waiter>,
        number: u64,
        rows: &dyn Admissions,
    ) -> Result<(Vec<Waiter>, bool), StoreError> {
        let changed = changed.filter(|waiter| waiter.number < number);
        let mut found: Vec<Waiter> = changed.cloned().collect();
        let read = rows.waiters(which, OLDER)?;
        let is_full = read.len() >= OLDER;
        let are_all = !is_full || read.last().is_some_and(|last| last.number >= number);
        let unchanged = read.into_iter().filter(|waiter| !self.is_changed(&waiter.execution));
        found.extend(unchanged.filter(|waiter| waiter.number < number));
        Ok((found, are_all))
    }

    /// As [`older`](Self::older), but only who they are: no row is read for it.
    pub(in crate::admission) fn older_ids<'a>(
        &self,
        which: Waiters<'_>,
        changed: impl Iterator<Item = &'a Waiter>,
        number: u64,
        rows: &dyn Admissions,
    ) -> Result<(Vec<Text>, bool), StoreError> {
        let changed = changed.filter(|waiter| waiter.number < number);
        let mut found: Vec<Text> = changed.map(|waiter| waiter.execution.clone()).collect();
        let read = rows.waiter_ids(which, OLDER)?;
        let is_full = read.len() >= OLDER;
        let are_all = !is_full || read.last().is_some_and(|(last, _)| *last >= number);
        let older = read.into_iter().filter(|(other, _)| *other < number);
        found.extend(
            older
                .map(|(_, execution)| execution)
                .filter(|execution| !self.is_changed(execution)),
        );
        Ok((found, are_all))
    }
}
