//! Errors of stores.

use starbridge_flow::time::Timestamp;

/// What a store could not do, and what that means for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Another process appended to the history: load it again.
    Conflict,
    /// Another process holds the execution until this time: leave it alone.
    Held(Timestamp),
    /// The stay of this process in the store is over, because somebody ended it: join again.
    Over,
    /// The store can't be reached or written now. An append may or may not have been stored.
    Unavailable(String),
    /// The stored data can't be read. Nothing may go on from it.
    Corrupt(String),
    /// A list was requested from a cursor that this store did not give out.
    BadCursor,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict => f.write_str("somebody else has appended to the history"),
            Self::Held(until) => write!(f, "somebody else has the execution until {until}"),
            Self::Over => f.write_str("somebody has ended the stay of this process in the store: it has to join again"),
            Self::Unavailable(why) => write!(f, "the store can't be reached: {why}"),
            Self::Corrupt(why) => write!(f, "the store can't be read: {why}"),
            Self::BadCursor => f.write_str("the cursor is not one of this store"),
        }
    }
}

impl std::error::Error for StoreError {}
