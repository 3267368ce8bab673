//! The language reference and the decisions: each example is checked or run, each link leads somewhere, and what code
//! and manifests refer to is there.
//!
//! `UPDATE=1` writes the histories in the pages again.

#[path = "../src/snippets.rs"]
mod snippets;

use snippets::{Fence, Page};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::Value;
use starbridge_machine::history;
use starbridge_simulator::{Outcome, Simulation, TestFile, compare};
use starbridge_tests::{conformance, data};

fn pages(folder: &str) -> Vec<Page> {
    data::files(&data::root().join("docs").join(folder), ".md")
        .iter()
        .map(|path| Page::read(path).unwrap())
        .collect()
}

fn place(page: &Page, fence: &Fence) -> String {
    let file = page.path.strip_prefix(data::root()).unwrap_or(&page.path);
    format!("{}:{}", file.display(), fence.line)
}

#[test]
fn every_example_is_what_it_says() {
    let mut problems = Vec::new();
    let mut run = 0;
    for page in pages("language") {
        let mut history = String::new();
        let mut anew = Vec::new();
        for fence in &page.fences {
            let found = match fence.kind() {
                "json flow" => check(fence, "page.json", &fence.body),
                "yaml flow" => check(fence, "page.yaml", &fence.body),
                "json step" => check(fence, "page.json", &wrapped(&fence.body)),
                "json data" => serde_json::from_str::<serde_json::Value>(&fence.body)
                    .err()
                    .map(|error| vec![error.to_string()])
                    .unwrap_or_default(),
                "json test" => {
                    run += 1;
                    simulate(&page, fence, &mut history)
                }
                "text history" if fence.body == history => Vec::new(),
                "text history" => {
                    anew.push((fence, history.clone()));
                    vec![format!("the history is\n{history}")]
                }
                "sh" | "text" => Vec::new(),
                // These are run with the page.
                "console" => Vec::new(),
                "json" if fence.is_file() => Vec::new(),
                other => vec![format!("`{other}` is no kind of example")],
            };
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{}: {problem}", place(&page, fence))),
            );
        }
        if !anew.is_empty() && std::env::var_os("UPDATE").is_some() {
            std::fs::write(&page.path, rewritten(&page, &anew)).unwrap();
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(run >= 30, "{run} examples were run");
}

/// The page with other texts in some of its examples.
fn rewritten(page: &Page, anew: &[(&Fence, String)]) -> String {
    let mut lines: Vec<&str> = page.text.lines().collect();
    for (fence, body) in anew.iter().rev() {
        let from = fence.line - 1;
        lines.splice(from..from + fence.body.lines().count(), body.lines());
    }
    lines.join("\n") + "\n"
}

/// A step or a list of steps as a definition.
fn wrapped(steps: &str) -> String {
    let list = if steps.trim_start().starts_with('[') {
        steps.to_owned()
    } else {
        format!("[{steps}]")
    };
    format!("{{\"version\": \"v1\", \"type\": \"flow\", \"steps\": {list}}}")
}

fn check(fence: &Fence, name: &str, text: &str) -> Vec<String> {
    let checked = starbridge_fdl::check(&Source::new(name, text), &Limits::default());
    let codes: Vec<&str> = checked.diagnostics.iter().map(|found| found.code.as_str()).collect();
    if codes == fence.diagnostics {
        return Vec::new();
    }
    let told: Vec<String> = checked
        .diagnostics
        .iter()
        .map(|found| format!("{} {}: {}", found.code.as_str(), found.pointer, found.message))
        .collect();
    vec![format!(
        "expected the diagnostics {:?}, got {told:#?}",
        fence.diagnostics
    )]
}

/// Runs all cases of a test file; `history` becomes that of the first one.
fn simulate(page: &Page, fence: &Fence, history: &mut String) -> Vec<String> {
    let file = match TestFile::parse(&fence.body) {
        Ok(file) => file,
        Err(error) => return vec![error.to_string()],
    };
    let flows = match conformance::load(&file, &page.path) {
        Ok(flows) => flows,
        Err(error) => return vec![error],
    };
    let mut problems = Vec::new();
    for (index, case) in file.cases.iter().enumerate() {
        let limits = file.limits.over(Limits::default());
        let mut simulation = Simulation::new(flows.clone(), case.clone(), limits);
        match simulation.run() {
            Ok(outcome) => {
                problems.extend(
                    compare(&case.expect, &outcome)
                        .into_iter()
                        .chain(nothing_expected(case, &outcome)),
                );
            }
            Err(error) => problems.push(error.to_string()),
        }
        if index == 0 {
            *history = shown(&simulation);
        }
    }
    problems
}

/// An example that says nothing of how it ends shows nothing.
fn nothing_expected(case: &starbridge_simulator::Case, outcome: &Outcome) -> Option<String> {
    let silent = case.expect.status.is_none();
    silent.then(|| format!("`{}` expects no status; it was {}", case.name, outcome.status))
}

/// The history of the execution under test, one event a line: number, what caused it, where, type, detail. Of the first
/// event only the input is shown.
fn shown(simulation: &Simulation) -> String {
    let Some((flow, events)) = simulation.shard().flow("case").zip(simulation.histories().get("case")) else {
        return String::new();
    };
    let mut lines = String::new();
    for event in events {
        let written = history::write_event(flow, event);
        let text = |key: &str| written.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut place = String::new();
        for item in written.get("path").and_then(Value::as_array).unwrap().values() {
            let item = item.as_object().unwrap();
            let child = ["branch", "iteration", "arm"]
                .iter()
                .find_map(|key| item.get(key))
                .unwrap();
            let step = item.get("step").unwrap().to_plain_text();
            place += &format!("{step}[{}]/", child.to_plain_text());
        }
        place += if text("step").is_empty() { "-" } else { text("step") };
        let detail = written.get("detail").and_then(Value::as_object).unwrap();
        let detail = match (text("type"), detail.is_empty()) {
            ("ExecutionStarted", _) => format!(" {{\"input\":{}}}", detail.get("input").unwrap()),
            (_, true) => String::new(),
            _ => format!(" {}", Value::from(detail.clone())),
        };
        let rollback = if event.rollback { " (rollback)" } else { "" };
        lines += &format!(
            "{:>2} <{:<2} {place} {}{detail}{rollback}\n",
            event.id.0,
            event.caused_by.0,
            text("type")
        );
    }
    lines
}

#[test]
fn every_link_leads_somewhere() {
    let readme = Page::read(&data::root().join("README.md")).unwrap();
    for page in pages("").into_iter().chain([readme]) {
        for (line, link) in &page.links {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() {
                page.path.clone()
            } else {
                page.path.parent().unwrap().join(file)
            };
            let here = format!("{}:{line}: `{link}`", page.path.display());
            assert!(path.exists(), "{here} leads nowhere");
            if !anchor.is_empty() {
                let there = Page::read(&path).unwrap();
                assert!(there.anchors().contains(&anchor.to_owned()), "{here}: no such heading");
            }
        }
    }
}

/// Each folder of pages has one that leads to all others, and the first page of all leads to these.
#[test]
fn every_page_is_in_a_table_of_contents() {
    for (contents, folder) in [
        ("docs/README.md", "docs/guides"),
        ("docs/language/README.md", "docs/language"),
        ("docs/operations/README.md", "docs/operations"),
        ("README.md", "docs/README.md"),
        ("docs/README.md", "docs/language/README.md"),
        ("docs/README.md", "docs/operations/README.md"),
        ("docs/README.md", "docs/reliability.md"),
        ("docs/README.md", "docs/performance.md"),
    ] {
        let path = data::root().join(contents);
        let page = Page::read(&path).unwrap();
        let folder = data::root().join(folder);
        let all = if folder.is_dir() {
            data::files(&folder, ".md")
        } else {
            vec![folder]
        };
        assert!(!all.is_empty(), "{contents}");
        for other in all.iter().filter(|other| **other != path) {
            let leads = |link: &str| path.parent().unwrap().join(link) == *other;
            let linked = page.links.iter().any(|(_, link)| leads(link));
            assert!(linked, "{contents} does not lead to {}", other.display());
        }
    }
}

/// Code refers to the reference by section; each is a heading.
#[test]
fn every_section_that_code_names_is_there() {
    let headings: Vec<String> = pages("language")
        .iter()
        .flat_map(|page| page.headings.clone())
        .map(|heading| heading.to_lowercase())
        .collect();
    let mut named = 0;
    for folder in ["fdl/src", "interpreter", "hosts", "connectors", "stores"] {
        for path in data::files(&data::root().join(folder), ".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for section in sections(&text) {
                named += 1;
                assert!(headings.contains(&section), "{}: section \"{section}\"", path.display());
            }
        }
    }
    assert!(named >= 10);
}

/// The texts in quotes after `section` or `sections`.
fn sections(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("section") {
        let mut rest = text[at + 7..].trim_start_matches('s');
        while let Some(after) = rest
            .strip_prefix(" \"")
            .or_else(|| rest.strip_prefix(" and \""))
            .or_else(|| rest.strip_prefix(", \""))
        {
            let Some((name, next)) = after.split_once('"') else {
                break;
            };
            found.push(name.to_lowercase());
            rest = next;
        }
    }
    found
}

/// Decisions are numbered without gaps and say what each must.
#[test]
fn decisions_are_whole() {
    let pages = pages("decisions");
    for (number, page) in (1..).zip(&pages) {
        let name = page.path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            name.starts_with(&format!("{number:04}-")),
            "{name} should be number {number}"
        );
        assert!(
            page.text.starts_with(&format!("# {number}. ")),
            "{name}: its title has the number, too"
        );
        let parts: Vec<&str> = page.headings.iter().skip(1).map(String::as_str).collect();
        assert_eq!(parts, ["Context", "Decision", "Alternatives", "Consequences"], "{name}");
    }
    assert!(pages.len() >= 15);
}

/// Each crate from outside that the workspace uses has a decision that names it.
#[test]
fn every_dependency_has_a_decision() {
    let decisions: String = pages("decisions").into_iter().map(|page| page.text).collect();
    let manifest = std::fs::read_to_string(data::root().join("Cargo.toml")).unwrap();
    let dependencies = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .unwrap();
    let missing: Vec<&str> = dependencies
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.trim()))
        .filter(|name| !name.starts_with('#') && !name.starts_with("starbridge-"))
        .filter(|name| !decisions.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "no decision names {missing:?}");
}

/// Every code of a diagnostic that a page names has a page of its own.
#[test]
fn every_code_named_is_one() {
    for page in pages("language") {
        for (at, _) in page.text.match_indices("FDL0") {
            let code: String = page.text[at..].chars().take(7).collect();
            let known = starbridge_fdl::diagnostics::Code::parse(&code).is_some();
            assert!(known, "{}: {code}", page.path.display());
        }
    }
}
