//! Executions that wait for each other for ever.

use super::{State, World};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, PoolKey, Waiter};
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// Those that can never continue: each waits at a key whose holders are all among them, or for
    /// a child that is.
    pub(super) fn stuck(&self, waiters: &[Waiter]) -> BTreeSet<Text> {
        self.endless(waiters, |waiter, stuck| self.comes_to_an_end(waiter, stuck))
    }

    /// Those that can never continue: each waits for the end of one of them, or for a child that is.
    pub(super) fn wait_for_one_another(&self, waiters: &[Waiter]) -> BTreeSet<Text> {
        self.endless(waiters, |waiter, stuck| {
            let mut bound = waiter.open.iter().filter_map(|one| one.bound.as_ref());
            !bound.any(|execution| stuck.contains(execution))
        })
    }

    /// The largest set of executions that only wait for each other, if waiters come to an end as is said.
    fn endless(
        &self,
        waiters: &[Waiter],
        comes_to_an_end: impl Fn(&Waiter, &BTreeSet<Text>) -> bool,
    ) -> BTreeSet<Text> {
        let waiting: BTreeMap<&Text, &Waiter> = waiters.iter().map(|waiter| (&waiter.execution, waiter)).collect();
        let unended = self
            .jobs
            .iter()
            .filter(|(_, job)| !matches!(job.state, State::Ended(_)));
        let unended: Vec<_> = unended.collect();
        let mut children: BTreeMap<&Text, Vec<&Text>> = BTreeMap::new();
        for (id, job) in &unended {
            if let Some(parent) = job.ancestors.first() {
                children.entry(parent).or_default().push(id);
            }
        }
        let mut stuck: BTreeSet<Text> = unended.iter().map(|(id, _)| (*id).clone()).collect();
        loop {
            let can_go_on = |id: &Text| match (self.jobs.get(id).map(|job| job.state), waiting.get(id)) {
                (Some(State::Runs), _) => {
                    let mut children = children.get(id).into_iter().flatten();
                    !children.any(|child| stuck.contains(*child))
                }
                (Some(State::Waits(_)), Some(waiter)) => comes_to_an_end(waiter, &stuck),
                _ => true,
            };
            let free: Vec<Text> = stuck.iter().filter(|id| can_go_on(id)).cloned().collect();
            if free.is_empty() {
                return stuck;
            }
            for id in free {
                stuck.remove(&id);
            }
        }
    }

    /// Whether something other than those that are stuck will have a waiter looked at.
    fn comes_to_an_end(&self, waiter: &Waiter, stuck: &BTreeSet<Text>) -> bool {
        let Some(key) = waiter.parked.as_ref().filter(|_| waiter.open.is_empty()) else {
            return true;
        };
        let holders = self.store.holders(key, usize::MAX).unwrap_or_default();
        self.is_operated(key) || holders.iter().any(|holder| !stuck.contains(holder))
    }

    /// Whether an operator, or something that is on its way, can end the waiting at a key.
    fn is_operated(&self, key: &PoolKey) -> bool {
        let Ok(view) = self.store.key(key) else {
            return true;
        };
        view.kept.stale || view.kept.limit().is_none_or(|limit| view.held < limit || limit == 0)
    }
}
