//! What every store must do, this one does too.

use crate::on_both;
use crate::stand::Stand;
use starbridge_tests::stores::{Tried, cases};

on_both!(passes, passes_when_it_is_opened_anew_all_the_time);

fn suite(stand: &Stand, again: bool) {
    for (name, case) in cases() {
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

fn passes_when_it_is_opened_anew_all_the_time(stand: &Stand) {
    suite(stand, true);
}
