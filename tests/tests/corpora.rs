//! The corpora of the fuzz targets, replayed: what once broke a promise, and what reaches far, must hold for ever.

use starbridge_tests::data;
use starbridge_tests::fuzzing::{TARGETS, read_checkpoint};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn corpora_hold() {
    let mut broken = Vec::new();
    for (target, run) in TARGETS {
        let files = data::files(&data::root().join("fuzz/corpus").join(target), "");
        assert!(files.len() >= 10, "{target}: only {} inputs in its corpus", files.len());
        for path in files {
            let bytes = std::fs::read(&path).unwrap();
            if catch_unwind(AssertUnwindSafe(|| run(&bytes))).is_err() {
                broken.push(format!(
                    "{target}: {}",
                    path.file_name().unwrap_or_default().to_string_lossy()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "broken by: {broken:#?}");
}

/// A corpus whose checkpoints are all refused would show nothing.
#[test]
fn checkpoints_of_the_corpus_are_read() {
    let files = data::files(&data::root().join("fuzz/corpus/checkpoint"), "");
    let read = |path: &&std::path::PathBuf| read_checkpoint(&std::fs::read(path).unwrap()).is_some();
    let count = files.iter().filter(read).count();
    assert!(count >= 10, "only {count} of {} are read", files.len());
}

#[test]
fn every_target_has_its_corpus() {
    let names: Vec<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut folders: Vec<String> = std::fs::read_dir(data::root().join("fuzz/corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(folders, names);
}
