//! What happens to a call that nobody answers.

use starbridge_machine::{CallToSend, EventId, Signal};

/// What falls upon a call that nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Silence {
    /// No sign of life came.
    Heartbeat,
    /// A worker, who takes a task at once, had it for so long.
    Timeout,
}

impl Silence {
    /// After how many milliseconds it falls upon a call.
    pub fn of(call: &CallToSend) -> impl Iterator<Item = (u64, Self)> {
        let heartbeat = call.heartbeat_ms.map(|millis| (millis, Self::Heartbeat));
        heartbeat
            .into_iter()
            .chain(call.timeout_ms.map(|millis| (millis, Self::Timeout)))
    }

    /// What it is to the machine.
    pub fn into_signal(self, call: EventId) -> Signal {
        match self {
            Self::Heartbeat => Signal::HeartbeatMissed { call },
            Self::Timeout => Signal::TimedOut { call },
        }
    }
}
