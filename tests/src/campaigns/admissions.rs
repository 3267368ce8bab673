//! Admission over a store, with random keys, dependencies, children, redrives, forks, schedules, limits and orders, executions
//! that end and are stopped at any time, and a process that ends at any point. It proves that no
//! limit is exceeded, no waiter is overtaken or forgotten, no ended execution keeps a slot, and a
//! waiter with a claim gets the next free slots.

mod bug;
mod laws;
mod rows;
mod stream;
mod world;

pub use bug::{Bug, Law};
pub use stream::{
    admissions_before, bound, decisions_behind_names, decisions_of_a_dependent_behind_names, reads_of_an_admission,
    reads_of_an_appearance, rows_read_for_mixed_names,
};

use super::{Findings, over_seeds};
use world::World;

/// Steps of a world before it comes to rest.
const STEPS: u32 = 400;
const ADMISSIONS: &str = "admissions";
/// Events that each campaign must produce at least once.
const KINDS: [&str; 11] = [
    ADMISSIONS,
    "claims",
    "claims that were followed to their end",
    "deadlocks declined",
    "cycles declined",
    "declined",
    "restarts",
    "redrives",
    "redrives taken back",
    "forks",
    "triggers of schedules",
];

/// Simulates seeds from one on, until so many executions were admitted.
pub fn run(first: u64, admissions: u64) -> Findings {
    over_seeds(first, (ADMISSIONS, admissions), &KINDS, |seed| simulate(seed, None))
}

/// Simulates one seed, with a bug planted or without.
pub fn simulate(seed: u64, planted: Option<Bug>) -> Findings {
    let world = run_world(seed, planted);
    let mut findings = world.findings;
    for (law, problem) in world.problems {
        findings.problem(format!(
            "{}: {problem}\n    again with: cargo xtask admissions --seed {seed}",
            law.as_str()
        ));
    }
    findings.count("seeds", 1);
    findings
}

/// The law that is broken first with a bug planted, if one is.
pub fn broken_law(seed: u64, planted: Bug) -> Option<Law> {
    let world = run_world(seed, Some(planted));
    world.problems.first().map(|(law, _)| *law)
}

fn run_world(seed: u64, planted: Option<Bug>) -> World {
    match World::new(seed, planted) {
        Ok(mut world) => {
            world.run(STEPS);
            world
        }
        Err(error) => World::failed(&error),
    }
}
