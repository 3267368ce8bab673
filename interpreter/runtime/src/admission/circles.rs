//! Executions that wait for each other to end before they begin.
//!
//! A circle is found at its youngest member: the rows of the others are there when that one is looked up. So only those older
//! than it are followed, in both directions by turns. An execution whose call waits for a child waits for it, too. A search ends when one of the two directions does. Who starts long
//! chains, in whatever order, causes no long search with each start.

use super::choose::Choice;
use super::overlay::Awaited;
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, Dependency, OpenDependency, StoreError, Waiter, Waiters};
use std::collections::{BTreeMap, BTreeSet};

/// How many dependencies are followed to find out whether executions wait for each other. Where there are more, it is not known.
const MOST: usize = 10_000;

/// The id of the execution that a dependency names, if there is one.
pub(super) fn find(dependency: &Dependency, rows: &dyn Admissions) -> Result<Option<Text>, StoreError> {
    match &dependency.flow {
        Some(flow) => rows.named(flow, &dependency.execution),
        None => Ok(rows
            .record(&dependency.execution)?
            .map(|_| dependency.execution.clone())),
    }
}

/// Whether a waiter waits for itself.
pub(super) enum Circle {
    /// It does not, or a younger one will find out.
    None,
    /// Through these executions.
    Of(Vec<Text>),
    /// There are too many to find out.
    Unknown,
}

/// Those that wait for a waiter, directly or through others.
struct Awaiting {
    next: Vec<Waiter>,
    seen: BTreeSet<Text>,
}

impl Choice<'_> {
    /// The executions through which a waiter waits for itself, all of them older than it. Each dependency that is followed is
    /// taken from the budget.
    pub(super) fn circle(&mut self, waiter: &Waiter, budget: &mut usize) -> Result<Circle, StoreError> {
        let mut awaiting = Some(Awaiting {
            next: vec![waiter.clone()],
            seen: BTreeSet::new(),
        });
        let mut from: BTreeMap<Text, Text> = BTreeMap::new();
        let mut next: Vec<Waiter> = vec![waiter.clone()];
        let mut followed = 0;
        // All that wait for this one, if they are known: a circle can only lead through them.
        let mut members: Option<BTreeSet<Text>> = None;
        loop {
            let Some(one) = next.pop() else {
                return Ok(Circle::None);
            };
            for open in &one.open {
                followed += 1;
                *budget = budget.saturating_sub(1);
                if followed > MOST {
                    return Ok(Circle::Unknown);
                }
                let bound = match &open.bound {
                    Some(bound) => Some(bound.clone()),
                    None => find(&open.dependency, self.rows)?,
                };
                let Some(bound) = bound else {
                    continue;
                };
                // What waits for this one's call waits for this one.
                if bound == waiter.execution || waiter.ask.ancestors.contains(&bound) {
                    return Ok(Circle::Of(way(&from, &waiter.execution, &one.execution)));
                }
                let is_member = |id: &Text| members.as_ref().is_none_or(|members| members.contains(id));
                if from.contains_key(&bound) || !self.overlay.children && !is_member(&bound) {
                    continue;
                }
                from.insert(bound.clone(), one.execution.clone());
                let Some((further, are_all)) = self.behind(&bound, waiter.number)? else {
                    continue;
                };
                if !are_all {
                    return Ok(Circle::Unknown);
                }
                for further in further.into_iter().filter(|further| is_member(&further.execution)) {
                    if further.execution != bound {
                        from.insert(further.execution.clone(), bound.clone());
                    }
                    next.push(further);
                }
            }
            // Mostly nothing older is to be followed. Then nobody has to be looked for who waits for this one.
            if next.is_empty() {
                return Ok(Circle::None);
            }
            if let Some(back) = &mut awaiting {
                match self.step_back(back, waiter.number)? {
                    true if back.next.is_empty() => {
                        let seen = std::mem::take(&mut back.seen);
                        next.retain(|one| one.execution == waiter.execution || seen.contains(&one.execution));
                        members = Some(seen);
                        awaiting = None;
                    }
                    true => {}
                    false => awaiting = None,
                }
            }
        }
    }

    /// The older waiters that an execution waits for to go on: itself, or its children; and whether these are all. `None` if it
    /// runs, or is a younger waiter.
    fn behind(&mut self, execution: &Text, number: u64) -> Result<Option<(Vec<Waiter>, bool)>, StoreError> {
        if let Some(waiter) = self.overlay.known(execution, self.rows)? {
            return Ok((waiter.number < number).then(|| (vec![waiter.clone()], true)));
        }
        if !self.overlay.children {
            return Ok(None);
        }
        let below = self.overlay.changed_below(execution);
        let found = self
            .overlay
            .older(Waiters::Below(execution, 0), below, number, self.rows)?;
        Ok(Some(found))
    }

    /// Finds who waits for one of those that are known to wait. Returns whether all are known that do.
    fn step_back(&mut self, back: &mut Awaiting, number: u64) -> Result<bool, StoreError> {
        let Some(one) = back.next.pop() else {
            return Ok(true);
        };
        let mut are_all = true;
        // Who waits for an execution above it waits for it.
        for id in one.ask.ancestors.iter().chain([&one.execution]) {
            let (found, all_found) = self.older_that_await(id, number)?;
            are_all &= all_found;
            for execution in found {
                if back.seen.contains(&execution) {
                    continue;
                }
                // Most rows were read since the last append: by the searches for others of the same circle or chain.
                if let Some(waiter) = self.overlay.known(&execution, self.rows)? {
                    back.next.push(waiter.clone());
                }
                back.seen.insert(execution);
            }
        }
        Ok(are_all && back.seen.len() <= MOST)
    }

    /// The waiters with smaller numbers that wait for this execution, and whether these are all.
    fn older_that_await(&self, id: &Text, number: u64) -> Result<(Vec<Text>, bool), StoreError> {
        let by_id = |one: &OpenDependency| {
            one.bound.as_ref() == Some(id) || (one.dependency.flow.is_none() && one.dependency.execution == *id)
        };
        let awaited = Awaited::End(id);
        let changed = self.overlay.changed_that_await(awaited);
        let changed = changed.filter(|other| other.open.iter().any(by_id));
        let (mut found, mut are_all) = self.overlay.older_ids(awaited.rows(0), changed, number, self.rows)?;
        let record = self.rows.record(id)?.unwrap_or_default();
        let (flow, name) = (&record.flow, &record.name);
        if !name.is_empty() {
            let awaited = Awaited::Name(flow, name);
            let changed = self.overlay.changed_that_await(awaited);
            let changed = changed.filter(|other| other.open.iter().any(|open| awaited.is(open)));
            let (named, all_named) = self.overlay.older_ids(awaited.rows(0), changed, number, self.rows)?;
            found.extend(named);
            are_all &= all_named;
        }
        Ok((found, are_all))
    }
}

/// The way to an execution, from the first one on.
fn way(from: &BTreeMap<Text, Text>, first: &Text, last: &Text) -> Vec<Text> {
    let mut way = vec![last.clone()];
    let mut at = last;
    while at != first
        && let Some(before) = from.get(at)
    {
        way.push(before.clone());
        at = before;
    }
    way.reverse();
    way
}
