//! The parts that flow languages share: the compiled flow ([`graph`]), values, time, limits, texts
//! with places in them, the paths of JSONPath and the form of diagnostics.
//!
//! Nothing here runs a flow, reads a file, asks a clock or prints. Parsing never fails: every error
//! in a text comes back as data.
//!
//! ```
//! use starbridge_flow::graph::Root;
//! use starbridge_flow::path::Query;
//! use starbridge_flow::value::Value;
//!
//! let order: Value = serde_json::from_str(r#"{"items": [{"price": 7}, {"price": 5}]}"#)?;
//! let price = Query::parse("$.items[1].price")?;
//! assert_eq!(price.find_below(Root::from(&order)), Some(&Value::from(5_i64)));
//!
//! // An error of a path has the place in its text.
//! let error = Query::parse("$.items[").unwrap_err();
//! assert_eq!(error.offset, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::missing_errors_doc)]

pub mod diagnostics;
pub mod duration;
pub mod expression_error;
pub mod fnv;
pub mod graph;
pub mod hex;
pub mod limits;
pub mod path;
mod regex_cost;
#[cfg(test)]
#[allow(dead_code, reason = "shared with the language")]
mod sample;
mod span;
pub mod string_literal;
pub mod syntax;
pub mod time;
pub mod value;
