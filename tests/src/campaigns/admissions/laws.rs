//! What must hold after each append of admission.

use starbridge_flow::value::Text;
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    AdmissionChange, Admissions, Append, FLOW_POOL, History, Listing, Message, MessageBody, PoolKey, Waiter,
};

pub struct View<'a> {
    pub store: &'a MemoryStore,
    /// Those who wait.
    pub waiters: &'a [Waiter],
    pub has_ended: &'a dyn Fn(&Text) -> bool,
    pub is_told: bool,
}

impl View<'_> {
    fn needs(&self, waiter: &Waiter) -> Vec<PoolKey> {
        let mut needs: Vec<PoolKey> = waiter.ask.keys.iter().map(|needed| needed.key.clone()).collect();
        let flow = PoolKey {
            pool: FLOW_POOL.into(),
            key: waiter.ask.flow.clone(),
        };
        if self.store.key(&flow).unwrap().kept.is_set() {
            needs.push(flow);
        }
        let above = waiter.ask.ancestors.iter().chain([&waiter.execution]);
        let held: Vec<PoolKey> = above.flat_map(|id| self.store.slots_of(id).unwrap()).collect();
        needs.retain(|key| !held.contains(key));
        needs
    }

    /// What is wrong after an append of admission, before which these waited.
    pub fn problems(&self, append: &Append, before: &[Waiter]) -> Vec<String> {
        let mut problems = self.limits(append);
        problems.extend(self.order(append, before));
        let messages = self.store.messages().unwrap();
        let forgotten = self.waiters.iter();
        problems.extend(forgotten.filter_map(|waiter| self.is_forgotten(waiter, &messages)));
        problems
    }

    fn limits(&self, append: &Append) -> Vec<String> {
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
                let view = self.store.key(key).unwrap();
                let kept = view.kept;
                // Definitions say 1 or 2. What changed with this append may have been otherwise before.
                let is_put = |change: &AdmissionChange| match change {
                    AdmissionChange::PutKey(put) => put.key == *key,
                    _ => false,
                };
                let changed = append.admission.iter().any(is_put);
                let limit = kept.set.or(kept.defined.map(|_| 2)).unwrap_or(u64::MAX);
                if view.held > limit && !changed {
                    problems.push(format!("{} hold {key:?}, of {limit}", view.held));
                }
            }
        }
        problems
    }

    /// Whoever stands in the same line and needs no more is not passed.
    fn order(&self, append: &Append, before: &[Waiter]) -> Vec<String> {
        let mut problems = Vec::new();
        let admitted = append.sent.iter().filter(|sent| sent.body == MessageBody::Admit);
        for sent in admitted {
            let Some(one) = before.iter().find(|waiter| waiter.execution == sent.id.to) else {
                continue;
            };
            let passed = self.waiters.iter().find(|other| {
                let stood = before.iter().any(|before| before == *other);
                stood && one.parked.is_some() && other.parked == one.parked && other.place() < one.place() && {
                    let needs = self.needs(one);
                    self.needs(other).iter().all(|key| needs.contains(key))
                }
            });
            if let Some(passed) = passed {
                problems.push(format!("{} goes before {}", one.execution, passed.execution));
            }
        }
        problems
    }

    /// Why nothing will have a waiter looked at.
    fn is_forgotten(&self, waiter: &Waiter, messages: &[Message]) -> Option<String> {
        let own = messages.iter().any(|message| message.id.from == waiter.execution);
        if own {
            return None;
        }
        for open in &waiter.open {
            let known = match (&open.bound, &open.dependency.flow) {
                (Some(bound), _) => Some(bound.clone()),
                (None, Some(flow)) => self.store.named(flow, &open.dependency.execution).unwrap(),
                (None, None) => Some(open.dependency.execution.clone()),
            };
            let Some(known) = known else {
                continue;
            };
            let told = messages
                .iter()
                .any(|message| message.id.from == known || message.id.to == known);
            let ended = (self.has_ended)(&known);
            // Whoever was started just now says so.
            let is_bound = open.bound.is_some() || self.is_told;
            if (ended || !is_bound) && !told {
                return Some(format!(
                    "{} waits for {known}, of which nothing comes",
                    waiter.execution
                ));
            }
        }
        if !waiter.open.is_empty() {
            return None;
        }
        let needs = self.needs(waiter);
        let is_full = |key: &PoolKey| {
            let view = self.store.key(key).unwrap();
            let claims = self.waiters.iter().filter(|other| {
                let goes_first = match (other.claim, waiter.claim) {
                    (Some(other), Some(own)) => other < own,
                    (other, _) => other.is_some(),
                };
                goes_first && self.needs(other).contains(key)
            });
            let claims = u64::try_from(claims.count()).unwrap();
            view.kept.stale || view.kept.limit().is_some_and(|limit| view.held + claims >= limit)
        };
        let waits = match &waiter.parked {
            Some(key) => (needs.contains(key) && is_full(key)) || self.store.key(key).unwrap().kept.stale,
            None => waiter.claim.is_some() && needs.iter().any(is_full),
        };
        (!waits).then(|| format!("nothing will have this looked at: {waiter:?}"))
    }
}
