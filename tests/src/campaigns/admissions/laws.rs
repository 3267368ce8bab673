//! The laws that hold after each append of admission.

use super::bug::Law;
use starbridge_flow::value::Text;
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    AdmissionChange, Admissions, Append, FLOW_POOL, History, KeyView, LinePlace, Listing, Message, MessageBody,
    OpenDependency, PoolKey, Receivers, SCHEDULE_POOL, Waiter,
};
use std::collections::{BTreeMap, BTreeSet};

/// A law, and how it is broken.
pub(super) type Problem = (Law, String);

/// How things stand after an append.
pub(super) struct View<'a> {
    pub(super) store: &'a MemoryStore,
    /// The waiters.
    pub(super) waiters: &'a [Waiter],
    pub(super) has_ended: &'a dyn Fn(&Text) -> bool,
    /// The ended executions.
    pub(super) ended: &'a [Text],
    /// Whether admission was told things that it has not looked at.
    pub(super) is_told: bool,
}

/// The state before an append.
pub(super) struct Before {
    pub(super) waiters: Vec<Waiter>,
    /// The keys that it changes, as they were.
    pub(super) keys: Vec<KeyView>,
    /// The slots of executions that hold nothing after it, and how many held them.
    pub(super) released: BTreeMap<PoolKey, u64>,
    /// The priorities and orders that operators gave to executions, and that it follows.
    reordered: BTreeMap<Text, (u8, i64)>,
}

impl Before {
    pub(super) fn of(append: &Append, store: &MemoryStore, waiters: Vec<Waiter>) -> Self {
        let mut keys = Vec::new();
        let mut released = BTreeMap::new();
        for change in &append.admission {
            match change {
                AdmissionChange::PutKey(put) => keys.extend(store.key(&put.key).ok()),
                AdmissionChange::ReleaseSlots { execution } => {
                    for key in store.slots_of(execution).unwrap_or_default() {
                        let held = store.key(&key).map_or(0, |view| view.held);
                        released.insert(key, held);
                    }
                }
                _ => {}
            }
        }
        let mut messages = store.messages(&Receivers::All).unwrap_or_default();
        messages.retain(|message| append.received.contains(&message.id));
        messages.sort_by_key(|message| message.id.event);
        let reordered = messages.into_iter().filter_map(|message| match message.body {
            MessageBody::Reorder { priority, order, .. } => Some((message.id.from, (priority, order))),
            _ => None,
        });
        Self {
            waiters,
            keys,
            released,
            reordered: reordered.collect(),
        }
    }

    /// The place of a waiter when the lines are looked at, which is after all messages of the append.
    fn place(&self, waiter: &Waiter) -> LinePlace {
        let mut waiter = waiter.clone();
        if let Some((priority, order)) = self.reordered.get(&waiter.execution) {
            waiter.ask.priority = *priority;
            waiter.ask.order = *order;
        }
        waiter.place()
    }

    /// Whether the append changes a limit.
    pub(super) fn changes_limits(&self, append: &Append) -> bool {
        append.admission.iter().any(|change| {
            let AdmissionChange::PutKey(put) = change else {
                return false;
            };
            let before = self.keys.iter().find(|view| view.kept.key == put.key);
            before.is_none_or(|before| before.kept.limit() != put.limit())
        })
    }
}

/// The oldest claim, as long as no limit changes.
#[derive(Default)]
pub(super) struct OldestClaim {
    claim: Option<u64>,
    /// The keys with a free slot for it.
    free: BTreeSet<PoolKey>,
}

/// How often the oldest in the line of a key may go before others, so that nobody starves: once in so many admissions through it.
#[derive(Default)]
pub(super) struct FairTurns {
    /// `0`: never.
    share: u32,
    admitted: BTreeMap<PoolKey, u64>,
    taken: BTreeMap<PoolKey, u64>,
}

impl FairTurns {
    /// One turn in so many admissions; with `0`, none.
    pub(super) fn of(share: u32) -> Self {
        Self {
            share,
            ..Self::default()
        }
    }

    /// Notes through which keys an append admits.
    pub(super) fn note(&mut self, append: &Append) {
        for change in &append.admission {
            if let AdmissionChange::TakeSlots { execution, keys } = change
                && is_admitted(append, execution)
            {
                for key in keys {
                    *self.admitted.entry(key.clone()).or_default() += 1;
                }
            }
        }
    }

    /// Takes a turn at a key. Returns whether there was one.
    fn take(&mut self, key: &PoolKey) -> bool {
        let admitted = self.admitted.get(key).copied().unwrap_or_default();
        let turns = admitted.checked_div(self.share.into()).unwrap_or_default();
        let taken = self.taken.entry(key.clone()).or_default();
        let is_left = *taken < turns;
        *taken += u64::from(is_left);
        is_left
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl View<'_> {
    fn key(&self, key: &PoolKey) -> Option<KeyView> {
        self.store.key(key).ok()
    }

    fn held_by(&self, execution: &Text) -> Vec<PoolKey> {
        self.store.slots_of(execution).unwrap_or_default()
    }

    fn needs(&self, waiter: &Waiter) -> Vec<PoolKey> {
        self.needs_but(waiter, |execution| self.held_by(execution))
    }

    /// What a waiter needed when the lines were looked at, or more: what those above it took in this append, they may not have
    /// had yet.
    fn needed(&self, waiter: &Waiter, append: &Append) -> Vec<PoolKey> {
        self.needs_but(waiter, |execution| {
            let taken = taken_by(append, execution);
            let mut held = self.held_by(execution);
            held.retain(|key| !taken.contains(key));
            held
        })
    }

    /// The keys of a waiter, but for what it and those above it hold.
    fn needs_but(&self, waiter: &Waiter, holds: impl Fn(&Text) -> Vec<PoolKey>) -> Vec<PoolKey> {
        let mut needs: Vec<PoolKey> = waiter.ask.keys.iter().map(|needed| needed.key.clone()).collect();
        let flow = PoolKey {
            pool: FLOW_POOL.into(),
            key: waiter.ask.flow.clone(),
        };
        if self.key(&flow).is_some_and(|view| view.kept.is_set()) {
            needs.push(flow);
        }
        let above = waiter.ask.ancestors.iter().chain([&waiter.execution]);
        let held: Vec<PoolKey> = above.flat_map(holds).collect();
        needs.retain(|key| !held.contains(key));
        needs
    }

    /// The faults after an append of admission.
    pub(super) fn problems(&self, append: &Append, before: &Before, turns: &mut FairTurns) -> Vec<Problem> {
        let messages = self.store.messages(&Receivers::All).unwrap_or_default();
        let mut problems = self.limits(append, before);
        problems.extend(self.order(append, before, turns));
        problems.extend(self.releases(&messages));
        problems.extend(self.holding());
        problems.extend(
            self.waiters
                .iter()
                .filter_map(|waiter| self.is_forgotten(waiter, &messages)),
        );
        problems
    }

    fn limits(&self, append: &Append, before: &Before) -> Vec<Problem> {
        let mut problems = Vec::new();
        for change in &append.admission {
            let AdmissionChange::TakeSlots { execution, keys } = change else {
                continue;
            };
            let is_admitted = append
                .sent
                .iter()
                .any(|sent| sent.id.to == *execution && sent.body == MessageBody::Admit);
            for key in keys.iter().filter(|_| is_admitted) {
                // Data that changed with this append may have been different before.
                let changed = before.keys.iter().any(|view| view.kept.key == *key);
                let Some(view) = self.key(key).filter(|_| !changed) else {
                    continue;
                };
                let limit = limit_of(&view);
                if view.held > limit {
                    problems.push((Law::Limit, format!("{} hold {key:?}, of {limit}", view.held)));
                    continue;
                }
                let own = before.waiters.iter().find(|waiter| waiter.execution == *execution);
                let claims = count(self.claims_before(key, own.and_then(|own| own.claim), &before.waiters));
                if view.held + claims > limit {
                    let what = format!("{execution} has a slot of {key:?} that is reserved for a claim");
                    problems.push((Law::Claim, what));
                }
            }
        }
        problems
    }

    /// How many that still wait have a claim at a key, had it before, and go before this claim; before none, all do.
    fn claims_before(&self, key: &PoolKey, claim: Option<u64>, before: &[Waiter]) -> usize {
        let goes_first = |other: &&Waiter| match (other.claim, claim) {
            (Some(other), Some(own)) => other < own,
            (other, _) => other.is_some(),
        };
        let had = |other: &&Waiter| before.iter().any(|before| before == *other);
        let claimed = self.waiters.iter().filter(goes_first).filter(had);
        claimed.filter(|other| self.needs(other).contains(key)).count()
    }

    /// A waiter in the same line that needs no more is not overtaken, but by the oldest when it is its turn.
    fn order(&self, append: &Append, before: &Before, turns: &mut FairTurns) -> Vec<Problem> {
        let mut problems = Vec::new();
        let admitted = append.sent.iter().filter(|sent| sent.body == MessageBody::Admit);
        for sent in admitted {
            // Whoever asked anew in this append does not stand where it stood.
            let stood = |waiter: &&Waiter| waiter.execution == sent.id.to && waiter.event == sent.id.event;
            let Some(one) = before.waiters.iter().find(stood) else {
                continue;
            };
            let Some(line) = &one.parked else {
                continue;
            };
            let others = self.waiters.iter().filter(|other| other.parked.as_ref() == Some(line));
            let others = others.filter(|other| before.waiters.contains(other));
            let others: Vec<&Waiter> = others.collect();
            let (place, needed) = (before.place(one), taken_by(append, &one.execution));
            let passed = others.iter().find(|other| {
                other.place() < place && self.needed(other, append).iter().all(|key| needed.contains(key))
            });
            let Some(passed) = passed else {
                continue;
            };
            let is_oldest = others.iter().all(|other| one.age() < other.age());
            if !(is_oldest && turns.take(line)) {
                let what = format!("{} goes before {}", one.execution, passed.execution);
                problems.push((Law::Order, what));
            }
        }
        problems
    }

    /// An ended execution whose end is known holds nothing.
    fn releases(&self, messages: &[Message]) -> Vec<Problem> {
        let heard = |id: &&Text| messages.iter().all(|message| message.id.from != **id);
        let leaks = self
            .ended
            .iter()
            .filter(heard)
            .filter(|id| !self.held_by(id).is_empty());
        leaks
            .map(|id| (Law::Release, format!("{id} has ended and holds slots")))
            .collect()
    }

    /// Whoever waits holds nothing: only parents hold slots while somebody waits, so only among them a circle is looked for.
    fn holding(&self) -> Vec<Problem> {
        let held = self
            .waiters
            .iter()
            .map(|waiter| (waiter, self.held_by(&waiter.execution)));
        let holding = held.filter(|(_, held)| !held.is_empty());
        holding
            .map(|(waiter, held)| (Law::Holding, format!("{} waits and holds {held:?}", waiter.execution)))
            .collect()
    }

    /// Why nothing will have a waiter looked at.
    fn is_forgotten(&self, waiter: &Waiter, messages: &[Message]) -> Option<Problem> {
        if messages.iter().any(|message| message.id.from == waiter.execution) {
            return None;
        }
        let unheard = waiter.open.iter().find_map(|open| self.is_unheard(open, messages));
        if let Some(unheard) = unheard {
            let what = format!("{} waits for {unheard}, of which nothing comes", waiter.execution);
            return Some((Law::Dependency, what));
        }
        if !waiter.open.is_empty() {
            return None;
        }
        let needs = self.needs(waiter);
        let is_full = |key: &PoolKey| {
            let Some(view) = self.key(key) else {
                return true;
            };
            let claims = count(self.claims_before(key, waiter.claim, self.waiters));
            view.kept.stale || view.kept.limit().is_some_and(|limit| view.held + claims >= limit)
        };
        let is_stale = |key: &PoolKey| self.key(key).is_some_and(|view| view.kept.stale);
        let waits = match &waiter.parked {
            Some(key) => (needs.contains(key) && is_full(key)) || is_stale(key),
            None => waiter.claim.is_some() && needs.iter().any(is_full),
        };
        (!waits).then(|| (Law::WakeUp, format!("nothing will have this looked at: {waiter:?}")))
    }

    /// The execution of a dependency of whose end nothing will tell.
    fn is_unheard(&self, open: &OpenDependency, messages: &[Message]) -> Option<Text> {
        let known = match (&open.bound, &open.dependency.flow) {
            (Some(bound), _) => bound.clone(),
            (None, Some(flow)) => self.store.named(flow, &open.dependency.execution).ok().flatten()?,
            (None, None) => open.dependency.execution.clone(),
        };
        let told = |message: &Message| message.id.from == known || message.id.to == known;
        let is_told = messages.iter().any(told);
        // An execution that was started just now says so.
        let is_bound = open.bound.is_some() || self.is_told;
        let is_lost = (self.has_ended)(&known) || !is_bound;
        (is_lost && !is_told).then_some(known)
    }

    /// Follows the oldest claim: what is free for it stays free, until a slot of each of its keys is. Returns whether one was
    /// followed to its end.
    pub(super) fn follow(
        &self,
        oldest: &mut OldestClaim,
        append: &Append,
        before: &Before,
        problems: &mut Vec<Problem>,
    ) -> bool {
        let claimed = self.waiters.iter().filter(|waiter| waiter.claim.is_some());
        let first = claimed.min_by_key(|waiter| waiter.claim);
        let claim = first.and_then(|waiter| waiter.claim);
        if claim != oldest.claim || before.changes_limits(append) {
            let was_admitted = oldest.claim.is_some_and(|own| {
                let had = before.waiters.iter().find(|waiter| waiter.claim == Some(own));
                had.is_some_and(|had| is_admitted(append, &had.execution))
            });
            *oldest = OldestClaim {
                claim,
                free: BTreeSet::new(),
            };
            return was_admitted;
        }
        let Some(waiter) = first else {
            return false;
        };
        let mut stands: BTreeMap<PoolKey, bool> = BTreeMap::new();
        for key in self.needs(waiter) {
            let Some(view) = self.key(&key) else {
                continue;
            };
            let limit = view.kept.limit().unwrap_or(u64::MAX);
            let free = view.held < limit;
            if !free && oldest.free.contains(&key) {
                let what = format!("the slot of {key:?} that was free for {} is taken", waiter.execution);
                problems.push((Law::Claim, what));
            }
            // A slot that is released while no more are held than may be is free from then on.
            if !free && before.released.get(&key).is_some_and(|held| *held <= limit) {
                let what = format!(
                    "a slot of {key:?} was released, and {} did not get it",
                    waiter.execution
                );
                problems.push((Law::Claim, what));
            }
            stands.insert(key, free);
        }
        oldest.free = stands
            .into_iter()
            .filter(|(_, free)| *free)
            .map(|(key, _)| key)
            .collect();
        false
    }
}

/// The slots that an execution takes in an append.
fn taken_by(append: &Append, execution: &Text) -> Vec<PoolKey> {
    let taken = append.admission.iter().filter_map(|change| match change {
        AdmissionChange::TakeSlots { execution: own, keys } if own == execution => Some(keys),
        _ => None,
    });
    taken.flatten().cloned().collect()
}

fn is_admitted(append: &Append, execution: &Text) -> bool {
    let mut admitted = append.sent.iter().filter(|sent| sent.body == MessageBody::Admit);
    admitted.any(|sent| sent.id.to == *execution)
}

/// The limit of a key. Definitions of flows say 1 or 2 here, and that may have changed; those of schedules say 1.
fn limit_of(view: &KeyView) -> u64 {
    let most = match view.kept.key.pool.as_str() {
        SCHEDULE_POOL => 1,
        _ => 2,
    };
    view.kept.set.or(view.kept.defined.map(|_| most)).unwrap_or(u64::MAX)
}
