//! The runtime: load, decide, append, dispatch.
//!
//! [`Shard`] decides and knows what may leave once it is durable; it does no I/O itself. [`Engine`] drives it in real
//! time with a store and connectors; rehearsals drive it in virtual time.

mod engine;
mod flows;
mod resources;
pub mod schedule;
mod shard;
mod shards;
mod tokens;

pub use engine::{
    Begun, Command, Connectors, Engine, EngineSettings, Reply, Report, Start, StartFailure, World, Writer,
};
pub use flows::FlowTable;
pub use resources::{Resolved, ResourceMap, ResourceMapError};
pub use shard::{
    Birth, ForkRequest, Outgoing, Shard, Standing, StartError, StartRequest, Step as ShardStep, child_id, flow_of, fold,
};
pub use shards::{SHARDS, shard_of};
pub use tokens::{TokenError, TokenKeys, reference_of, sign_references};
