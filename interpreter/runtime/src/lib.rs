//! The runtime: load, decide, append, dispatch.
//!
//! [`Shard`] decides and knows what may leave once it is durable; it does no I/O itself. [`Engine`] drives it in real
//! time with a store and connectors; the simulator drives it in virtual time.

mod alone;
mod engine;
mod express;
mod flows;
mod queues;
mod quoted;
mod references;
mod report;
mod resources;
pub mod schedule;
mod secrets;
mod shard;
mod starts;
mod stored_events;
mod tokens;

pub use engine::{
    Command, Connectors, Engine, EngineDeps, EngineSettings, Reply, Report, Snapshot, Start, StartFailure,
    SuspendedExecution, Writer,
};
pub use express::Express;
pub use flows::FlowTable;
pub use queues::{
    FairQueue, Grant, HeldTask, HoldRequest, PollOutcome, PollRequest, QueueCommand, QueueEngine, QueueEngineDeps,
    QueueHandle, QueuePoll, QueueSettings, QueueSettingsError, QueueView, Queues, QueuesViewed, TaskExpiry, TaskKey,
    Ticks,
};
pub use quoted::quoted;
pub use references::{Revealing, read_references, references_in};
pub use report::{read_entry, read_report};
pub use resources::{Resolved, ResourceMap, ResourceMapError};
pub use secrets::{SecretUse, Vault};
pub use shard::{
    ExecutionSeed, ForkFailure, ForkRequest, Loaded, Outgoing, Shard, StartError, StartRequest, StatusChange,
    Step as PumpResult, child_id, load,
};
pub use starts::{note_end, note_start};
pub use stored_events::{each_stored_event, read_stored, stored_events};
pub use tokens::{TokenError, TokenKeys};
