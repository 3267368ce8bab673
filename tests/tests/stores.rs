//! Every store passes the same suite, and answers random questions as the one in memory does.

use starbridge_memory::MemoryStore;
use starbridge_ports::Store;
use starbridge_sqlite::{Flush, Options, SqliteStore};
use starbridge_tests::stores::{Tried, cases, random};
use std::path::Path;

/// Without flushes: no test here pulls the plug.
fn open(path: &Path) -> Box<dyn Store> {
    let options = Options {
        flush: Flush::Never,
        ..Options::default()
    };
    Box::new(SqliteStore::open_with(path, &options).unwrap())
}

fn suite(again: bool, mut make: impl FnMut(&str) -> Box<dyn Fn() -> Box<dyn Store>>) {
    for (name, case) in cases() {
        let open = make(name);
        // Shown where one fails.
        println!("{name}");
        case(&mut Tried::new(&open, again));
    }
}

#[test]
fn memory_passes() {
    suite(false, |_| Box::new(|| Box::new(MemoryStore::new())));
}

#[test]
fn sqlite_passes() {
    let folder = tempfile::tempdir().unwrap();
    suite(false, |name| {
        let path = folder.path().join(name);
        Box::new(move || open(&path))
    });
}

#[test]
fn sqlite_passes_when_it_is_opened_anew_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    suite(true, |name| {
        let path = folder.path().join(name);
        Box::new(move || open(&path))
    });
}

#[test]
fn sqlite_answers_as_memory_does() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..8 {
        let path = folder.path().join(seed.to_string());
        let open = || open(&path);
        random::agree(seed, 150, &MemoryStore::new(), &mut Tried::new(&open, seed % 4 == 0));
    }
}
