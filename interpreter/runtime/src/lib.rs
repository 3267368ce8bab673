//! The runtime: load, decide, append, dispatch.
//!
//! [`Shard`] decides and knows what may leave once it is durable; it does no I/O itself. [`Engine`] drives it in real
//! time with a store and connectors; rehearsals drive it in virtual time.

mod engine;
mod flows;
pub mod hexadecimal;
mod resources;
pub mod schedule;
mod shard;
mod tokens;

pub use engine::{
    Command, Connectors, Engine, EngineSettings, Reply, Report, Snapshot, Start, StartFailure, World, Writer,
};
pub use flows::FlowTable;
pub use resources::{Resolved, ResourceMap, ResourceMapError};
pub use shard::{
    Birth, ForkRequest, Loaded, Outgoing, Shard, StartError, StartRequest, Step as ShardStep, child_id, load,
};
pub use tokens::{TokenError, TokenKeys, reference_of, sign_references};
