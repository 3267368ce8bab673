//! Admission (section "operating executions"): which executions wait for others to end or for slots of concurrency keys, and
//! who holds those slots. Its decisions are durable before an execution hears of them, and they reach it as messages.

mod command;
mod handle;

pub use command::AdmissionCommand;
pub use handle::AdmissionHandle;
