//! Who waits for an execution to end, or for a name: those of the store, and those that changed since the last append.

use super::{Overlay, ROWS};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, OpenDependency, StoreError, Waiter, Waiters};
use std::collections::{BTreeMap, BTreeSet};

/// What somebody waits for.
#[derive(Clone, Copy, Debug)]
pub(in crate::admission) enum Awaited<'a> {
    /// The end of this execution, which is known.
    End(&'a Text),
    /// An execution of this flow with this name, which was not there.
    Name(&'a Text, &'a Text),
}

impl<'a> Awaited<'a> {
    /// Whether an open dependency waits for this.
    pub(in crate::admission) fn is(self, open: &OpenDependency) -> bool {
        match self {
            Self::End(execution) => open.bound.as_ref() == Some(execution),
            Self::Name(flow, name) => {
                let dependency = &open.dependency;
                open.bound.is_none() && dependency.flow.as_ref() == Some(flow) && dependency.execution == *name
            }
        }
    }

    /// The rows of the store that wait for it.
    pub(in crate::admission) fn rows(self, after: u64) -> Waiters<'a> {
        match self {
            Self::End(execution) => Waiters::BoundTo(execution, after),
            Self::Name(flow, name) => Waiters::Named(flow, name, after),
        }
    }
}

/// Of those that changed since the last append, who waits or waited for what.
#[derive(Debug, Default)]
pub(super) struct ChangedDependents {
    ends: BTreeMap<Text, BTreeSet<Text>>,
    names: BTreeMap<(Text, Text), BTreeSet<Text>>,
}

impl ChangedDependents {
    pub(super) fn note(&mut self, waiter: &Waiter) {
        for open in &waiter.open {
            let OpenDependency { dependency, bound } = open;
            let waiting = match (bound, &dependency.flow) {
                (Some(bound), _) => self.ends.entry(bound.clone()),
                (None, None) => self.ends.entry(dependency.execution.clone()),
                (None, Some(flow)) => {
                    let name = (flow.clone(), dependency.execution.clone());
                    self.names.entry(name).or_default().insert(waiter.execution.clone());
                    continue;
                }
            };
            waiting.or_default().insert(waiter.execution.clone());
        }
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.names.clear();
    }
}

impl Overlay {
    /// The waiters that may wait for this and whose rows are not what the store says. Those that wait for the end of an
    /// execution by its id are among them, before it is looked up.
    pub(in crate::admission) fn changed_that_await(&self, awaited: Awaited<'_>) -> impl Iterator<Item = &Waiter> {
        let found = match awaited {
            Awaited::End(execution) => self.dependents.ends.get(execution),
            Awaited::Name(flow, name) => self.dependents.names.get(&(flow.clone(), name.clone())),
        };
        let found = found.into_iter().flatten();
        found.filter_map(|execution| self.waiters.get(execution)?.now.as_ref())
    }

    /// Those that wait for this, by the numbers of their requests, at most about `limit`; and whether these are all.
    pub(in crate::admission) fn dependents(
        &self,
        awaited: Awaited<'_>,
        limit: usize,
        rows: &dyn Admissions,
    ) -> Result<(Vec<Text>, bool), StoreError> {
        let changed = self.changed_that_await(awaited);
        let changed = changed.filter(|waiter| waiter.open.iter().any(|open| awaited.is(open)));
        let mut found: Vec<(u64, Text)> = changed
            .map(|waiter| (waiter.number, waiter.execution.clone()))
            .collect();
        let mut after = 0;
        let mut unchanged = 0;
        let is_all = loop {
            let page = ROWS.min(limit).max(1);
            let read = rows.waiter_ids(awaited.rows(after), page)?;
            let last = read.last().map(|(number, _)| *number).filter(|_| read.len() >= page);
            for (number, execution) in read {
                if !self.is_changed(&execution) {
                    unchanged += 1;
                    found.push((number, execution));
                }
            }
            match last {
                None => break true,
                Some(last) if unchanged >= limit => {
                    // Who has waited longer goes first, and those of the store after this one are not known.
                    found.retain(|(number, _)| *number <= last);
                    break false;
                }
                Some(last) => after = last,
            }
        };
        found.sort_unstable();
        Ok((found.into_iter().map(|(_, execution)| execution).collect(), is_all))
    }

    /// Whether somebody is bound to an execution.
    pub(in crate::admission) fn is_awaited(&self, execution: &Text, rows: &dyn Admissions) -> Result<bool, StoreError> {
        let awaited = Awaited::End(execution);
        let mut changed = self.changed_that_await(awaited);
        if changed.any(|waiter| waiter.open.iter().any(|open| awaited.is(open))) {
            return Ok(true);
        }
        // Of those that changed, the store may say what is not so any more.
        let read = rows.waiter_ids(awaited.rows(0), 1)?;
        Ok(read.iter().any(|(_, execution)| !self.is_changed(execution)))
    }

    /// Binds the dependencies of a waiter that wait for this to an execution that has not ended.
    pub(in crate::admission) fn bind(
        &mut self,
        waiting: &Text,
        awaited: Awaited<'_>,
        execution: &Text,
        rows: &dyn Admissions,
    ) -> Result<(), StoreError> {
        let waiter = &mut self.change(waiting, rows)?.now;
        for open in waiter.iter_mut().flat_map(|waiter| &mut waiter.open) {
            if awaited.is(open) {
                open.bound = Some(execution.clone());
            }
        }
        let bound = self.dependents.ends.entry(execution.clone()).or_default();
        bound.insert(waiting.clone());
        self.dependencies = true;
        Ok(())
    }
}
