//! Foreign packages: their licences, where they come from, which we do without. `deny.toml` says the same to cargo-deny.

use super::metadata::PACKAGES;
use super::{files, nothing_wrong};

/// A list of `deny.toml`, line by line.
fn listed(name: &str) -> Vec<String> {
    let deny = files::ending("deny.toml")
        .into_iter()
        .find(|file| file.path == "deny.toml");
    let text = deny.map(|file| file.text().to_owned()).unwrap_or_default();
    let list = text
        .split_once(&format!("\n{name} = [\n"))
        .and_then(|(_, rest)| rest.split_once("\n]"));
    let lines = list.map(|(list, _)| list.lines().map(|line| line.trim().to_owned()).collect());
    lines.unwrap_or_default()
}

/// The text in the first quotes of a line.
fn quoted(line: &str) -> Option<String> {
    line.split('"').nth(1).map(str::to_owned)
}

/// The licences that `deny.toml` allows.
fn allowed() -> Vec<String> {
    listed("allow").iter().filter_map(|line| quoted(line)).collect()
}

/// The packages that `deny.toml` bans altogether, and those of which it allows one version only.
fn banned() -> (Vec<String>, Vec<String>) {
    let entries = listed("deny").into_iter().filter(|line| line.starts_with('{'));
    let (once, never): (Vec<String>, Vec<String>) = entries.partition(|line| line.contains("deny-multiple-versions"));
    let names = |lines: Vec<String>| lines.iter().filter_map(|line| quoted(line)).collect();
    (names(never), names(once))
}

/// Whether an expression of licences is met by those allowed: each part joined by `AND` has an allowed one among those
/// joined by `OR`. Parentheses stand in expressions only around what `OR` joins.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    expression.split(" AND ").all(|part| {
        let part = part
            .trim()
            .trim_start_matches('(')
            .trim_end_matches(')')
            .replace('/', " OR ");
        part.split(" OR ")
            .any(|license| allowed.iter().any(|allowed| allowed == license.trim()))
    })
}

#[test]
fn licences_are_among_those_allowed() {
    let allowed = allowed();
    assert!(allowed.len() > 3, "deny.toml has no list of licences");
    let wrong: Vec<String> = PACKAGES
        .values()
        .filter(|package| !is_met(&package.license, &allowed))
        .map(|package| format!("`{}`: `{}`", package.name, package.license))
        .collect();
    nothing_wrong(&wrong);
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Apache-2.0", true),
        ("Unlicensed/MIT", true),
        ("", false),
    ] {
        assert_eq!(
            is_met(expression, &["MIT".to_owned(), "Apache-2.0".to_owned()]),
            met,
            "{expression}"
        );
    }
}

/// The packages of a lock file: name and source, which is empty for one's own.
fn locked(text: &str) -> Vec<(String, String)> {
    text.split("[[package]]")
        .skip(1)
        .map(|entry| {
            let field = |key: &str| {
                let value = entry
                    .lines()
                    .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
                value.unwrap_or_default().trim_matches('"').to_owned()
            };
            (field("name"), field("source"))
        })
        .collect()
}

#[test]
fn packages_come_from_one_place_and_some_we_do_without() {
    let (never, once_denied) = banned();
    assert!(
        never.len() > 3 && !once_denied.is_empty(),
        "deny.toml has no list of bans"
    );
    const ONCE: [&str; 5] = ["tokio", "serde_json", "reqwest", "hyper", "ring"];
    let mut wrong = Vec::new();
    for lock in files::ending("Cargo.lock") {
        let packages = locked(lock.text());
        assert!(packages.len() > 10, "{}: no lock file", lock.path);
        for (name, source) in &packages {
            if !source.is_empty() && !source.ends_with("github.com/rust-lang/crates.io-index") {
                wrong.push(format!("{}: `{name}` comes from {source}", lock.path));
            }
            if never.contains(name) {
                wrong.push(format!("{}: `{name}` is one we do without", lock.path));
            }
        }
        let once_denied = once_denied.iter().map(String::as_str);
        for once in ONCE.into_iter().chain(once_denied) {
            let versions = packages.iter().filter(|(name, _)| name == once).count();
            if versions > 1 {
                wrong.push(format!("{}: {versions} versions of `{once}`", lock.path));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn no_dependency_may_have_any_version() {
    let mut wrong = Vec::new();
    for file in files::ending("Cargo.toml") {
        for (number, line) in (1..).zip(file.text().lines()) {
            if line.contains("\"*\"") && !line.starts_with('[') {
                wrong.push(format!("{}:{number}: say which version", file.path));
            }
        }
    }
    nothing_wrong(&wrong);
}
