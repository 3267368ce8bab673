//! Random flows in a random world: the promises of the machine hold, and the result is that of a
//! naive second interpreter.
//!
//! A failure prints one line that brings it back, and the smallest test file found that fails in the same way.
//! `PROPERTY_SEED` runs one seed, `PROPERTY_RUNS` so many, `PROPERTY_BUDGET` sets the size of the flows.

#[path = "properties/agreement.rs"]
mod agreement;
#[path = "../src/model.rs"]
mod model;
#[path = "properties/promises.rs"]
mod promises;
#[path = "../src/random.rs"]
mod random;

use promises::Promises;
use serde_json::Value;
use starbridge_machine::{Event, EventKind};
use starbridge_tests::conformance::operated;
use std::collections::BTreeMap;
use std::ops::Range;

/// Flows of an ordinary run.
const PROMISED: u64 = 150;
const COMPARED: u64 = 200;
const REDRIVEN: u64 = 100;
/// Steps of a random flow.
const BUDGET: u32 = 24;

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn budget() -> u32 {
    number("PROPERTY_BUDGET").unwrap_or(BUDGET)
}

fn seeds(ordinary: u64) -> Range<u64> {
    match number("PROPERTY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROPERTY_RUNS").unwrap_or(ordinary),
    }
}

#[test]
fn promises_hold_for_random_flows() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds(PROMISED) {
        match Promises::of(&random::test_file(seed, budget()), seed) {
            Ok(promises) => {
                let words = promises.outcome.events.iter().chain([&promises.outcome.status]);
                words.for_each(|word| *seen.entry(word.clone()).or_default() += 1);
            }
            Err(problem) => report(seed, problem, &|file| Promises::of(file, seed).map(|_| ())),
        }
    }
    // The figures of random flows; `--nocapture` shows them.
    println!("{seen:#?}");
}

#[test]
fn the_machine_agrees_with_the_model() {
    let mut compared = 0;
    for seed in seeds(COMPARED) {
        match agreement::compare(&random::test_file(seed, budget())) {
            Ok(comparable) => compared += u64::from(comparable),
            Err(problem) => report(seed, problem, &|file| agreement::compare(file).map(|_| ())),
        }
    }
    println!("{compared} compared");
}

#[test]
fn what_is_redriven_goes_on() {
    let mut seen: BTreeMap<usize, u64> = BTreeMap::new();
    for seed in seeds(REDRIVEN) {
        match operated::redriven(&random::test_file(seed, budget()), 3) {
            Ok(events) => {
                let redriven = |event: &&Event| matches!(event.detail, EventKind::ExecutionRedriven { .. });
                *seen.entry(events.iter().filter(redriven).count()).or_default() += 1;
            }
            Err(problem) => report(seed, problem, &|file| operated::redriven(file, 3).map(|_| ())),
        }
    }
    println!("{seen:?} times");
}

/// Halves the budget while the seed still fails, then takes out of the file what can go, and panics with what is left.
fn report(seed: u64, mut problem: String, checked: &dyn Fn(&Value) -> Result<(), String>) -> ! {
    let mut budget = budget();
    while budget > 1
        && let Err(smaller) = checked(&random::test_file(seed, budget / 2))
    {
        budget /= 2;
        problem = smaller;
    }
    let kind = kind_of(&problem).to_owned();
    let file = random::smaller(&random::test_file(seed, budget), &mut |file: &Value| {
        checked(file).is_err_and(|found| kind_of(&found) == kind)
    });
    if let Err(smallest) = checked(&file) {
        problem = smallest;
    }
    let file = agreement::expected(&file);
    panic!(
        "{problem}\n\nPROPERTY_SEED={seed} PROPERTY_BUDGET={budget} cargo test -p starbridge-tests --test properties\n\n{}",
        serde_json::to_string_pretty(&file).unwrap_or_default()
    );
}

/// The subject of a problem: its text up to the first colon or line.
fn kind_of(problem: &str) -> &str {
    problem.split([':', '\n']).next().unwrap_or(problem)
}
