//! Worker queues (section "worker queues"): which tasks wait, which worker holds which, and until when.
//!
//! [`Queues`] decides and does no I/O: its decisions are made durable before a worker hears of
//! them, and it changes an execution only by a signal to its owner. [`QueueEngine`] drives it in
//! real time, as an engine drives a shard.

mod command;
mod engine;
mod fair_queue;
mod handle;
mod leased_tasks;
mod lower_heads;
mod poll;
mod queue;
mod queue_position;
mod scheduler;
mod settings;
mod waiting_tasks;

pub use command::{HeldTask, PollOptions, QueueCommand, QueueView, QueueWorker};
pub use engine::{QueueEngine, QueueEngineDeps};
pub use fair_queue::FairQueue;
pub use handle::{QueueHandle, QueuePoll};
pub use poll::{PollOutcome, PollRequest, TaskExpiry, TaskFetch, TaskGrant};
pub use scheduler::Queues;
pub use settings::{QueueSettings, QueueSettingsError};

use starbridge_flow::time::Millis;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;

/// The key of a task: its execution and its call.
pub type TaskKey = (Text, EventId);
/// The time since the queues began, on a clock that never goes back. Leases and rates are measured with it.
pub type Ticks = Millis;
