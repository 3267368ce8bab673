//! The forms of histories (section "history"): the exported one, one JSON object an event, which can be replayed; and
//! the shorter stored one, one text a turn.

mod names;
mod pause;
mod read;
mod turn;
mod version;
mod write;

pub use names::{SHORT_KEYS, SHORT_TYPES};
pub use read::{HistoryError, read_event};
pub use turn::{read_turn, write_turn};
pub use write::{type_name, write_event, write_path};

/// The newest version of the exported form. The first line of an exported file names the lowest one that reads it.
pub const HISTORY_FORMAT: u32 = crate::MACHINE_VERSION;
