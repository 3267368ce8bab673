//! What the tests' executions begin with.

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::Value;
use starbridge_machine::{Signal, StartRecord, StartTerms};
use std::sync::Arc;

/// A flow of these steps.
pub(crate) fn flow(steps: &str) -> Arc<Flow> {
    let text = format!(r#"{{"version": "v1", "type": "flow", "steps": [{steps}]}}"#);
    let checked = starbridge_fdl::check(&Source::new("flow.json", text), &Limits::default());
    checked.flow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// A start with an empty input.
pub(crate) fn start() -> Signal {
    Signal::Start(Box::new(StartRecord {
        flow: "f".into(),
        version: 1,
        definition_hash: "".into(),
        machine: 0,
        name: "n".into(),
        input: Value::empty_object(),
        seed: 1,
        labels: None,
        parent: None,
        tokens: Vec::new(),
        terms: StartTerms::default(),
    }))
}
