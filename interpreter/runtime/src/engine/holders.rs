//! The worker that had a task of a queue. A history records it with the task's result.

use super::Engine;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Holder, Signal};

impl Engine {
    /// A signal about a task, with the worker that holds it or held it last. Queues remember it
    /// until the task is over.
    pub(super) fn with_holder(&self, execution: &str, mut signal: Signal) -> Signal {
        match &mut signal {
            Signal::Succeeded {
                call,
                worker,
                held_time,
                ..
            } => {
                let holder = self.holder(execution, *call);
                (*worker, *held_time) = holder.map(|holder| (holder.worker, holder.held_time)).unzip();
            }
            Signal::Failed { call, holder, .. }
            | Signal::TimedOut { call, holder }
            | Signal::LeaseEnded { call, holder, .. } => {
                *holder = self.holder(execution, *call).map(Box::new);
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
