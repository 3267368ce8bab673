//! The worker that had a task of a queue. A history records it with the task's result.

use super::Engine;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Holder, Signal};

impl Engine {
    /// A signal about a task, with the worker that holds it or held it last. Queues remember it
    /// until the task is over.
    pub(super) fn with_holder(&self, execution: &str, mut signal: Signal) -> Signal {
        let (Signal::Succeeded { call, .. }
        | Signal::Failed { call, .. }
        | Signal::TimedOut { call, .. }
        | Signal::LeaseEnded { call, .. }) = &signal
        else {
            return signal;
        };
        let Some(found) = self.holder(execution, *call) else {
            return signal;
        };
        match &mut signal {
            Signal::Succeeded { worker, held_time, .. } => {
                *worker = Some(found.worker);
                *held_time = Some(found.held_time);
            }
            Signal::Failed { holder, .. } | Signal::TimedOut { holder, .. } | Signal::LeaseEnded { holder, .. } => {
                *holder = Some(Box::new(found));
            }
            _ => {}
        }
        signal
    }

    /// A worker's name may be a secret.
    fn holder(&self, execution: &str, call: EventId) -> Option<Holder> {
        let queues = self.deps.queues.as_ref()?;
        let (worker, held_time) = queues.holder(&Text::from(execution), call)?;
        let worker = self.deps.vault.redacted_text(&worker).map_or(worker, Text::from);
        Some(Holder { worker, held_time })
    }
}
