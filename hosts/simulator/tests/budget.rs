//! A case has a number of events at most, so that a test of an endless flow ends, with a message.

use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_simulator::{Flows, Simulation, SimulationError, TestFile};
use std::collections::BTreeMap;

const LOOP: &str = r#"{"version": "v1", "type": "flow", "steps": [
    {"type": "pass", "name": "a"}, {"type": "choice", "name": "again", "choices": [{"condition": "true", "goto": "a"}]}]}"#;
const CASES: &str = r#"{"flow": "loop.json", "cases": [{"name": "a loop"}]}"#;

fn simulation(limits: Limits) -> Simulation {
    let flow = starbridge_fdl::check(&Source::new("loop.json", LOOP), &limits)
        .flow
        .unwrap();
    let flows = Flows {
        name: "loop".to_owned(),
        flow,
        children: BTreeMap::new(),
    };
    Simulation::new(flows, TestFile::parse(CASES).unwrap().cases.remove(0), limits)
}

#[test]
fn case_with_too_many_events_fails_with_a_message() {
    let error = simulation(Limits::default()).at_most(5_000).run().unwrap_err();
    assert_eq!(error, SimulationError::TooLong { events: 5_000 });
    let message = error.to_string();
    assert!(message.contains("more than 5000 events"), "{message}");
}

#[test]
fn case_that_its_limits_end_is_run_to_its_end() {
    let limits = Limits {
        step_visits: 20,
        ..Limits::default()
    };
    let outcome = simulation(limits).at_most(5_000).run().unwrap();
    assert_eq!(outcome.failure.unwrap().error, *"FnF.LimitExceeded");
}
