//! Words: what a newcomer searches for is found, and the names of public types are made of words that the documents use.

use super::{files, nothing_wrong, rust};
use starbridge_tests::data;
use std::collections::BTreeSet;

/// Rules that a newcomer wants to change: words of the row in ARCHITECTURE.md, and the word to
/// search for.
const RULES: [(&[&str], &str); 10] = [
    (&["retry", "back-off"], "delay"),
    (&["limit", "data"], "limit"),
    (&["foreach", "concurrency"], "concurrency"),
    (&["end", "task", "lease"], "lease"),
    (&["private", "addresses", "refused"], "private"),
    (&["stop", "reaches", "child"], "stop"),
    (&["idempotency", "key"], "idempotency key"),
    (&["daylight", "cron"], "daylight"),
    (&["fix", "diagnostic"], "fix"),
    (&["conditional", "turn", "DynamoDB"], "condition"),
];

/// The rows of "Where is what": what to change, and the files to look in.
fn rows(map: &str) -> Vec<(&str, Vec<&str>)> {
    let table = map.split_once("## Where is what").map_or("", |(_, rest)| rest);
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.map(|(what, places)| (what, places.split('`').skip(1).step_by(2).collect()))
        .collect()
}

#[test]
fn a_newcomer_finds_ten_rules_by_the_map_and_one_word() {
    let map = std::fs::read_to_string(data::root().join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&map);
    assert!(rows.len() > 20, "the table is not where it is expected");
    let mut wrong = Vec::new();
    for (words, search) in RULES {
        let of_rule = |what: &str| words.iter().all(|word| what.contains(word));
        let found: Vec<_> = rows.iter().filter(|(what, _)| of_rule(what)).collect();
        let [(what, places)] = found.as_slice() else {
            wrong.push(format!(
                "ARCHITECTURE.md has {} rows about {words:?}, not one",
                found.len()
            ));
            continue;
        };
        let first = places.first().copied().unwrap_or_default();
        let text = std::fs::read_to_string(data::root().join(first)).unwrap_or_default();
        if !text.to_lowercase().contains(search) {
            wrong.push(format!("{what}: {first} does not say `{search}`"));
        }
    }
    nothing_wrong(&wrong);
}

/// A word without its ending, so that `lease`, `leases`, `leased` and `leasing` are one.
pub fn stem(word: &str) -> String {
    let endings = ["ies", "ing", "ed", "es", "s", "y", "e", "d"];
    let short = endings
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() > 2));
    short.unwrap_or(word).to_owned()
}

/// The words of a name in camel case, in lower case.
pub fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        if letter.is_uppercase() || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

/// The public types and traits of a source.
fn public_types(source: &str) -> Vec<String> {
    let code = rust::code(source);
    let mut found = Vec::new();
    for line in code.lines() {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if words.next() == Some("pub") && matches!(words.next(), Some("struct" | "enum" | "trait" | "type")) {
            found.extend(words.next().map(str::to_owned));
        }
    }
    found
}

#[test]
fn public_types_of_the_interpreter_are_named_by_words_of_the_documents() {
    const DOCUMENTS: [&str; 5] = [
        "README.md",
        "ARCHITECTURE.md",
        "docs/language/",
        "docs/operations/",
        "docs/guides/",
    ];
    let documents = files::ending(".md").into_iter();
    let documents = documents.filter(|file| DOCUMENTS.iter().any(|start| file.path.starts_with(start)));
    let known: BTreeSet<String> = documents
        .flat_map(|file| {
            let text = file.text().to_lowercase();
            let words = text.split(|c: char| !c.is_alphabetic());
            words.map(stem).collect::<Vec<_>>()
        })
        .collect();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for file in files::rust() {
        let is_source = file.path.starts_with("interpreter/") && file.path.contains("/src/");
        for name in public_types(file.text()).into_iter().filter(|_| is_source) {
            seen += 1;
            for word in words_of(&name) {
                if !known.contains(&stem(&word)) {
                    let path = &file.path;
                    wrong.push(format!("{path}: no document says the `{word}` of `{name}`: use its field's word, or explain it in the glossary"));
                }
            }
        }
    }
    assert!(seen > 100, "only {seen} public types are found");
    nothing_wrong(&wrong);
}

#[test]
fn names_are_split_into_words_and_compared_without_endings() {
    assert_eq!(words_of("QueueHandle"), ["queue", "handle"]);
    for (left, right) in [("leases", "leased"), ("retries", "retry"), ("schedule", "scheduling")] {
        assert_eq!(stem(left), stem(right));
    }
    assert_ne!(stem("lease"), stem("least"));
    assert_eq!(
        public_types("pub struct A;\nstruct B;\npub(crate) enum C {}\n/// pub struct D\npub trait E<T> {}"),
        ["A", "E"]
    );
}
