//! Bugs planted one at a time: each test campaign must find its bugs.

use super::Findings;
use super::simulation::{Bug, simulate};

/// Seeds after which a bug counts as not found.
const SEEDS: u64 = 300;

/// How a planted bug was found.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The bug.
    pub bug: Bug,
    /// The first seed that shows it.
    pub seed: u64,
    /// The problem that was reported.
    pub problem: String,
}

/// Plants each bug and looks for it. A bug that is not found is a problem.
pub fn run() -> (Vec<Caught>, Findings) {
    let mut caught = Vec::new();
    let mut findings = Findings::default();
    for bug in Bug::ALL {
        let found = (1..=SEEDS).find_map(|seed| {
            let problem = simulate(seed, Some(bug)).findings.problems.into_iter().next()?;
            Some((seed, problem))
        });
        findings.count("bugs planted", 1);
        match found {
            Some((seed, problem)) => {
                findings.count("bugs found", 1);
                let problem = problem.lines().next().unwrap_or_default().to_owned();
                caught.push(Caught { bug, seed, problem });
            }
            None => findings.problem(format!("not found in {SEEDS} seeds: {}", bug.as_str())),
        }
    }
    (caught, findings)
}
