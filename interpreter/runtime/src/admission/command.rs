//! What admission is told.

use super::governed::FlowChange;
use super::value::KeyChange;
use starbridge_ports::{Message, PoolKey};
use tokio::sync::oneshot;

/// What admission is told by others in the process.
#[derive(Debug)]
pub enum AdmissionCommand {
    /// A message for it is durable: an execution asks, has ended, or has appeared. At the start, those of the store come first.
    Deliver(Message),
    /// An operator changes a key.
    Change {
        /// The key.
        key: PoolKey,
        /// What is changed.
        change: Box<KeyChange>,
        /// For the key of a flow: everything that owners decided before this began is durable.
        flow: Option<FlowChange>,
        /// Answered when that is durable.
        reply: oneshot::Sender<()>,
    },
    /// Stop serving.
    Stop,
}
