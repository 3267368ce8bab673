//! The Flow Definition Language: text in, a checked [`graph::Flow`] and diagnostics out.
//!
//! Nothing here runs a flow, reads a file, asks a clock or prints. Parsing never fails: every error
//! in a text comes back as data.
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
