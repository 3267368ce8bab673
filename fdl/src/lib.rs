//! The Flow Definition Language: text in, a checked [`graph::Flow`] and diagnostics out.
//!
//! Nothing here runs a flow, reads a file, asks a clock or prints. Parsing never fails: whatever is wrong with a text
//! comes back as data.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod check;
pub mod diagnostics;
mod duration;
pub mod expression;
pub mod fnv;
pub mod graph;
pub mod hex;
pub mod limits;
pub mod mend;
mod span;
pub mod syntax;
pub mod time;
pub mod value;

pub use check::{Answers, Checked, check, check_where};
