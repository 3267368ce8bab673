//! What happens to a call that nobody answers.

use starbridge_flow::time::Millis;
use starbridge_machine::{CallToSend, EventId, Signal};

/// What ends a call that nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Silence {
    /// A missed heartbeat.
    Heartbeat,
    /// The timeout of a worker, which takes a task at once; or, without a bound on its work, that of the wait for one.
    Timeout,
}

impl Silence {
    /// After how long each of them ends a call.
    pub fn of(call: &CallToSend) -> impl Iterator<Item = (Millis, Self)> {
        let heartbeat = call.heartbeat.map(|every| (every, Self::Heartbeat));
        // Without them nobody takes the task: it waits in its queue, if it may.
        let is_bound = call.heartbeat.is_some() || call.timeout.is_some();
        let wait = call.wait.filter(|_| !is_bound);
        heartbeat
            .into_iter()
            .chain(call.timeout.or(wait).map(|longest| (longest, Self::Timeout)))
    }

    /// The signal that this gives to the machine.
    pub fn into_signal(self, call: EventId) -> Signal {
        match self {
            Self::Heartbeat => Signal::HeartbeatMissed { call },
            Self::Timeout => Signal::TimedOut { call, holder: None },
        }
    }
}
