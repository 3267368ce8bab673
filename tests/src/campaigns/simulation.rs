//! Many executions on several shards, over a store and functions that fail, in simulated time. Everything follows from one
//! seed: which faults there are, when they come, and in which order things happen.

mod audit;
mod fault;
mod outside;
mod process;
mod shelter;
mod world;

pub use fault::{Bug, Fault};

use super::{Findings, on_all_processors};
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

/// The result of one seed.
#[derive(Clone, Debug)]
pub struct Run {
    /// A hash of everything that happened, in order.
    pub trace: u64,
    /// Counts, and what is wrong.
    pub findings: Findings,
}

/// Simulates one seed, with a bug planted or without.
pub fn simulate(seed: u64, planted: Option<Bug>) -> Run {
    let mut world = World::new(seed, planted);
    world.run();
    let trace = world.trace();
    let mut findings = audit::audit(&world);
    for problem in &mut findings.problems {
        *problem = format!("{problem}\n    again with: cargo xtask simulate --seed {seed}");
    }
    findings.count("seeds", 1);
    Run { trace, findings }
}

/// Simulates so many seeds from one on. A kind of fault that never came is a problem where there were enough seeds for it.
pub fn run(first: u64, seeds: u64) -> Findings {
    /// By then every fault comes.
    const ENOUGH: u64 = 100;
    let next = AtomicU64::new(first);
    let work = || {
        let mut findings = Findings::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds || findings.problems.len() > 100 {
                return findings;
            }
            findings.add(simulate(seed, None).findings);
        }
    };
    let mut findings = on_all_processors(work);
    for fault in Fault::ALL {
        if seeds >= ENOUGH && findings.of(fault.as_str()) == 0 {
            findings.problem(format!("a fault never came: {}", fault.as_str()));
        }
    }
    findings
}
