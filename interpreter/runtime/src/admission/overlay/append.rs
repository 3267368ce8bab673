//! What was decided, as changes of the store.

use super::Overlay;
use starbridge_flow::value::Text;
use starbridge_ports::{AdmissionChange, Append, KeptKey, PoolKey, Waiter};
use std::collections::BTreeSet;

/// The names that a waiter waits for, as far as they belong to no execution that is known.
pub(in crate::admission) fn unbound_names(waiter: &Waiter) -> Vec<(Text, Text)> {
    let unbound = waiter.open.iter().filter(|open| open.bound.is_none());
    let names = unbound.filter_map(|open| {
        let dependency = &open.dependency;
        Some((dependency.flow.clone()?, dependency.execution.clone()))
    });
    names.collect()
}

impl Overlay {
    /// What was decided since the last append, as one append.
    pub(in crate::admission) fn append(&mut self) -> Append {
        let mut admission = Vec::new();
        for (execution, slots) in &self.slots {
            let keeps = slots.before.is_subset(&slots.now);
            if !keeps {
                let execution = execution.clone();
                admission.push(AdmissionChange::ReleaseSlots { execution });
            }
            let kept = if keeps { Some(&slots.before) } else { None };
            let new = slots
                .now
                .iter()
                .filter(|key| kept.is_none_or(|kept| !kept.contains(key)));
            let keys: Vec<PoolKey> = new.cloned().collect();
            if !keys.is_empty() {
                let execution = execution.clone();
                admission.push(AdmissionChange::TakeSlots { execution, keys });
            }
        }
        for (execution, changed) in &self.waiters {
            self.waiting_change += i64::from(changed.now.is_some()) - i64::from(changed.before.is_some());
            let now: BTreeSet<_> = changed.now.iter().flat_map(unbound_names).collect();
            let before = changed.before.iter().flat_map(unbound_names);
            self.left_names.extend(before.filter(|name| !now.contains(name)));
            match &changed.now {
                Some(now) if changed.before.as_ref() == Some(now) => {}
                Some(now) => {
                    // A waiter that asked anew has another number.
                    if changed
                        .before
                        .as_ref()
                        .is_some_and(|before| before.number != now.number)
                    {
                        let execution = execution.clone();
                        admission.push(AdmissionChange::RemoveWaiter { execution });
                    }
                    admission.push(AdmissionChange::PutWaiter(Box::new(now.clone())));
                }
                None if changed.before.is_some() => {
                    let execution = execution.clone();
                    admission.push(AdmissionChange::RemoveWaiter { execution });
                }
                None => {}
            }
        }
        for key in std::mem::take(&mut self.touched) {
            let Some(known) = self.keys.get_mut(&key) else {
                continue;
            };
            known.kept.stale = self.is_due.contains(&key);
            if known.kept == known.durable {
                continue;
            }
            let nothing = KeptKey::of(key.clone());
            admission.push(match known.kept == nothing {
                true => AdmissionChange::RemoveKey(key),
                false => AdmissionChange::PutKey(known.kept.clone()),
            });
            known.durable = known.kept.clone();
        }
        Append {
            admission,
            sent: std::mem::take(&mut self.sent),
            received: std::mem::take(&mut self.received).into_iter().collect(),
            audit: std::mem::take(&mut self.audit),
            ..Append::default()
        }
    }
}
