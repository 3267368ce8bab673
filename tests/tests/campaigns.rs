//! What campaigns rest on: a seed decides everything, and bugs are found.

use starbridge_tests::campaigns::simulation::simulate;
use starbridge_tests::campaigns::{leases, planted};

#[test]
fn the_same_seed_gives_the_same_trace() {
    let traces: Vec<u64> = (1..=12).map(|seed| simulate(seed, None).trace).collect();
    let again: Vec<u64> = (1..=12).map(|seed| simulate(seed, None).trace).collect();
    assert_eq!(traces, again);
    let mut different = traces;
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 12);
}

#[test]
fn every_planted_bug_is_found() {
    let (caught, findings) = planted::run();
    assert!(findings.problems.is_empty(), "{findings}");
    assert!(caught.len() >= 8);
}

#[test]
fn every_bug_of_queues_is_found() {
    for bug in leases::Bug::ALL {
        let found = (1..=300).any(|seed| !leases::simulate(seed, Some(bug)).problems.is_empty());
        assert!(found, "{}", bug.as_str());
    }
}
