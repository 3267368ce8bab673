//! The Flow Definition Language: text in, a checked [`graph::Flow`] and diagnostics out.
//!
//! Nothing here runs a flow, reads a file, asks a clock or prints. Parsing never fails: every error
//! in a text comes back as data.
//!
//! ```
//! use starbridge_fdl::check;
//! use starbridge_flow::limits::Limits;
//! use starbridge_flow::syntax::Source;
//!
//! let definition = r#"{"version": "v1", "type": "flow", "steps": [{"type": "task", "name": "charge"}]}"#;
//! let checked = check(&Source::new("flow.json", definition), &Limits::default());
//!
//! assert!(checked.flow.is_none()); // one error is enough
//! let error = &checked.diagnostics[0];
//! assert_eq!(error.message, "the task does not say what it calls");
//! ```
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::missing_errors_doc)]

pub mod check;
pub mod diagnostics;
pub mod expression;
mod fault_names;
pub mod fixes;

// Items that all languages share keep their names inside this one.
use starbridge_flow::{duration, expression_error, graph, hex, limits, path, string_literal, syntax, time, value};

pub use check::{Checked, ResourceCheck, Samples, check, check_knowing, check_stored, check_where};
pub use fault_names::FAULT_NAMES;
