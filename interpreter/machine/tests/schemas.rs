//! Schemas whose evaluation would take too long are refused by a count before the evaluation begins.

use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{Rejection, Signal, StartRecord, StartTerms, State};
use std::sync::Arc;

/// Each level of the value doubles what is asked.
const DOUBLING: &str =
    r##"{"allOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]}"##;

fn flow() -> Arc<Flow> {
    let text = format!(
        r#"{{"version": "v1", "type": "flow", "inputSchema": {DOUBLING}, "steps": [{{"type": "pass", "name": "a"}}]}}"#
    );
    let checked = starbridge_fdl::check(&Source::new("flow.json", text), &Limits::default());
    checked.flow.unwrap()
}

fn start(depth: usize) -> Result<(), Rejection> {
    let input = (0..depth).fold(Value::empty_object(), |inner, _| {
        let mut outer = Object::new();
        outer.insert("a".into(), inner);
        outer.into()
    });
    let started = StartRecord {
        flow: "f".into(),
        version: 1,
        definition_hash: "".into(),
        machine: 0,
        name: "n".into(),
        input,
        seed: 1,
        labels: None,
        parent: None,
        tokens: Vec::new(),
        terms: StartTerms::default(),
    };
    let mut state = State::new("e", Arc::new(Limits::default()));
    let mut events = Vec::new();
    let taken = state.advance(&flow(), Signal::Start(Box::new(started)), Timestamp(0), &mut events);
    assert_eq!(taken.is_err(), events.is_empty(), "a refused start leaves no trace");
    taken.map(drop)
}

#[test]
fn input_schema_that_takes_too_many_steps_is_refused() {
    assert_eq!(start(10), Ok(()));
    let refused = start(60).unwrap_err();
    assert!(matches!(refused, Rejection::InvalidInput(_)));
    let told = refused.to_string();
    assert!(
        told.contains("`inputSchema` takes more than the limit of 1000"),
        "{told}"
    );
}
