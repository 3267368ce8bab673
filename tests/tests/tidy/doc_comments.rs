//! Doc comments say what a name does not: what goes in and out, a unit, a bound, an absence.

use super::words::{stem, words_of};
use super::{files, nothing_wrong};

/// Words that say nothing beside a name.
const FILLING: [&str; 17] = [
    "a", "all", "an", "are", "is", "it", "its", "of", "one", "that", "the", "them", "this", "to", "they", "their",
    "these",
];

/// Words that an item may have before its name.
const BEFORE_A_NAME: [&str; 13] = [
    "pub", "crate", "super", "self", "async", "const", "fn", "struct", "enum", "trait", "type", "static", "in",
];

/// The words of what is documented: its name in camel or snake case.
fn words_of_item(item: &str) -> Vec<String> {
    let mut names = item.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let name = names.find(|word| !word.is_empty() && !BEFORE_A_NAME.contains(word));
    let name = name.unwrap_or_default();
    let parts = name
        .split('_')
        .flat_map(|part| match part.contains(char::is_lowercase) {
            true => words_of(part),
            false => vec![part.to_lowercase()],
        });
    parts.map(|word| stem(&word)).collect()
}

/// Whether the text of a doc comment has no word that the item's name does not have.
fn repeats(doc: &str, item: &str) -> bool {
    let name = words_of_item(item);
    let words = doc.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).map(str::to_lowercase);
    let mut telling = words.filter(|word| !FILLING.contains(&word.as_str()));
    telling.all(|word| name.contains(&stem(&word)))
}

/// The doc comments of one line, each with its number and the line of what it documents. What has no full stop is the help
/// of a command, and is not counted.
fn short_comments(text: &str) -> Vec<(usize, &str, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let comment = |at: usize| lines.get(at).and_then(|line| line.strip_prefix("/// "));
    let mut found = Vec::new();
    for at in 0..lines.len() {
        let alone = (at == 0 || comment(at - 1).is_none()) && comment(at + 1).is_none();
        let Some(doc) = comment(at).filter(|doc| alone && doc.ends_with('.')) else {
            continue;
        };
        let mut rest = lines.iter().skip(at + 1);
        let item = rest.find(|line| !line.starts_with("#[")).copied();
        found.push((at + 1, doc, item.unwrap_or_default()));
    }
    found
}

/// Whether a file is a part of a crate that ships, and no test.
fn is_shipped(path: &str) -> bool {
    let is_test = ["tests/", "fuzz/"].iter().any(|start| path.starts_with(start)) || path.contains("/tests");
    path.contains("/src/") && !is_test
}

#[test]
fn doc_comments_do_not_repeat_a_name() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for file in files::rust().iter().filter(|file| is_shipped(&file.path)) {
        for (line, doc, item) in short_comments(file.text()) {
            seen += 1;
            if !doc.contains('`') && repeats(doc, item) {
                let path = &file.path;
                wrong.push(format!(
                    "{path}:{line}: `{doc}` says no more than `{item}`: say its unit, bound or absence, or leave it out"
                ));
            }
        }
    }
    assert!(seen > 2_000, "only {seen} doc comments are found");
    nothing_wrong(&wrong);
}

/// Beginnings of comments that only make sense to those who have read the comment before.
const POINTING_AWAY: [&str; 3] = ["The same,", "The same with ", "The same for "];

#[test]
fn doc_comments_can_be_read_alone() {
    let mut wrong = Vec::new();
    for file in files::rust().iter().filter(|file| is_shipped(&file.path)) {
        for (number, line) in (1..).zip(file.text().lines()) {
            let doc = line.trim().strip_prefix("/// ").unwrap_or_default();
            if doc.ends_with('.') && POINTING_AWAY.iter().any(|start| doc.starts_with(start)) {
                let path = &file.path;
                wrong.push(format!(
                    "{path}:{number}: `{doc}`: the same as what? an editor shows it alone"
                ));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn repeated_names_are_found() {
    for (doc, item) in [
        ("The key.", "pub key: Text,"),
        ("Its kind.", "pub kind: OpenWaitKind,"),
        ("The kind of a span.", "pub enum SpanKind {"),
        ("All of them.", "pub const ALL: [Self; 3] = ["),
        ("The next retry.", "pub(crate) struct NextRetry {"),
        ("Lists them.", "pub fn list(client: &Client) {"),
    ] {
        assert!(repeats(doc, item), "{doc} {item}");
    }
    for (doc, item) in [
        ("The name within the pool.", "pub key: Text,"),
        ("Why.", "pub failure: Failure,"),
        ("An operator decides.", "Manual,"),
    ] {
        assert!(!repeats(doc, item), "{doc} {item}");
    }
    let text = "/// A.\n#[derive(Debug)]\npub struct A;\n/// One\nhelp: bool,\n/// Two.\n/// Lines.\nlines: u8,";
    assert_eq!(short_comments(text), [(1, "A.", "pub struct A;")]);
}
