//! Spans of time have a type, `Millis` or `Seconds` of `starbridge_flow::time`, so that no number is without its unit.

use super::purity::{sources_below, without_tests};
use super::{nothing_wrong, rust};

const FOLDERS: [&str; 6] = [
    "flow/src/",
    "fdl/src/",
    "interpreter/",
    "stores/",
    "connectors/",
    "aws/src/",
];

/// The file of the types themselves.
const OWN_FILE: &str = "flow/src/time.rs";

/// Last words of names that mean a span of time.
const SPANS: [&str; 13] = [
    "ms",
    "millis",
    "milliseconds",
    "seconds",
    "secs",
    "timeout",
    "interval",
    "lease",
    "heartbeat",
    "delay",
    "wait",
    "pause",
    "grace",
];

/// Types that a span must not have.
const BARE: [&str; 8] = ["u64", "u32", "u16", "i64", "i32", "u128", "i128", "usize"];

/// Numbers that others take in this unit, by file and name.
const CONTRACTS: [(&str, &str); 6] = [
    // The client of SQS takes whole seconds as `i32`.
    ("connectors/sqs/src/message.rs", "MAX_DELAY_SECONDS"),
    ("connectors/sqs/src/message.rs", "delay"),
    ("connectors/sqs/src/replies.rs", "WAIT_SECONDS"),
    ("connectors/sqs/src/replies.rs", "VISIBILITY_SECONDS"),
    ("connectors/sqs/src/replies.rs", "KEPT_BACK_SECONDS"),
    // `every` counts in seconds of the calendar, as the library for time zones does.
    ("interpreter/runtime/src/schedule/expression.rs", "YEAR_SECONDS"),
];

fn means_a_span(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('_').next().unwrap_or_default();
    SPANS.contains(&last) || name.ends_with("retry_after")
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether a bare number is the type here, also behind `&`, `mut` and `Option<`.
fn is_bare(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(inner) = ["&", "mut ", "Option<"]
        .iter()
        .find_map(|outer| rest.strip_prefix(outer))
    {
        rest = inner.trim_start();
    }
    let end = rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
    // `u64::MAX` is a value of a member.
    BARE.contains(&&rest[..end]) && !rest[end..].starts_with("::")
}

/// The word at the end of a text.
fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.rfind(|letter| !is_of_word(letter)).map_or(0, |at| at + 1);
    text.get(start..).unwrap_or_default()
}

/// The names of fields, constants, parameters and functions that are spans and have a bare number as type, each with its
/// place.
fn bare_spans(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(':') {
        let (before, behind) = (&code[..at], &code[at + 1..]);
        if means_a_span(last_word(before)) && is_bare(behind) {
            found.push((at, last_word(before)));
        }
    }
    for (at, _) in code.match_indices("fn ") {
        let signature = &code[at + 3..];
        let signature = &signature[..signature.find(['{', ';']).unwrap_or(signature.len())];
        let name = signature.split(['(', '<']).next().unwrap_or_default();
        let result = signature.rsplit_once("->").map(|(_, result)| result);
        if means_a_span(name) && result.is_some_and(is_bare) {
            found.push((at, name));
        }
    }
    found
}

#[test]
fn spans_of_time_have_a_type() {
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for file in sources_below(&FOLDERS) {
        let is_source = file.path.starts_with("aws/") || file.path.contains("/src/");
        if !is_source || file.path == OWN_FILE {
            continue;
        }
        let code = rust::code(file.text());
        let code = without_tests(&code);
        for (at, name) in bare_spans(code) {
            match CONTRACTS.iter().find(|of| **of == (file.path.as_str(), name)) {
                Some(contract) => used.push(*contract),
                None => {
                    let line = code[..at].matches('\n').count() + 1;
                    wrong.push(format!(
                        "{}:{line}: `{name}` is a span of time: make it `Millis`, or `Seconds` where a contract counts so",
                        file.path
                    ));
                }
            }
        }
    }
    let unused = CONTRACTS.iter().filter(|contract| !used.contains(contract));
    wrong.extend(unused.map(|(path, name)| format!("{path}: there is no `{name}` any more: take it off the list")));
    nothing_wrong(&wrong);
}

#[test]
fn bare_spans_are_found() {
    for (code, expected) in [
        (
            "struct A { timeout: u64, lease: Option<u32>, x: u64 }",
            vec!["timeout", "lease"],
        ),
        ("const MAX_WAIT: i64 = 3;", vec!["MAX_WAIT"]),
        ("fn f(delay_ms: &u64) {}", vec!["delay_ms"]),
        ("fn time_to_wait(&self) -> Option<u64> { 0 }", vec!["time_to_wait"]),
        ("A { timeout: u64::MAX, wait: Millis(3), delay: Duration }", Vec::new()),
        ("fn wait(&self) -> Millis { 0 }", Vec::new()),
        ("fn f(awaited: u64, timeouts: u64, most: u64) {}", Vec::new()),
    ] {
        let found: Vec<&str> = bare_spans(code).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, expected, "{code}");
    }
}
