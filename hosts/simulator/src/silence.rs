//! What happens to a call that nobody answers.

use starbridge_machine::{CallToSend, EventId, Signal};

/// What ends a call that nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Silence {
    /// A missed heartbeat.
    Heartbeat,
    /// The timeout of a worker, which takes a task at once.
    Timeout,
}

impl Silence {
    /// After how many milliseconds each of them ends a call.
    pub fn of(call: &CallToSend) -> impl Iterator<Item = (u64, Self)> {
        let heartbeat = call.heartbeat_ms.map(|millis| (millis, Self::Heartbeat));
        heartbeat
            .into_iter()
            .chain(call.timeout_ms.map(|millis| (millis, Self::Timeout)))
    }

    /// The signal that this gives to the machine.
    pub fn into_signal(self, call: EventId) -> Signal {
        match self {
            Self::Heartbeat => Signal::HeartbeatMissed { call },
            Self::Timeout => Signal::TimedOut { call },
        }
    }
}
