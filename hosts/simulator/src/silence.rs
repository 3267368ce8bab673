//! What happens to a call without an answer.

use starbridge_flow::time::Millis;
use starbridge_machine::{CallToSend, EventId, Signal};

/// What ends a call without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Silence {
    /// A missed heartbeat.
    Heartbeat,
    /// The timeout of a worker, which takes a task at once; if its work has no bound, the timeout
    /// of the wait for a worker.
    Timeout,
}

impl Silence {
    /// The time after which each of them ends a call.
    pub fn of(call: &CallToSend) -> impl Iterator<Item = (Millis, Self)> {
        let heartbeat = call.heartbeat.map(|every| (every, Self::Heartbeat));
        // Without them no worker takes the task: it waits in its queue, if its waiting time is
        // bounded.
        let is_bound = call.heartbeat.is_some() || call.timeout.is_some();
        let wait = call.wait.filter(|_| !is_bound);
        heartbeat
            .into_iter()
            .chain(call.timeout.or(wait).map(|longest| (longest, Self::Timeout)))
    }

    /// The signal to the machine.
    pub fn into_signal(self, call: EventId) -> Signal {
        match self {
            Self::Heartbeat => Signal::HeartbeatMissed { call },
            Self::Timeout => Signal::TimedOut { call, holder: None },
        }
    }
}
