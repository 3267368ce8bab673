//! This store meets the requirements for every store.

use crate::faults::Plan;
use crate::on_both;
use crate::stand::Stand;
use starbridge_memory::MemoryStore;
use starbridge_services::Kind;
use starbridge_tests::stores::{Tried, cases, random};

on_both!(passes, answers_as_memory_does, answers_as_memory_does_through_faults,);

fn suite(stand: &Stand, again: bool) {
    for (name, case) in cases() {
        // More than a thousand starts: once is enough, and where transactions copy the whole table they take minutes.
        if (again || stand.kind == Kind::Moto) && name == "names are found among many" {
            continue;
        }
        // Shown where one fails.
        println!("{name}");
        let table = stand.table();
        let open = || -> Box<dyn starbridge_ports::Store> { Box::new(stand.store(&table, "one")) };
        case(&mut Tried::new(&open, again));
    }
}

fn passes(stand: &Stand) {
    suite(stand, false);
}

#[test]
fn passes_when_it_is_opened_anew_all_the_time() {
    suite(&Stand::start(Kind::Ministack), true);
}

/// How many random runs there are on each stand-in: each takes the better part of a minute.
const RUNS: &str = "STARBRIDGE_DYNAMODB_RUNS";

fn seeds() -> u64 {
    let runs = std::env::var(RUNS).ok();
    runs.map_or(1, |runs| runs.parse().expect("a number of runs"))
}

fn answers_as_memory_does(stand: &Stand) {
    for seed in 0..seeds() {
        let table = stand.table();
        let open = || -> Box<dyn starbridge_ports::Store> { Box::new(stand.store(&table, "one")) };
        random::agree(seed, 40, &MemoryStore::new(), &mut Tried::new(&open, seed == 0));
    }
}

/// Requests are throttled, collide, and are done without an answer: what becomes of them is the same.
fn answers_as_memory_does_through_faults(stand: &Stand) {
    for seed in 10..10 + seeds() {
        let table = stand.table();
        let plan = Plan::random(seed);
        let open =
            || -> Box<dyn starbridge_ports::Store> { Box::new(stand.store(&table, "one").with_faults(plan.hook())) };
        random::agree(seed, 40, &MemoryStore::new(), &mut Tried::new(&open, seed == 10));
        assert!(plan.faults() > 100, "{} faults", plan.faults());
    }
}
