use super::Coloring;
use starbridge_fdl::graph::Flow;
pub fn mermaid(_: &Flow, _: Option<&Coloring>) -> String { String::new() }
