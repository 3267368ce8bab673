//! The shape of the sources: their size, their names, what they open with, what they never say.

use super::{files, nothing_wrong, rust};

/// Lines of a source file.
const FILE_LINES: usize = 600;
/// Lines of a function.
const FUNCTION_LINES: usize = 70;

#[test]
fn files_and_functions_are_short() {
    let mut wrong = Vec::new();
    for file in files::rust() {
        let lines = file.text().lines().count();
        if lines > FILE_LINES {
            wrong.push(format!("{}: {lines} lines, more than {FILE_LINES}", file.path));
        }
        for function in rust::functions(&rust::code(file.text())) {
            if function.lines > FUNCTION_LINES {
                wrong.push(format!(
                    "{}:{}: `{}` has {} lines, more than {FUNCTION_LINES}",
                    file.path, function.line, function.name, function.lines
                ));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn no_file_is_named_after_nothing() {
    const EMPTY: [&str; 8] = [
        "utils", "util", "common", "helpers", "helper", "manager", "managers", "misc",
    ];
    let wrong: Vec<String> = files::rust()
        .into_iter()
        .filter(|file| file.path.split(['/', '.']).any(|part| EMPTY.contains(&part)))
        .map(|file| format!("{}: say what is in it", file.path))
        .collect();
    nothing_wrong(&wrong);
}

/// Whether cargo builds a crate from this file.
pub fn is_crate_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [.., "src", "lib.rs" | "main.rs" | "bin.rs"] => true,
        [.., "src", "bin", _] | [.., "src", "bin", _, "main.rs"] => true,
        [.., "tests" | "benches" | "examples", _, "main.rs"] => true,
        [crate_folder @ .., "tests" | "benches", _] => !crate_folder.contains(&"src"),
        _ => false,
    }
}

#[test]
fn every_crate_says_first_what_it_is() {
    let wrong: Vec<String> = files::rust()
        .into_iter()
        .filter(|file| is_crate_root(&file.path) && !file.text().starts_with("//!"))
        .map(|file| format!("{}: begin with `//!` and what the crate is", file.path))
        .collect();
    nothing_wrong(&wrong);
}

#[test]
fn every_library_shows_an_example_on_its_front_page() {
    let is_own = |path: &str| !["tests/", "fuzz/"].iter().any(|start| path.starts_with(start));
    let libraries: Vec<_> = files::rust()
        .into_iter()
        .filter(|file| file.path.ends_with("src/lib.rs") && is_own(&file.path))
        .collect();
    assert!(libraries.len() > 20, "only {} libraries are found", libraries.len());
    let wrong: Vec<String> = libraries
        .iter()
        .filter(|file| !file.text().contains("\n//! ```\n"))
        .map(|file| format!("{}: an example that runs shows how to use the crate", file.path))
        .collect();
    nothing_wrong(&wrong);
}

#[test]
fn nothing_is_left_to_do() {
    const CODE: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
    let comments = ["TODO", "FIXME"].map(|word| format!("{word}:"));
    let mut wrong = Vec::new();
    for file in files::rust() {
        let code = rust::code(file.text());
        for ((number, line), code) in (1..).zip(file.text().lines()).zip(code.lines()) {
            let left = CODE.iter().any(|word| code.contains(word)) || comments.iter().any(|word| line.contains(word));
            if left {
                wrong.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    let wrong: Vec<String> = files::ending("Cargo.toml")
        .into_iter()
        .filter(|file| file.path != "Cargo.toml" && !file.path.starts_with("fuzz/"))
        .filter(|file| !file.text().contains("[lints]\nworkspace = true"))
        .map(|file| format!("{}: `[lints] workspace = true` is missing", file.path))
        .collect();
    nothing_wrong(&wrong);
}

#[test]
fn the_core_crates_are_held_to_the_same_lints() {
    let text = |path: &str| {
        files::ending(path)
            .into_iter()
            .find(|file| file.path == path)
            .map(|file| file.text)
    };
    let interpreter = text("interpreter/clippy.toml");
    for other in ["flow/clippy.toml", "fdl/clippy.toml"] {
        assert!(
            interpreter.is_some() && interpreter == text(other),
            "{other} and interpreter/clippy.toml differ"
        );
    }
}
