//! Worker queues (section "worker queues"): which tasks wait, who has which, and until when.
//!
//! [`Queues`] decide and do no I/O: what they decide is durable before anybody is told, and what must happen to an
//! execution is a signal that its owner takes. [`QueueEngine`] drives them in real time, as an engine does a shard.

mod command;
mod engine;
mod fair_queue;
mod handle;
mod holding;
mod queue;
mod scheduler;
mod settings;
mod waiting;

pub use command::{HeldTask, HoldRequest, QueueCommand, QueueView, QueuesViewed};
pub use engine::{QueueEngine, QueueEngineDeps};
pub use fair_queue::FairQueue;
pub use handle::{QueueHandle, QueuePoll};
pub use scheduler::{Grant, PollOutcome, PollRequest, Queues, TaskExpiry};
pub use settings::{QueueSettings, QueueSettingsError};

use starbridge_flow::value::Text;
use starbridge_machine::EventId;

/// A task's key: its execution and its call.
pub type TaskKey = (Text, EventId);
/// Milliseconds of a clock that only goes forward: what leases and rates are measured with.
pub type Ticks = u64;
