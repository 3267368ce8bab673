//! Which signals stop a server, and which it does not heed. Either way none of them ends it at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is listened to, from the moment this is made.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// Nothing, where whoever started the process wants it to outlive the terminal (nohup).
    hang_up: Option<Signal>,
    /// They would end the process, and say nothing to it.
    _ignored: [Signal; 3],
}

impl Signals {
    /// Listens.
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

    /// Waits for one that stops the server, and says what it was.
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
