//! What admission is told.

use starbridge_ports::Message;

/// What admission is told by others in the process.
#[derive(Debug)]
pub enum AdmissionCommand {
    /// A message for it is durable: an execution asks, has ended, or has appeared. At the start, those of the store come first.
    Deliver(Message),
}
