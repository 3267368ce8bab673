//! Admission (section "operating executions"): which executions wait for others to end or for slots of concurrency keys, and
//! who holds those slots. Its decisions are durable before an execution hears of them, and they reach it as messages.

mod backlog;
mod choose;
mod circles;
mod command;
mod deadlock;
mod dependencies;
mod engine;
mod governed;
mod handle;
mod lines;
mod overlay;
mod settings;
mod undecided;
mod value;

pub use command::AdmissionCommand;
pub use engine::{AdmissionEngine, Deliver};
pub use governed::FlowChange;
pub use handle::AdmissionHandle;
pub use settings::AdmissionSettings;
pub use value::{Admission, Decided, KeyChange};
