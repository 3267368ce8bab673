//! How admission chooses.

/// How admission chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// After so many admissions through a key, the one that waits longest in its line gets a claim. 0: never.
    pub fair_share: u32,
    /// After so many moves from line to line, a waiter gets a claim.
    pub moves: u32,
    /// How many waiters are examined before what was decided is made durable.
    pub examined: usize,
    /// How many messages are handled before what was decided is made durable.
    pub messages: usize,
    /// How many names and ids that others wait for are gone through before what was decided is made durable: so many of messages
    /// that are new, and so many of each line of what earlier ones left.
    pub names: usize,
    /// How many messages are kept in memory. Those that come while there are so many stay in the store, and are read from it in
    /// the order in which they were sent. `usize::MAX`: all that are delivered are kept, and none is read.
    pub inbox: usize,
    /// How many waiters of a line are read at once.
    pub page: usize,
    /// When so many wait, no further start is taken that may have to.
    pub max_waiting: u64,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self {
            fair_share: 16,
            moves: 8,
            examined: 1_024,
            messages: 1_024,
            names: 2_048,
            inbox: 8_192,
            page: 64,
            max_waiting: 10_000_000,
        }
    }
}
