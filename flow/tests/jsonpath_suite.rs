//! The path engine on the published compliance suite of RFC 9535 (`jsonpath-standard/jsonpath-compliance-test-suite`).
//!
//! The suite is not kept here. `STARBRIDGE_JSONPATH_SUITE` names its `cts.json`; `cargo xtask test` fetches it.

#![expect(clippy::disallowed_methods, reason = "a test reads its data")]

use serde::Deserialize;
use starbridge_flow::graph::{Budget, Root};
use starbridge_flow::limits::Limits;
use starbridge_flow::path::Query;
use starbridge_flow::value::Value;

/// The least number of cases that a whole suite has.
const WHOLE: usize = 680;

#[derive(Deserialize)]
struct Suite {
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    selector: String,
    #[serde(default)]
    document: Option<Value>,
    #[serde(default)]
    result: Option<Vec<Value>>,
    /// If the RFC leaves the order of members open, every correct order.
    #[serde(default)]
    results: Vec<Vec<Value>>,
    #[serde(default)]
    invalid_selector: bool,
}

/// `None` if the engine behaves as the case requires; otherwise what it did.
fn difference(case: &Case) -> Option<String> {
    let query = match (Query::parse(&case.selector), case.invalid_selector) {
        (Err(_), true) => return None,
        (Ok(_), true) => return Some("accepted".to_owned()),
        (Err(error), false) => return Some(format!("refused: {}", error.message)),
        (Ok(query), false) => query,
    };
    let document = case.document.clone().unwrap_or(Value::Null);
    let budget = Budget::new(&Limits::default(), 0);
    let found = match query.find(Root::from(&document), &budget) {
        Err(exhausted) => return Some(format!("{exhausted:?}")),
        Ok(found) => found,
    };
    let nodes = match found {
        None => Vec::new(),
        Some(value) if query.is_singular() => vec![value],
        Some(Value::Array(nodes)) => nodes.values().to_vec(),
        Some(other) => return Some(format!("{other:?} is no list")),
    };
    let right = case.result.iter().chain(&case.results).any(|right| *right == nodes);
    (!right).then(|| format!("found {}", serde_json::to_string(&nodes).unwrap_or_default()))
}

#[test]
fn every_case_is_answered_as_the_suite_says() {
    let path = std::env::var_os("STARBRIDGE_JSONPATH_SUITE").expect("run `cargo xtask test --only jsonpath`");
    let suite: Suite = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(suite.tests.len() >= WHOLE, "only {} cases", suite.tests.len());
    let different: Vec<(&str, String)> = suite
        .tests
        .iter()
        .filter_map(|case| Some((case.name.as_str(), difference(case)?)))
        .collect();
    println!("{} of {} cases", suite.tests.len() - different.len(), suite.tests.len());
    assert!(different.is_empty(), "{different:#?}");
}
