//! Queues with workers that die, fall silent and come late, on a node that crashes and whose wall clock jumps, in simulated
//! time. It proves that no task ever belongs to two workers under valid leases, and that every task
//! is done in the end.

mod bug;
mod desk;
mod disk;
mod workers;
mod world;

pub use bug::Bug;

use super::{Findings, over_seeds};
use world::World;

/// Simulates seeds from one on until so many holds were made.
pub fn run(first: u64, holds: u64) -> Findings {
    over_seeds(first, (HOLDS, holds), &KINDS, |seed| simulate(seed, None))
}

/// Simulates one seed, with a bug planted or without.
pub fn simulate(seed: u64, planted: Option<Bug>) -> Findings {
    let mut world = World::new(seed, planted);
    world.run();
    let mut findings = world.findings;
    for problem in &mut findings.problems {
        *problem = format!("{problem}\n    again with: cargo xtask leases --seed {seed}");
    }
    findings.count("seeds", 1);
    findings
}

const HOLDS: &str = "tasks held";
/// Events that each campaign must produce at least once.
const KINDS: [&str; 12] = [
    HOLDS,
    "crashes",
    "writes lost in a crash",
    "writes kept whose word was lost",
    "jumps of the wall clock",
    "workers that died",
    "answers to holds lost",
    "tasks given back",
    "leases that ended",
    "tasks that took too long",
    "tasks that waited too long",
    "heartbeats refused",
];
