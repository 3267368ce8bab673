//! The interpreter as a function of AWS Lambda: events in, answers out. What it does for them is a node's.
//!
//! An invocation takes the executions its event is about, brings them on until they end, wait or time is over, and gives them
//! back; what is to be gone on with later is put into a queue the function itself reads.

mod api;
mod batch;
mod direct;
mod environment;
mod event;
mod failure;
mod figures;
mod function;
pub mod logging;
mod onward;
mod record;
pub mod settings;
mod start;
mod sweep;
mod web;

pub use failure::Failure;
pub use function::Function;
