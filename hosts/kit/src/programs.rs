//! Local programs, for hosts that run them by themselves.

#[cfg(target_os = "linux")]
pub use starbridge_command::supervise;
pub use starbridge_command::{CommandConnector, CommandSettings, Programs, Supervisor};
