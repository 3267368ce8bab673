//! Signals that stop the worker.

use crate::exit::Exit;
use crate::output::{Output, fault};
use starbridge_node::system::reason;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, as often as they come.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals end nothing by themselves.
    pub fn new(output: Output) -> Result<Self, Exit> {
        let listen = |kind| {
            signal(kind).map_err(|error| fault(output, &format!("no signals can be taken: {}", reason(&error)), ""))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// The next of them, in words.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "told to stop",
            _ = self.interrupt.recv() => "interrupted",
        }
    }
}
