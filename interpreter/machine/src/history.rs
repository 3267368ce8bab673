//! The forms of histories (section "history"): the one that is exported and replayed, one JSON object an event, and the
//! shorter one that is stored, a turn at a time.

mod names;
mod read;
mod turn;
mod write;

pub use names::{SHORT_KEYS, SHORT_TYPES};
pub use read::{HistoryError, read_event};
pub use turn::{read_turn, write_turn};
pub use write::{type_name, write_event, write_path};

/// Version of the form; the first line of an exported file names it.
pub const HISTORY_FORMAT: u32 = 1;
