//! Campaigns: long runs that prove what `docs/reliability.md` promises. Each gives figures and says what is wrong.

pub mod admissions;
pub mod attack;
pub mod cluster;
pub mod crashes;
pub mod failing;
pub mod full_disk;
pub mod holds;
pub mod kills;
pub mod laws;
pub mod leases;
pub mod planted;
pub mod simulation;
pub mod torn;

use crate::chance::Chance;
use std::sync::atomic::{AtomicU64, Ordering};

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The counters, in the order they are shown.
    pub figures: Vec<(String, u64)>,
    /// The problems found.
    pub problems: Vec<String>,
}

impl Findings {
    /// Counts something.
    pub fn count(&mut self, what: &str, how_many: u64) {
        match self.figures.iter_mut().find(|(name, _)| name == what) {
            Some((_, count)) => *count += how_many,
            None => self.figures.push((what.to_owned(), how_many)),
        }
    }

    /// Something is wrong.
    pub fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// Takes over what another part found.
    pub fn add(&mut self, other: Self) {
        for (what, how_many) in other.figures {
            self.count(&what, how_many);
        }
        self.problems.extend(other.problems);
    }

    /// How often something was counted.
    pub fn of(&self, what: &str) -> u64 {
        self.figures
            .iter()
            .find(|(name, _)| name == what)
            .map_or(0, |(_, count)| *count)
    }
}

/// Does the work on as many threads as there are processors; they share out among themselves what there is to do.
fn on_all_processors(work: impl Fn() -> Findings + Sync) -> Findings {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut findings = Findings::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        for thread in threads {
            match thread.join() {
                Ok(found) => findings.add(found),
                Err(_) => findings.problem("a thread panicked"),
            }
        }
    });
    findings
}

/// Simulates seeds from `first` on, until `wanted` of the events `kind` were counted. Each of `kinds` must have been counted at
/// least once.
fn over_seeds(
    first: u64,
    (kind, wanted): (&'static str, u64),
    kinds: &[&'static str],
    simulate: impl Fn(u64) -> Findings + Sync,
) -> Findings {
    let next = AtomicU64::new(first);
    let made = AtomicU64::new(0);
    let work = || {
        let mut findings = Findings::default();
        while made.load(Ordering::Relaxed) < wanted && findings.problems.len() < 20 {
            let found = simulate(next.fetch_add(1, Ordering::Relaxed));
            made.fetch_add(found.of(kind), Ordering::Relaxed);
            findings.add(found);
        }
        findings
    };
    let mut findings = on_all_processors(work);
    for kind in kinds {
        if findings.of(kind) == 0 {
            findings.problem(format!("it never came to this: {kind}"));
        }
    }
    findings
}

impl std::fmt::Display for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (what, how_many) in &self.figures {
            writeln!(f, "{how_many:>10}  {what}")?;
        }
        write!(f, "{:>10}  problems", self.problems.len())?;
        for problem in self.problems.iter().take(20) {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}
