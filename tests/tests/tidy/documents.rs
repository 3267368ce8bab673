//! Documents: what they name exists, and nothing says where it was written.

use super::files::{self, File};
use super::nothing_wrong;
use starbridge_tests::data;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn decisions_have_numbers_of_their_own() {
    let mut numbers: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for file in files::ending(".md") {
        let Some(name) = file.path.strip_prefix("docs/decisions/") else {
            continue;
        };
        let Some((number, _)) = name.split_once('-').filter(|(number, _)| number.len() == 4) else {
            if name != "README.md" {
                wrong.push(format!("{}: a decision is named `NNNN-what.md`", file.path));
            }
            continue;
        };
        let head = number.parse::<u32>().map(|number| format!("# {number}. "));
        if !head.is_ok_and(|head| file.text().starts_with(&head)) {
            wrong.push(format!(
                "{}: the title must begin with its number, `# {number}. …`",
                file.path
            ));
        }
        if let Some(other) = numbers.insert(number.to_owned(), file.path.clone()) {
            wrong.push(format!("{} and {other} have one number", file.path));
        }
    }
    assert!(!numbers.is_empty());
    nothing_wrong(&wrong);
}

/// The text outside of fences.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let mark = line.trim_start().starts_with("```");
        fenced ^= mark;
        !fenced && !mark
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The relative links of a Markdown text, without the part after `#`.
fn links(text: &str) -> Vec<String> {
    let targets = prose(text);
    let targets = targets.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.split('#').next().unwrap_or_default().to_owned())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// Words that are paths of the project: they begin with one of its folders.
fn named_paths(text: &str) -> Vec<String> {
    const FOLDERS: [&str; 13] = [
        "aws/",
        "connectors/",
        "docs/",
        "examples/",
        "fdl/",
        "flow/",
        "fuzz/",
        "hosts/",
        "interpreter/",
        "schemas/",
        "stores/",
        "tests/",
        "xtask/",
    ];
    text.split(|c: char| !(c.is_alphanumeric() || "/._-…*{}".contains(c)))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| !word.contains(['…', '*', '{', '}']) && !word.contains("NNNN") && !word.contains("nnnn"))
        .map(|word| word.trim_end_matches(['.', '/', '-']).to_owned())
        .collect()
}

#[test]
fn what_documents_name_exists() {
    let root = data::root();
    let mut wrong = BTreeSet::new();
    for file in files::ending(".md") {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for link in links(file.text()) {
            if !root.join(folder).join(&link).exists() {
                wrong.insert(format!("{}: there is no {link}", file.path));
            }
        }
        if !file.path.contains('/') {
            for path in named_paths(file.text()) {
                if !root.join(&path).exists() {
                    wrong.insert(format!("{}: there is no {path}", file.path));
                }
            }
        }
    }
    nothing_wrong(&wrong.into_iter().collect::<Vec<_>>());
}

/// The folder of a row of the code map, and the names in it that are those of modules: in backquotes, without a `/`.
fn modules_named(row: &str) -> Option<(&str, Vec<&str>)> {
    let mut columns = row.strip_prefix("| `")?.split(" | ");
    let folder = columns.next()?.strip_suffix("/`")?;
    let quoted = columns.nth(1)?.split('`').skip(1).step_by(2);
    Some((folder, quoted.filter(|name| !name.contains('/')).collect()))
}

#[test]
fn the_code_map_names_modules_that_exist() {
    let root = data::root();
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (folder, names) in map.lines().filter_map(modules_named) {
        if !["aws", "connectors/", "hosts/"].iter().any(|of| folder.starts_with(of)) {
            continue;
        }
        for name in names {
            seen += 1;
            let module = root.join(folder).join("src").join(name);
            if !module.is_dir() && !module.with_extension("rs").exists() {
                wrong.push(format!("ARCHITECTURE.md: `{folder}/` has no module `{name}`"));
            }
        }
    }
    assert!(seen > 30, "the code map is not where it is expected");
    nothing_wrong(&wrong);
}

#[test]
fn every_example_has_a_readme() {
    let paths: Vec<String> = files::all().into_iter().map(|file| file.path).collect();
    let folders = paths
        .iter()
        .filter_map(|path| path.strip_prefix("examples/")?.split_once('/'));
    let mut wrong: Vec<String> = folders
        .map(|(folder, _)| format!("examples/{folder}/README.md"))
        .filter(|readme| !paths.contains(readme))
        .collect();
    wrong.dedup();
    nothing_wrong(&wrong);
}

/// Texts that reveal the machine on which a file was written. They are spelled in pieces, so that
/// this file does not contain them.
fn betraying() -> Vec<String> {
    let homes = ["root", "home", "work", "Users", "private/var"].map(|home| format!("/{home}/"));
    let hosts = [
        "index.crates",
        "static.crates",
        "registry.npm",
        "pypi",
        "proxy.golang",
        "mirrors",
    ]
    .map(|host| format!("{host}."));
    let words = [format!("../{}", "shared"), format!("artifac{}", "tory")];
    homes.into_iter().chain(hosts).chain(words).collect()
}

#[test]
fn nothing_says_where_it_was_written() {
    let betraying = betraying();
    let mut wrong = Vec::new();
    for File { path, text } in files::all() {
        for (number, line) in (1..).zip(text.as_deref().unwrap_or_default().lines()) {
            for word in betraying.iter().filter(|word| line.contains(word.as_str())) {
                wrong.push(format!("{path}:{number}: {word}"));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn what_is_run_by_its_name_can_be_run() {
    let script = data::root().join(".ci/run");
    let text = std::fs::read_to_string(&script).unwrap();
    assert!(text.starts_with("#!/usr/bin/env bash\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&script).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, ".ci/run must be executable");
    }
}
