//! The end of a world: no more executions come.

use super::super::bug::Law;
use super::{Start, State, World};
use starbridge_ports::Admissions;
use starbridge_runtime::KeyChange;

impl World {
    /// No more executions come, and no limit is zero: all must be admitted or declined.
    pub(super) fn come_to_rest(&mut self) {
        // The executions that others wait for start.
        for _ in 0..10 {
            self.start(&Start::Flow(None));
        }
        for _ in 0..3_000 {
            let at_rest = self.jobs.values().all(|job| matches!(job.state, State::Ended(_)));
            if !self.problems.is_empty() || at_rest && self.admission.is_idle() {
                break;
            }
            self.end_pauses();
            self.decide();
            self.hear();
            self.end_one();
            let blocked = self.all().iter().all(|waiter| !waiter.open.is_empty());
            if blocked && self.admission.is_idle() && self.chance.of(20) {
                // It waits for names that never come.
                self.stop_one();
            }
        }
        if self.problems.is_empty() {
            self.check_rest();
        }
    }

    /// An operator who hears nothing, because the process ended, asks again.
    fn end_pauses(&mut self) {
        if !self.admission.is_idle() {
            return;
        }
        for kept in self.store.kept_keys(None, usize::MAX).unwrap_or_default() {
            if kept.paused.is_some() {
                let change = KeyChange {
                    paused: Some(None),
                    ..KeyChange::default()
                };
                self.admission.change(kept.key, change);
            }
        }
    }

    fn check_rest(&mut self) {
        let mut found = Vec::new();
        for (id, job) in &self.jobs {
            if !matches!(job.state, State::Ended(_)) {
                let waiter = self.store.waiter(id).ok().flatten();
                let parked = waiter.as_ref().and_then(|waiter| waiter.parked.clone());
                let holders = parked.as_ref().map(|key| self.store.holders(key, 10));
                let above = &job.ancestors;
                let claim = waiter.as_ref().map(|waiter| (waiter.claim, &waiter.ask.keys));
                found.push(format!(
                    "{id} is forgotten: {:?} below {above:?}, at {parked:?}, held by {holders:?}; {claim:?}",
                    job.state
                ));
            } else if self.store.slots_of(id).is_ok_and(|held| !held.is_empty()) {
                found.push(format!("{id} has ended and holds slots"));
            }
        }
        for kept in self.store.kept_keys(None, usize::MAX).unwrap_or_default() {
            if !kept.is_set() {
                found.push(format!("nobody needs {:?}", kept.key));
            }
        }
        for what in found {
            self.problem(Law::Rest, what);
        }
    }
}
