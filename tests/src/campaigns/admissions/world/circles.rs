//! Executions that wait for each other for ever.

use super::{State, World};
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, PoolKey, Waiter};
use std::collections::BTreeSet;

impl World {
    /// Those that can never continue: each waits at a key whose holders are all among them, or for
    /// a child that is.
    pub(super) fn stuck(&self, waiters: &[Waiter]) -> BTreeSet<Text> {
        let waits = |id: &Text| waiters.iter().find(|waiter| waiter.execution == *id);
        let unended = self
            .jobs
            .iter()
            .filter(|(_, job)| !matches!(job.state, State::Ended(_)));
        let mut stuck: BTreeSet<Text> = unended.map(|(id, _)| id.clone()).collect();
        loop {
            let can_go_on = |id: &Text| match (self.jobs.get(id).map(|job| job.state), waits(id)) {
                (Some(State::Runs), _) => !self.children(id).any(|child| stuck.contains(child)),
                (Some(State::Waits(_)), Some(waiter)) => self.comes_to_an_end(waiter, &stuck),
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

    fn children(&self, id: &Text) -> impl Iterator<Item = &Text> {
        let below = self
            .jobs
            .iter()
            .filter(move |(_, job)| job.ancestors.first() == Some(id));
        below
            .filter(|(_, job)| !matches!(job.state, State::Ended(_)))
            .map(|(child, _)| child)
    }
}
