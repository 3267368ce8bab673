use super::Coloring;
use starbridge_fdl::graph::Flow;
pub fn dot(_: &Flow, _: Option<&Coloring>) -> String { String::new() }
