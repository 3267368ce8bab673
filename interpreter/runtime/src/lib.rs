//! The runtime: load, decide, append, dispatch.
//!
//! [`Shard`] decides and knows what may leave once it is durable; it does no I/O itself. [`Engine`] drives it in real
//! time with a store and connectors; rehearsals drive it in virtual time.

mod engine;
mod express;
mod flows;
pub mod hexadecimal;
mod queues;
mod resources;
pub mod schedule;
mod secrets;
mod shard;
mod tokens;

pub use engine::{
    Command, Connectors, Engine, EngineSettings, Reply, Report, Resting, Snapshot, Start, StartFailure, World, Writer,
};
pub use express::Express;
pub use flows::FlowTable;
pub use queues::{
    Grant, HeldTask, HoldRequest, Order, Pumped, QueueCommand, QueueDoor, QueueEngine, QueueSettings,
    QueueSettingsError, QueueView, QueueWorld, Queues, Rounds, TaskKey, Ticks, Verdict,
};
pub use resources::{Resolved, ResourceMap, ResourceMapError};
pub use secrets::reveal_secrets;
pub use shard::{
    Birth, ForkRequest, Loaded, Outgoing, Shard, StartError, StartRequest, StatusChange, Step as ShardStep, child_id,
    load,
};
pub use tokens::{TokenError, TokenKeys, reference_of, sign_references};
