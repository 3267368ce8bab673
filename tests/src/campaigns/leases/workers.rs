//! Workers, and who has which task as they see it.

use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use std::collections::BTreeMap;

/// A task of an execution, whatever the number of its call.
pub(super) type Task = (Text, u32);

/// A worker believes that it has a task until its lease is over: counted from when it last asked and was answered.
#[derive(Clone, Debug)]
pub(super) struct Belief {
    pub(super) worker: u32,
    pub(super) call: EventId,
    pub(super) valid_until: u64,
    pub(super) lease: u64,
    /// When it has had the task long enough.
    pub(super) ends: u64,
}

/// The beliefs of workers.
#[derive(Default)]
pub(super) struct Beliefs {
    by_task: BTreeMap<Task, Vec<Belief>>,
}

impl Beliefs {
    /// A worker gets a task. Answers who has it under a lease that is still valid.
    pub(super) fn take(&mut self, task: &Task, belief: Belief, now: u64) -> Option<Belief> {
        let beliefs = self.by_task.entry(task.clone()).or_default();
        beliefs.retain(|other| other.valid_until > now);
        let other = beliefs.first().cloned();
        beliefs.push(belief);
        other
    }

    /// A worker was told that it has the task until then.
    pub(super) fn renew(&mut self, task: &Task, worker: u32, call: EventId, valid_until: u64) {
        for belief in self.by_task.get_mut(task).into_iter().flatten() {
            if belief.worker == worker && belief.call == call {
                belief.valid_until = belief.valid_until.max(valid_until).min(belief.ends);
            }
        }
    }

    /// A worker's belief about a call.
    pub(super) fn of(&self, task: &Task, worker: u32, call: EventId) -> Option<&Belief> {
        let beliefs = self.by_task.get(task)?;
        beliefs
            .iter()
            .find(|belief| belief.worker == worker && belief.call == call)
    }

    /// A worker is done with a call, or knows that it has it no longer.
    pub(super) fn drop_call(&mut self, task: &Task, worker: u32, call: EventId) {
        if let Some(beliefs) = self.by_task.get_mut(task) {
            beliefs.retain(|belief| belief.worker != worker || belief.call != call);
        }
    }

    /// A worker dies: it does nothing any more, so it has nothing.
    pub(super) fn forget(&mut self, worker: u32) {
        for beliefs in self.by_task.values_mut() {
            beliefs.retain(|belief| belief.worker != worker);
        }
    }
}
