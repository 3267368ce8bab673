//! The runtime: it loads executions, lets the machine decide, appends its decisions, and dispatches
//! the calls that follow.
//!
//! [`Shard`] owns executions, knows what may leave once it is durable, and does no I/O. [`Engine`] drives a shard in real
//! time with a store and connectors; the simulator drives one in virtual time. [`Queues`] and [`QueueEngine`] are the same
//! pair for worker queues, and [`schedule`] says when flows start by themselves.
//!
//! A host that drives a shard takes the following steps; [`Shard`] has the details:
//!
//! ```
//! use starbridge_flow::limits::Limits;
//! use starbridge_flow::syntax::Source;
//! use starbridge_flow::time::{Millis, Timestamp};
//! use starbridge_flow::value::Object;
//! use starbridge_machine::{Signal, Status};
//! use starbridge_runtime::{ExecutionSeed, FlowTable, Outgoing, PumpResult, ResourceMap, Shard, StartRequest};
//! use std::sync::Arc;
//!
//! let limits = Arc::new(Limits::default());
//! let definition = r#"{"version": "v1", "type": "flow", "steps": [
//!     {"type": "task", "name": "charge", "resourceArn": "http://shop.example/charge"}]}"#;
//! let flow = starbridge_fdl::check(&Source::new("flow.json", definition), &limits).flow.unwrap();
//! let mut flows = FlowTable::default();
//! flows.put("shop", flow);
//!
//! let seed = |_: &StartRequest, _| ExecutionSeed { id: "e-1".into(), seed: 1 };
//! let mut shard = Shard::new(flows, ResourceMap::default(), limits, seed);
//! let mut now = Timestamp(0);
//! let id = shard.start(StartRequest { flow: "shop".into(), ..StartRequest::default() }, now)?;
//!
//! let mut history = Vec::new();
//! while shard.pump(now) == PumpResult::Decided {
//!     history.extend(shard.take_batch()); // here a host appends the batch to its store
//!     shard.committed(&[]);
//!     for outgoing in shard.take_outgoing() {
//!         if let Outgoing::Send { execution, call } = outgoing {
//!             // Here a host sends the call. Its answer is the next signal.
//!             now = now.plus(Millis(40));
//!             let result = Object::new().into();
//!             let answer = Signal::Succeeded { call: call.call, result, worker: None, held_time: None };
//!             shard.signal(&execution, answer, now).unwrap();
//!         }
//!     }
//! }
//! assert_eq!(shard.state(&id).unwrap().status(), Status::Succeeded);
//! assert_eq!(history.len(), 2); // a turn for the start, and one for the answer
//! # Ok::<(), starbridge_runtime::StartError>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod admission;
mod after;
mod engine;
mod express;
mod flows;
mod queues;
mod references;
mod report;
mod resources;
pub mod schedule;
mod secrets;
mod shard;
mod shard_table;
mod starts;
mod stored_events;
mod suspect_lock;
mod tokens;

pub use admission::{
    Admission, AdmissionCommand, AdmissionEngine, AdmissionHandle, AdmissionSettings, Decided, Deliver, FlowChange,
    KeyChange,
};
pub use after::{find_cycle, read_after};
pub use engine::{
    Command, Connectors, Engine, EngineDeps, EngineSettings, Reply, Report, Snapshot, StartFailure, StartedExecution,
    SuspendedExecution, Writer,
};
pub use express::Express;
pub use flows::FlowTable;
pub use queues::{
    FairQueue, HeldTask, PollOptions, PollOutcome, PollRequest, QueueCommand, QueueEngine, QueueEngineDeps,
    QueueHandle, QueuePoll, QueueSettings, QueueSettingsError, QueueView, QueueWorker, Queues, TaskExpiry, TaskFetch,
    TaskGrant, TaskKey, Ticks,
};
pub use references::{Revealing, read_references, references_in};
pub use report::{read_entry, read_report};
pub use resources::{Resolved, ResourceMap, ResourceMapError};
pub use secrets::{SecretUse, Vault, fits};
pub use shard::{
    ExecutionSeed, ForkFailure, ForkRequest, Loaded, NotEnded, Outgoing, PumpResult, RedefineRequest, Shard,
    StartError, StartRequest, StartTime, StatusChange, StepEvent, check_keys, child_id, kept_input, load,
};
pub use shard_table::ShardTable;
pub use starts::{note_end, note_start, note_stopping};
pub use stored_events::{each_stored_event, each_stored_event_between, read_stored, stored_events};
pub use tokens::{SignedCall, TokenError, TokenKeys};
