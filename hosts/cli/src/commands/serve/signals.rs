//! The signals that stop a server, and those that it ignores. None of them ends it at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are received from now on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` if the process was started to outlive the terminal (nohup).
    hang_up: Option<Signal>,
    /// Signals that would end the process by default but mean nothing to it.
    _ignored: [Signal; 3],
}

impl Signals {
    /// From now on signals no longer end the process at once.
    pub fn listen() -> Result<Self, String> {
        let hear = |kind| signal(kind).map_err(|error| format!("signals can't be heard: {error}"));
        let hang_up = match is_ignored(SignalKind::hangup()) {
            true => None,
            false => Some(hear(SignalKind::hangup())?),
        };
        Ok(Self {
            interrupt: hear(SignalKind::interrupt())?,
            terminate: hear(SignalKind::terminate())?,
            quit: hear(SignalKind::quit())?,
            hang_up,
            _ignored: [
                hear(SignalKind::alarm())?,
                hear(SignalKind::user_defined1())?,
                hear(SignalKind::user_defined2())?,
            ],
        })
    }

    /// Waits for a signal that stops the server, and returns its name.
    pub async fn stop(&mut self) -> &'static str {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => drop(hang_up.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "told to stop",
            _ = self.quit.recv() => "told to quit",
            () = hang_up => "the terminal has gone",
        }
    }
}

/// Whether the process was started with that signal ignored. `SigIgn` of `/proc/self/status` has a bit for each.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.unwrap_or_default() >> (kind.as_raw_value() - 1) & 1 == 1
}
