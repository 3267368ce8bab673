//! Tidiness: what is promised about the project's own files, checked with the other tests.
//!
//! `UPDATE=1` writes the generated files again.

mod circles;
mod data;
mod dependencies;
mod doc_comments;
mod documents;
mod files;
mod generated;
mod imports;
mod language;
mod metadata;
mod modules;
mod purity;
mod reached;
mod rust;
mod shape;
mod units;
mod words;

/// Fails with all that is wrong at once.
fn nothing_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n  {}", wrong.len(), wrong.join("\n  "));
}
