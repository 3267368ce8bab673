//! What was decided, as changes of the store.

use super::Book;
use starbridge_ports::{AdmissionChange, Append, KeptKey, PoolKey};

impl Book {
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
