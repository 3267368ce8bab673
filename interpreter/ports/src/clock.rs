//! The port for time.

use starbridge_flow::time::Timestamp;
use std::future::{Future, pending};
use std::pin::Pin;

/// A future that ends when a clock is set to another time.
pub type ClockSet<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Gives the time. The runtime asks once a turn.
pub trait Clock: Send + Sync {
    /// The time now, on a clock that never goes back. Durations are measured with it.
    fn now(&self) -> Timestamp;

    /// The wall-clock time now, for events that are due at a time of day. It may go back.
    fn wall_time(&self) -> Timestamp {
        self.now()
    }

    /// Waits until somebody sets the clock after this call, so that a caller that sleeps until a
    /// time can check it again. A real clock is never set, so the future never ends.
    fn set(&self) -> ClockSet<'_> {
        Box::pin(pending())
    }
}
