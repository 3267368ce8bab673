//! The clock of the database, as a client over a network sees it.

use std::time::Instant;

/// The time of the database, in microseconds since 1970, while the statement runs and not at the beginning of its transaction.
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
    /// Reads the answer of a query that was just sent.
    pub(crate) fn new(asked: Instant, shown: i64) -> Self {
        Self {
            shown,
            asked,
            answered: Instant::now(),
        }
    }
}
