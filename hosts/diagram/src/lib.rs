//! Pictures of flows: SVG with a layout of its own, Mermaid and Graphviz, with or without the
//! status of each step from a history.
//!
//! A picture depends only on the flow and the history: the same two give the same bytes. The output
//! stays well-formed for any names, conditions and errors, and shows them as text.
//!
//! Read the history with [`FlowStatus::from_history`] if there is one, then draw with [`svg`], [`mermaid`] or [`dot`].
//!
//! ```
//! use starbridge_diagram::{mermaid, svg};
//! use starbridge_flow::{limits::Limits, syntax::Source};
//!
//! let definition = r#"{"version": "v1", "type": "flow", "steps": [
//!     {"type": "task", "name": "charge", "resourceArn": "http://shop.example/charge"}]}"#;
//! let checked = starbridge_fdl::check(&Source::new("shop.flow.json", definition), &Limits::default());
//! let flow = checked.flow.unwrap();
//! assert!(svg(&flow, None).contains("charge"));
//! assert!(mermaid(&flow, None).starts_with("flowchart"));
//! ```
#![warn(clippy::missing_errors_doc)]

mod dot;
mod icon;
mod labels;
mod layout;
mod mermaid;
mod outline;
mod status;
mod svg;
mod text;
mod words;

pub use dot::dot;
pub use mermaid::mermaid;
pub use status::{FlowStatus, Folding, Marks, Status, Way};
pub use svg::{InPage, svg, svg_in_page};
pub use words::Words;

/// The fill and border of a status in pictures that other programs draw.
fn state_colors(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::NotReached => ("#ffffff", "#9aa8b5"),
        Status::Succeeded => ("#e4f5e7", "#2b7a39"),
        Status::Running => ("#d9eafc", "#1559a6"),
        Status::Waiting => ("#ebe6fb", "#5a3fb0"),
        Status::Failed => ("#fbdcd8", "#b3261e"),
        Status::Caught => ("#fff0d0", "#8f6200"),
        Status::Cancelled => ("#e9edf0", "#5f6f7e"),
        Status::Undoing | Status::RolledBack | Status::UndoFailed => ("#f6e4f3", "#86327a"),
    }
}
