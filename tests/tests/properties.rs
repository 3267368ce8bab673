//! Random flows in a random world: whatever happens, the promises of the machine hold.
//!
//! A failure prints one line that brings it back, and the smallest test file found that fails in the same way.
//! `PROPERTY_SEED` runs one seed, `PROPERTY_RUNS` so many, `PROPERTY_BUDGET` sets the size of the flows.

#[path = "properties/promises.rs"]
mod promises;
#[path = "../src/random.rs"]
mod random;

use promises::Promises;
use serde_json::Value;
use std::collections::BTreeMap;

/// Flows of an ordinary run.
const RUNS: u64 = 150;
/// Steps of a random flow.
const BUDGET: u32 = 24;

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn promises_hold_for_random_flows() {
    let budget = number("PROPERTY_BUDGET").unwrap_or(BUDGET);
    let seeds = match number("PROPERTY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROPERTY_RUNS").unwrap_or(RUNS),
    };
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds {
        let file = random::test_file(seed, budget);
        match Promises::of(&file, seed) {
            Ok(promises) => {
                let words = promises.outcome.events.iter().chain([&promises.outcome.status]);
                words.for_each(|word| *seen.entry(word.clone()).or_default() += 1);
            }
            Err(problem) => report(seed, budget, problem),
        }
    }
    // What random flows come to; `--nocapture` shows it.
    println!("{seen:#?}");
}

/// Halves the budget while the seed still fails, then takes out of the file what can go, and panics with what is left.
fn report(seed: u64, mut budget: u32, mut problem: String) -> ! {
    while budget > 1
        && let Err(smaller) = Promises::of(&random::test_file(seed, budget / 2), seed)
    {
        budget /= 2;
        problem = smaller;
    }
    let kind = kind_of(&problem).to_owned();
    let file = random::smaller(&random::test_file(seed, budget), &mut |file: &Value| {
        Promises::of(file, seed).is_err_and(|found| kind_of(&found) == kind)
    });
    if let Err(smallest) = Promises::of(&file, seed) {
        problem = smallest;
    }
    panic!(
        "{problem}\n\nPROPERTY_SEED={seed} PROPERTY_BUDGET={budget} cargo test -p starbridge-tests --test properties\n\n{}",
        serde_json::to_string_pretty(&file).unwrap_or_default()
    );
}

/// What a problem is about: its text up to the first colon.
fn kind_of(problem: &str) -> &str {
    problem.split(':').next().unwrap_or(problem)
}
