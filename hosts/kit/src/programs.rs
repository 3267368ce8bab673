//! Local programs, for hosts that run them by themselves.

pub use starbridge_command::{CommandConnector, CommandSettings};
