//! The language and the machine know no clock, no files, no settings, no chance, and print nothing.

use super::files::{self, File};
use super::{nothing_wrong, rust};
use std::collections::BTreeSet;

const PURE: [&str; 4] = [
    "flow/src/",
    "fdl/src/",
    "interpreter/machine/src/",
    "interpreter/ports/src/",
];

/// Names that would make them impure. Ports may name futures: their traits promise some.
const IMPURE: [&str; 18] = [
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::io::std",
    "rand::",
    "getrandom",
    "RandomState",
    "Uuid",
    "tokio",
    "println!",
    "print!",
    "async fn",
];

/// The code without a module of tests at its end.
pub fn without_tests(code: &str) -> &str {
    let modules =
        ["mod tests {", "pub mod tests {", "pub(crate) mod tests {"].map(|module| format!("#[cfg(test)]\n{module}"));
    let end = modules.iter().filter_map(|module| code.find(module.as_str())).min();
    &code[..end.unwrap_or(code.len())]
}

/// The folder in which a module's own modules stand.
fn folder_of_modules(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
    }
}

/// Files that are modules for tests only, and folders of such.
fn test_modules(sources: &[File]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in sources {
        let code = rust::code(file.text());
        for (at, mark) in code.match_indices("#[cfg(test)]") {
            let declared = code[at + mark.len()..]
                .trim_start()
                .split(';')
                .next()
                .unwrap_or_default();
            let name = declared.rsplit_once("mod ").map_or("", |(_, name)| name.trim());
            if !name.is_empty() && !name.contains(char::is_whitespace) {
                found.insert(format!("{}/{name}", folder_of_modules(&file.path)));
            }
        }
    }
    found
}

/// The sources below these folders, but those of tests.
pub fn sources_below(folders: &[&str]) -> Vec<File> {
    let mut sources = files::rust();
    sources.retain(|file| folders.iter().any(|folder| file.path.starts_with(folder)));
    assert!(sources.len() > 50, "the sources are not where they are expected");
    let tests = test_modules(&sources);
    sources.retain(|file| {
        let module = file.path.trim_end_matches(".rs");
        let is_below = |test: &String| module == test || module.starts_with(&format!("{test}/"));
        !tests.iter().any(is_below)
    });
    sources
}

/// Allowed uses of chance: nothing visible depends on them.
const HARMLESS: [(&str, &str); 1] = [
    // Members keep their order. The hash only says where to look for them, and no code outside may
    // depend on it.
    ("flow/src/value/members.rs", "RandomState"),
];

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for file in &sources_below(&PURE) {
        let code = rust::code(file.text());
        for (number, line) in (1..).zip(without_tests(&code).lines()) {
            let harmless = |word: &str| HARMLESS.contains(&(file.path.as_str(), word));
            for word in IMPURE.iter().filter(|word| says(line, word) && !harmless(word)) {
                wrong.push(format!("{}:{number}: `{word}`", file.path));
            }
        }
    }
    nothing_wrong(&wrong);
}

/// Whether a line has that word, and not only as the end of a longer one.
fn says(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}
