//! Pictures of flows: SVG with a layout of its own, Mermaid and Graphviz, with or without what a history says of each step.
//!
//! A picture depends on the flow and the history alone: the same two give the same bytes. Whatever names, conditions and
//! errors contain, the output stays well-formed and shows them as text.

mod coloring;
mod dot;
mod icon;
mod layout;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use coloring::{Coloring, Marks, Status, Way};
pub use dot::dot;
pub use mermaid::mermaid;
pub use svg::svg;
