//! Local programs, for hosts that run them without a flow.

#[cfg(target_os = "linux")]
pub use starbridge_connector_command::supervise;
pub use starbridge_connector_command::{
    CommandConnector, CommandSettings, Printed, Programs, StderrReceiver, Supervisor,
};
