//! No orphans: every Rust file is built, because cargo begins with it or a `mod` leads to it.

use super::{files, nothing_wrong, rust, shape};
use std::collections::{BTreeMap, BTreeSet};

/// A module that a file declares without a block.
#[derive(Debug, PartialEq)]
struct Declared {
    name: String,
    /// The folders of the modules with a block around it, each with `/`.
    inside: String,
    /// The file that `#[path]` gives it.
    path: Option<String>,
}

/// The modules that a source declares in files of their own.
fn declared(source: &str) -> Vec<Declared> {
    let code = rust::code(source);
    let mut path = None;
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut found = Vec::new();
    for (line, code) in source.lines().zip(code.lines()) {
        let line = line.trim();
        if let Some(given) = line.strip_prefix("#[path = \"") {
            path = given.split('"').next().map(str::to_owned);
        }
        let words: Vec<&str> = code.trim().trim_end_matches(';').split_whitespace().collect();
        match words.as_slice() {
            [.., "mod", name] if code.trim().ends_with(';') => found.push(Declared {
                name: (*name).to_owned(),
                inside: open.iter().map(|(name, _)| format!("{name}/")).collect(),
                path: path.take(),
            }),
            [.., "mod", name, "{"] => open.push(((*name).to_owned(), depth + 1)),
            [first, ..] if !first.starts_with('#') => path = None,
            _ => {}
        }
        depth = (depth + code.matches('{').count()).saturating_sub(code.matches('}').count());
        open.retain(|(_, at)| *at <= depth);
    }
    found
}

/// A path without `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The files in which a module may stand that `file` declares. A crate's root, `mod.rs` and a file with a `#[path]` have their
/// modules beside them, others in a folder of their name.
fn candidates(file: &str, beside: bool, module: &Declared) -> Vec<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Declared { name, inside, path } = module;
    let own = if beside { folder } else { file.trim_end_matches(".rs") };
    match path {
        Some(path) if inside.is_empty() => vec![plain(&format!("{folder}/{path}"))],
        Some(path) => vec![plain(&format!("{own}/{inside}{path}"))],
        None => ["{name}.rs", "{name}/mod.rs"]
            .map(|form| plain(&format!("{own}/{inside}{}", form.replace("{name}", name))))
            .into(),
    }
}

/// The files that a manifest names as targets.
fn targets(manifest: &files::File) -> Vec<String> {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let paths = manifest
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("path = \""));
    let paths = paths.filter_map(|rest| rest.split('"').next());
    paths.map(|path| plain(&format!("{folder}{path}"))).collect()
}

/// The files that cargo begins with, or that a `mod` leads to.
fn reached(sources: &BTreeMap<String, String>, roots: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut open: Vec<(String, bool)> = roots.into_iter().map(|root| (root, true)).collect();
    let mut seen = BTreeSet::new();
    while let Some((file, beside)) = open.pop() {
        let Some(source) = sources.get(&file).filter(|_| seen.insert((file.clone(), beside))) else {
            continue;
        };
        for module in declared(source) {
            for path in candidates(&file, beside, &module) {
                let beside = module.path.is_some() || path.ends_with("/mod.rs");
                open.push((path, beside));
            }
        }
    }
    seen.into_iter().map(|(file, _)| file).collect()
}

#[test]
fn every_source_file_is_reached() {
    let sources: BTreeMap<String, String> = files::rust()
        .into_iter()
        .map(|file| (file.path.clone(), file.text().to_owned()))
        .collect();
    let named = files::ending("Cargo.toml").into_iter().flat_map(|file| targets(&file));
    let roots = sources.keys().filter(|path| shape::is_crate_root(path)).cloned();
    let reached = reached(&sources, roots.chain(named));
    assert!(reached.len() > 400, "only {} files are reached", reached.len());
    let orphans = sources.keys().filter(|path| !reached.contains(*path));
    nothing_wrong(
        &orphans
            .map(|path| format!("{path}: no `mod` leads here"))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn modules_are_found_where_rust_looks_for_them() {
    let sources = [
        (
            "a/src/lib.rs",
            "mod one;\n#[cfg(test)]\n#[path = \"two/tests.rs\"]\nmod tests;\nmod inline {\n    mod under;\n}\nmod after;\n// mod gone;\n",
        ),
        (
            "a/src/one.rs",
            "pub(crate) mod inner;\nconst TEXT: &str = \"\nmod text;\n\";\n",
        ),
        ("a/src/one/inner.rs", ""),
        ("a/src/two/tests.rs", "mod beside;"),
        ("a/src/two/beside.rs", ""),
        ("a/src/after.rs", ""),
        ("a/src/inline/under.rs", ""),
        ("a/src/under.rs", ""),
        ("a/src/gone.rs", ""),
        ("a/src/inner.rs", ""),
        ("a/src/one/text.rs", ""),
        ("a/src/two/tests/beside.rs", ""),
    ];
    let sources: BTreeMap<String, String> = sources.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let reached = reached(&sources, ["a/src/lib.rs".to_owned()]);
    let expected = [
        "after.rs",
        "inline/under.rs",
        "lib.rs",
        "one.rs",
        "one/inner.rs",
        "two/beside.rs",
        "two/tests.rs",
    ];
    assert_eq!(reached, expected.map(|path| format!("a/src/{path}")).into());
}
