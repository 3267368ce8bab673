//! Time.

use starbridge_flow::time::Timestamp;
use std::future::{Future, pending};
use std::pin::Pin;

/// What a clock that is set says when it is.
pub type ClockSet<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What time it is. Asked once a turn.
pub trait Clock: Send + Sync {
    /// Now, on a clock that never goes back: what durations are measured with.
    fn now(&self) -> Timestamp;

    /// What people's clocks say now, for what is to happen at a time of day. It may go back.
    fn wall_time(&self) -> Timestamp {
        self.now()
    }

    /// Ends when somebody sets the clock after this call: whoever sleeps until a time looks again. A clock that goes by itself
    /// is never set.
    fn set(&self) -> ClockSet<'_> {
        Box::pin(pending())
    }
}
