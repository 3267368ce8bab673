//! What campaigns rest on: a seed decides everything, and bugs are found.

use starbridge_tests::campaigns::simulation::simulate;
use starbridge_tests::campaigns::{attack, leases, planted};

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

#[test]
fn every_try_of_the_attack_can_be_asked_for_by_its_name() {
    let tries = attack::list();
    let mut names: Vec<&str> = tries.iter().map(|[name, ..]| *name).collect();
    let areas: std::collections::BTreeSet<&str> = names.iter().filter_map(|name| name.split('/').next()).collect();
    assert_eq!(areas.len(), 15, "{areas:?}");
    for area in areas {
        let slice = tries
            .iter()
            .any(|[name, _, _, slice]| name.starts_with(area) && !slice.is_empty());
        assert!(slice, "no try of `{area}` is in the slice");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), tries.len(), "a name stands twice");
    assert!(
        tries
            .iter()
            .all(|row| row[..3].iter().all(|text| !text.is_empty() && !text.contains('|')))
    );
}
