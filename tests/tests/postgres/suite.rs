//! What every store must do, this one does too.

use crate::plans;
use crate::stand::{Stand, open};
use starbridge_memory::MemoryStore;
use starbridge_ports::{History, Listing, ShardSet, Store};
use starbridge_postgres::PostgresStore;
use starbridge_tests::stores::{Case, Tried, cases, random, start};

fn suite(stand: &Stand, again: bool, these: impl Iterator<Item = Case>) {
    for (name, case) in these {
        // More than a thousand starts: once is enough.
        if again && name == "names are found among many" {
            continue;
        }
        // Shown where one fails.
        println!("{name}");
        let settings = stand.settings();
        let open = || open(&settings);
        case(&mut Tried::new(&open, again));
    }
}

#[test]
fn passes() {
    let stand = Stand::start_with(&plans::SAID);
    suite(&stand, false, cases().into_iter());
    plans::are_those_of_full_tables(&stand);
}

// Two halves, because two run at once.

#[test]
fn half_passes_when_it_is_opened_anew_all_the_time() {
    suite(&Stand::start(), true, cases().into_iter().step_by(2));
}

#[test]
fn other_half_passes_when_it_is_opened_anew_all_the_time() {
    suite(&Stand::start(), true, cases().into_iter().skip(1).step_by(2));
}

#[test]
fn answers_as_memory_does() {
    let stand = Stand::start();
    for seed in 0..8 {
        let settings = stand.settings();
        let open = || open(&settings);
        // Opening takes longer than all that is done in between.
        let (again, steps) = if seed % 4 == 0 { (true, 30) } else { (false, 150) };
        random::agree(seed, steps, &MemoryStore::new(), &mut Tried::new(&open, again));
    }
}

#[test]
fn a_patient_handle_and_one_that_is_not_see_the_same() {
    let stand = Stand::start();
    let store = PostgresStore::open(&stand.settings()).unwrap();
    let patient: Box<dyn Store> = Box::new(store.patient());
    assert_eq!(patient.append(&[start("a")]), Ok(vec![]));
    assert_eq!(store.awake(&ShardSet::ALL), Ok(vec!["a".into()]));
    assert_eq!(store.counts(), patient.counts());
    assert!(store.is_new() && !store.is_away());
}
