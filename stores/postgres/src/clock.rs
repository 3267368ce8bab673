//! The clock of the database, as somebody sees it who asks over a network.

use std::time::Instant;

/// The time there, in microseconds since 1970. To be read while a statement runs, not at the begin of its transaction.
pub(crate) const NOW: &str = "(extract(epoch from clock_timestamp()) * 1000000)::bigint";

/// What the clock of the database showed at some moment between two others of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Microseconds since 1970.
    pub shown: i64,
    /// Before it was asked.
    pub asked: Instant,
    /// After it had answered.
    pub answered: Instant,
}

impl ClockReading {
    /// What a query brought back just now.
    pub(crate) fn new(asked: Instant, shown: i64) -> Self {
        Self {
            shown,
            asked,
            answered: Instant::now(),
        }
    }
}
