//! This store meets the requirements for every store.

use crate::faults::Plan;
use crate::on_both;
use crate::stand::Stand;
use starbridge_memory::MemoryStore;
use starbridge_services::Kind;
use starbridge_tests::stores::{Tried, cases, random};

on_both!(passes,);

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

/// How many random runs of both sorts there are on each stand-in. Without it there is one of each sort: it takes the better part of a
/// minute.
const RUNS: &str = "STARBRIDGE_DYNAMODB_RUNS";

/// The stand-ins for random runs, and how many runs there are on each; `shorter` is the one that takes less for runs of this sort.
fn runs(shorter: Kind) -> (Vec<Stand>, u64) {
    match std::env::var(RUNS) {
        Ok(runs) => (
            [Kind::Ministack, Kind::Moto].map(Stand::start).into(),
            runs.parse().expect("a number of runs"),
        ),
        Err(_) => (vec![Stand::start(shorter)], 1),
    }
}

#[test]
fn answers_as_memory_does() {
    let (stands, runs) = runs(Kind::Moto);
    for (stand, seed) in stands.iter().flat_map(|stand| (0..runs).map(move |seed| (stand, seed))) {
        let table = stand.table();
        let open = || -> Box<dyn starbridge_ports::Store> { Box::new(stand.store(&table, "one")) };
        random::agree(seed, 40, &MemoryStore::new(), &mut Tried::new(&open, seed == 0));
    }
}

/// Requests are throttled, collide, and are done without an answer: what becomes of them is the same.
#[test]
fn answers_as_memory_does_through_faults() {
    let (stands, runs) = runs(Kind::Ministack);
    for (stand, seed) in stands
        .iter()
        .flat_map(|stand| (10..10 + runs).map(move |seed| (stand, seed)))
    {
        let table = stand.table();
        let plan = Plan::random(seed);
        let open =
            || -> Box<dyn starbridge_ports::Store> { Box::new(stand.store(&table, "one").with_faults(plan.hook())) };
        random::agree(seed, 40, &MemoryStore::new(), &mut Tried::new(&open, seed == 10));
        assert!(plan.faults() > 100, "{} faults", plan.faults());
    }
}
