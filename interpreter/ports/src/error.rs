//! What goes wrong with stores.

use starbridge_flow::time::Timestamp;

/// What a store could not do, and what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Somebody else has appended: load again.
    Conflict,
    /// Somebody else has the execution until then: leave it alone.
    Held(Timestamp),
    /// It can't be reached or written just now: nothing is known of what became of the append.
    Unavailable(String),
    /// What is kept can't be read: nobody may go on from it.
    Corrupt(String),
    /// A list is to go on from a cursor that this store has not given out.
    BadCursor,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict => f.write_str("somebody else has appended to the history"),
            Self::Held(until) => write!(f, "somebody else has the execution until {until}"),
            Self::Unavailable(why) => write!(f, "the store can't be reached: {why}"),
            Self::Corrupt(why) => write!(f, "the store can't be read: {why}"),
            Self::BadCursor => f.write_str("the cursor is not one of this store"),
        }
    }
}

impl std::error::Error for StoreError {}
