//! The memory of values as the system measures it. It is a program of its own, because the system
//! measures a whole process.

#![allow(clippy::disallowed_methods, reason = "what the system sees is in its files")]

use starbridge_flow::value::{ReadError, Value};

/// The bytes of each text.
const TEXT: usize = 12_000_000;

/// The most memory this process ever had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn no_text_takes_more_memory_than_it_may() {
    // The text exists twice while it is made, and so do the items of a large array while they move.
    // Allocators add at most half of that.
    let bound = peak() + (2 * TEXT + 2 * Value::most_memory(TEXT)) / 2 * 3;
    let mut refused = 0;
    for item in [
        r#"{"id":12345,"name":"abcdef","open":true,"tags":["new","large"]}"#,
        r#"{"":0}"#,
        "[]",
        "{}",
        "0",
        "[0]",
        r#""""#,
        r#""a long string, but not one of those that are kept once""#,
        r#"{"a":{"b":{"c":[[[0]]]}}}"#,
    ] {
        let text = format!("[{}0]", format!("{item},").repeat(TEXT / (item.len() + 1)));
        let read = Value::read_bounded(text.as_bytes(), Value::most_memory(text.len()));
        assert!(peak() < bound, "{item}: {} MB, bound {} MB", peak() >> 20, bound >> 20);
        match read {
            Ok(value) => assert_eq!(value.json_len(), text.len()),
            Err(ReadError::TooLarge { .. }) => refused += 1,
            Err(error) => panic!("{item}: {error}"),
        }
    }
    assert!(refused > 0, "none of them is too much");
    // Records of many members, each with a name of its own, have an index.
    let members: Vec<String> = (0..TEXT / 12).map(|n| format!("\"k{n}\":0")).collect();
    let text = format!("{{{}}}", members.join(","));
    drop(members);
    let read = Value::read_bounded(text.as_bytes(), Value::most_memory(text.len()));
    assert!(matches!(read, Err(ReadError::TooLarge { .. })));
    usual();
}

/// Usual values are read.
fn usual() {
    let item = r#"{"id":12345,"name":"abcdef","open":true,"tags":["new","large"]}"#;
    let text = format!("[{}0]", format!("{item},").repeat(TEXT / (item.len() + 1)));
    assert!(Value::read_bounded(text.as_bytes(), Value::most_memory(text.len())).is_ok());
    // As many items as a foreach may have, each of them small.
    let text = format!("[{}0]", "0,".repeat(999_999));
    assert!(Value::read_bounded(text.as_bytes(), Value::most_memory(text.len())).is_ok());
}
