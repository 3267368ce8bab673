//! The form histories are kept, exported and replayed in (section "history"): one JSON object an event.

mod read;
mod write;

pub use read::{HistoryError, read_event};
pub use write::{type_name, write_event};

/// Version of the form; the first line of an exported file names it.
pub const HISTORY_FORMAT: u32 = 1;
