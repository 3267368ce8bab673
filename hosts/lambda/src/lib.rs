//! The interpreter as a function of AWS Lambda: events in, answers out. A node does the work.
//!
//! An invocation loads the executions that its event is about, runs them until they end, wait or the time is over, and gives
//! them back. Work that has to go on later is put into a queue that the function itself reads.
//!
//! The program reads [`settings::read`], starts the log ([`logging::begin`]), makes one [`Function`], and passes each event to
//! [`Function::take`]. Without a table, nothing is stored, and a flow must end within its invocation:
//!
//! ```
//! use starbridge_flow::value::Value;
//! use starbridge_lambda_host::Function;
//! use starbridge_node::config::Config;
//!
//! let function = Function::new(Ok(Config::default()));
//! let event: Value = serde_json::from_str(r#"{"definition": {"version": "v1", "type": "flow", "steps": [
//!     {"type": "succeed", "name": "done"}]}}"#)?;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let answer = function.take(event, &lambda_runtime::Context::default()).await.unwrap();
//! assert_eq!(answer.get("status").and_then(Value::as_str), Some("Succeeded"));
//! # });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod api;
mod batch;
mod continuations;
mod direct;
mod environment;
mod event;
mod failure;
mod figures;
mod function;
pub mod logging;
mod record;
pub mod settings;
mod start;
mod sweep;
mod web;

pub use failure::Failure;
pub use function::Function;
