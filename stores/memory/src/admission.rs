//! The data of admission.

use crate::Kept;
use starbridge_flow::value::Text;
use starbridge_ports::{
    AdmissionChange, FLOW_POOL, KeptKey, KeyView, LinePlace, PoolKey, Waiter, Waiters, WaitingReason,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The data of admission.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// By the ids of their executions.
    waiters: BTreeMap<Text, Waiter>,
    /// By the ids of their holders.
    slots: BTreeMap<Text, BTreeSet<PoolKey>>,
    keys: BTreeMap<PoolKey, KeptKey>,
    /// How many hold a slot of a key, and how many stand in its line.
    counts: BTreeMap<PoolKey, Counts>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    held: u64,
    waiting: u64,
}

impl Kept {
    pub(crate) fn change_admission(&mut self, changes: &[AdmissionChange]) {
        let rows = &mut self.admission;
        for change in changes {
            match change {
                AdmissionChange::TakeSlots { execution, keys } => rows.take_slots(execution, keys),
                AdmissionChange::ReleaseSlots { execution } => rows.release_slots(execution),
                AdmissionChange::PutWaiter(waiter) => {
                    rows.remove_waiter(&waiter.execution);
                    if let Some(key) = &waiter.parked {
                        rows.counts.entry(key.clone()).or_default().waiting += 1;
                    }
                    rows.waiters.insert(waiter.execution.clone(), waiter.as_ref().clone());
                }
                AdmissionChange::RemoveWaiter { execution } => rows.remove_waiter(execution),
                AdmissionChange::PutKey(key) => drop(rows.keys.insert(key.key.clone(), key.clone())),
                AdmissionChange::RemoveKey(key) => drop(rows.keys.remove(key)),
            }
        }
    }
}

impl Rows {
    fn take_slots(&mut self, execution: &Text, keys: &[PoolKey]) {
        let held = self.slots.entry(execution.clone()).or_default();
        for key in keys {
            if held.insert(key.clone()) {
                self.counts.entry(key.clone()).or_default().held += 1;
            }
        }
    }

    fn release_slots(&mut self, execution: &Text) {
        for key in self.slots.remove(execution).into_iter().flatten() {
            self.count_less(&key, |counts| counts.held -= 1);
        }
    }

    fn remove_waiter(&mut self, execution: &Text) {
        if let Some(key) = self.waiters.remove(execution).and_then(|waiter| waiter.parked) {
            self.count_less(&key, |counts| counts.waiting -= 1);
        }
    }

    fn count_less(&mut self, key: &PoolKey, change: impl Fn(&mut Counts)) {
        if let Some(counts) = self.counts.get_mut(key) {
            change(counts);
            if counts.held == 0 && counts.waiting == 0 {
                self.counts.remove(key);
            }
        }
    }

    pub(crate) fn waiter(&self, execution: &str) -> Option<Waiter> {
        self.waiters.get(execution).cloned()
    }

    pub(crate) fn waiters(&self, which: Waiters<'_>, limit: usize) -> Vec<Waiter> {
        self.find(which, limit).cloned().collect()
    }

    pub(crate) fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Vec<(u64, Text)> {
        let found = self.find(which, limit);
        found.map(|waiter| (waiter.number, waiter.execution.clone())).collect()
    }

    fn find(&self, which: Waiters<'_>, limit: usize) -> impl Iterator<Item = &Waiter> + use<'_> {
        let fits = |waiter: &&Waiter| match which {
            Waiters::InLine(key, after) => {
                waiter.parked.as_ref() == Some(key) && after.is_none_or(|after| waiter.place() > after)
            }
            Waiters::ByAge(key, after) => {
                waiter.parked.as_ref() == Some(key) && after.is_none_or(|after| waiter.age() > after)
            }
            Waiters::Claimed(after) => waiter.claim.is_some() && waiter.number > after,
            Waiters::BoundTo(execution, after) => {
                let mut bound = waiter.open.iter().filter_map(|open| open.bound.as_deref());
                waiter.number > after && bound.any(|bound| bound == execution)
            }
            Waiters::Named(flow, name, after) => {
                waiter.number > after
                    && waiter.open.iter().any(|open| {
                        let dependency = &open.dependency;
                        open.bound.is_none()
                            && dependency.flow.as_deref() == Some(flow)
                            && dependency.execution.as_str() == name
                    })
            }
            Waiters::Unbound(after) => waiter.number > after && waiter.open.iter().any(|open| open.bound.is_none()),
            Waiters::Below(ancestor, after) => {
                waiter.number > after && waiter.ask.ancestors.iter().any(|above| above.as_str() == ancestor)
            }
        };
        let mut found: Vec<&Waiter> = self.waiters.values().filter(fits).collect();
        match which {
            Waiters::InLine(..) => found.sort_by_key(|waiter| waiter.place()),
            Waiters::ByAge(..) => found.sort_by_key(|waiter| waiter.age()),
            _ => found.sort_by_key(|waiter| waiter.number),
        }
        found.into_iter().take(limit)
    }

    pub(crate) fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> u64 {
        let before = |waiter: &&Waiter| waiter.parked.as_ref() == Some(key) && waiter.place() < place;
        let before = self.waiters.values().filter(before).count();
        u64::try_from(before).unwrap_or(most).min(most)
    }

    /// Why a waiter waits; `None` if that is not decided yet.
    pub(crate) fn reason_of(&self, waiter: &Waiter) -> Option<WaitingReason> {
        if !waiter.open.is_empty() {
            return Some(WaitingReason::Dependency);
        }
        match &waiter.parked {
            Some(key) if key.pool.as_str() != FLOW_POOL => Some(WaitingReason::Key),
            Some(key) if self.key(key).kept.paused.is_some() => Some(WaitingReason::FlowPaused),
            Some(_) => Some(WaitingReason::FlowLimit),
            None => waiter.claim.map(|_| WaitingReason::Key),
        }
    }

    pub(crate) fn count_waiters(&self) -> u64 {
        count(self.waiters.len())
    }

    pub(crate) fn last_waiter(&self) -> (u64, u64) {
        let number = self.waiters.values().map(|waiter| waiter.number).max();
        let claim = self.waiters.values().filter_map(|waiter| waiter.claim).max();
        (number.unwrap_or(0), claim.unwrap_or(0))
    }

    pub(crate) fn slots_of(&self, execution: &str) -> Vec<PoolKey> {
        let held = self.slots.get(execution);
        held.map(|held| held.iter().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn all_slots(&self, most: usize) -> Option<Vec<(Text, PoolKey)>> {
        let slots = self.slots.iter();
        let slots: Vec<_> = slots
            .flat_map(|(execution, held)| held.iter().map(|key| (execution.clone(), key.clone())))
            .take(most.saturating_add(1))
            .collect();
        (slots.len() <= most).then_some(slots)
    }

    pub(crate) fn anyone_depends(&self) -> bool {
        let mut open = self.waiters.values().flat_map(|waiter| &waiter.open);
        open.any(|open| open.bound.is_some())
    }

    pub(crate) fn holders(&self, key: &PoolKey, limit: usize) -> Vec<Text> {
        let holders = self.slots.iter().filter(|(_, held)| held.contains(key));
        holders.take(limit).map(|(execution, _)| execution.clone()).collect()
    }

    /// Those who hold slots, after this id, in order.
    pub(crate) fn holders_after(&self, after: &str) -> impl Iterator<Item = &Text> {
        let after = (Bound::Excluded(after), Bound::Unbounded);
        let holders = self.slots.range::<str, _>(after).filter(|(_, held)| !held.is_empty());
        holders.map(|(execution, _)| execution)
    }

    pub(crate) fn key(&self, key: &PoolKey) -> KeyView {
        let kept = self.keys.get(key).cloned();
        let Counts { held, waiting } = self.counts.get(key).copied().unwrap_or_default();
        KeyView {
            kept: kept.unwrap_or_else(|| KeptKey::of(key.clone())),
            held,
            waiting,
        }
    }

    pub(crate) fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Vec<KeptKey> {
        let keys = self.keys.values();
        let keys = keys.filter(|kept| after.is_none_or(|after| kept.key > *after));
        keys.take(limit).cloned().collect()
    }

    pub(crate) fn stale_keys(&self) -> Vec<PoolKey> {
        let stale = self.keys.values().filter(|kept| kept.stale);
        stale.map(|kept| kept.key.clone()).collect()
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
