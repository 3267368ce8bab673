//! What campaigns rest on: a seed decides everything, and bugs are found.

use starbridge_tests::campaigns::planted;
use starbridge_tests::campaigns::simulation::simulate;

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
