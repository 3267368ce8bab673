//! Admission in simulation: random keys, dependencies, children, limits and restarts; and bugs that are planted to be found.

#[path = "admission/chance.rs"]
mod chance;
#[path = "admission/check.rs"]
mod check;
#[path = "admission/rows.rs"]
mod rows;
#[path = "admission/world.rs"]
mod world;

use world::World;

/// A bug that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    SlotLeaked,
    WakeUpLost,
    LimitExceededAtRestart,
    OrderReversed,
    ClaimIgnored,
    NameLookedUpFirst,
}

const BUGS: [Bug; 6] = [
    Bug::SlotLeaked,
    Bug::WakeUpLost,
    Bug::LimitExceededAtRestart,
    Bug::OrderReversed,
    Bug::ClaimIgnored,
    Bug::NameLookedUpFirst,
];

fn simulate(seed: u64, bug: Option<Bug>) -> World {
    let mut world = World::new(seed, bug);
    world.run(400);
    world
}

/// `ADMISSION_SEEDS` says how many seeds.
#[test]
fn nobody_is_forgotten_and_no_limit_is_exceeded() {
    let seeds = std::env::var("ADMISSION_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    let (mut admissions, mut claims, mut deadlocks, mut cycles, mut restarts, mut declined) = (0, 0, 0, 0, 0, 0);
    let mut problems = Vec::new();
    for seed in 1..=seeds.unwrap_or(12_u64) {
        let world = simulate(seed, None);
        if let Some(problem) = world.problems.first() {
            problems.push(format!("seed {seed}: {problem}"));
        }
        admissions += world.admissions;
        claims += world.claims;
        deadlocks += world.deadlocks;
        cycles += world.cycles;
        restarts += world.restarts;
        declined += world.declined;
    }
    println!(
        "{admissions} admissions, {claims} claims, {deadlocks} deadlocks, {cycles} cycles, {restarts} restarts, {declined} declined"
    );
    for (count, what) in [
        (admissions, "admissions"),
        (claims, "claims"),
        (deadlocks, "deadlocks"),
        (cycles, "cycles"),
        (restarts, "restarts"),
        (declined, "declined"),
    ] {
        assert!(count > 0, "no {what}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    for bug in BUGS {
        let found = (1..=300).any(|seed| !simulate(seed, Some(bug)).problems.is_empty());
        assert!(found, "{bug:?}");
    }
}
