//! Fixtures, pages and the editor's schema: every code has an explanation and an example, and is
//! found in the right place.
//!
//! `UPDATE=1` writes the expectations beside the fixtures again.

#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its data, and writes it anew when told to"
)]

use starbridge_fdl::diagnostics::{Code, Diagnostic, Fix, Severity};
use starbridge_fdl::{check, check_where};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// The default limits, changed as `settings` says: `steps=2`.
fn limits(settings: &str) -> Limits {
    let mut limits = Limits::default();
    for setting in settings.split_whitespace() {
        let (name, value) = setting.split_once('=').expect(setting);
        let value: usize = value.parse().expect(setting);
        match name {
            "steps" => limits.steps = value,
            "nesting" => limits.nesting = value,
            "branches" => limits.branches = value,
            "data_depth" => limits.data_depth = value,
            "definition_bytes" => limits.definition_bytes = value,
            "wait_days" => limits.wait_days = value as u64,
            _ => panic!("no limit is called {name}"),
        }
    }
    limits
}

struct Fixture {
    name: String,
    source: Source,
    limits: Limits,
    expected: PathBuf,
}

impl Fixture {
    fn code(&self) -> Code {
        Code::parse(&self.name[..7]).unwrap_or_else(|| panic!("{}: no such code", self.name))
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        checked(&self.source, &self.limits)
    }
}

fn fixtures() -> Vec<Fixture> {
    files(&project("tests/diagnostics"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "json" || ext == "yaml"))
        .map(|path| {
            let settings = path.with_extension("limits");
            Fixture {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                source: Source::new(path.file_name().unwrap().to_string_lossy(), read(&path)),
                limits: limits(&if settings.exists() {
                    read(&settings)
                } else {
                    String::new()
                }),
                expected: path.with_extension("expected"),
            }
        })
        .collect()
}

/// Checks a source and asserts what holds for every text.
fn checked(source: &Source, limits: &Limits) -> Vec<Diagnostic> {
    // A resource map whose target does not exist, for the one code that needs a map.
    let mapped = |resource: &str| {
        let known = resource.starts_with("http:");
        (!known).then(|| format!("nothing answers to `{resource}`"))
    };
    // What needs a map wherever the flow runs is reported without one.
    let with_map = source.name().contains("FDL0704") && !source.name().contains("FDL0704-without-map");
    let answers: Option<starbridge_fdl::ResourceCheck<'_>> = with_map.then_some(&mapped);
    let checked = check_where(source, limits, answers);
    let sound = checked
        .diagnostics
        .iter()
        .all(|found| found.severity == Severity::Warning);
    assert_eq!(
        checked.flow.is_some(),
        sound,
        "{}: a flow if and only if no error",
        source.name()
    );
    let starts: Vec<usize> = checked.diagnostics.iter().map(|found| found.span.start).collect();
    assert!(starts.is_sorted(), "{}: not in order of place", source.name());
    for found in &checked.diagnostics {
        let spans = found.labels.iter().map(|label| label.span).chain([found.span]);
        for span in spans.chain(found.fix.iter().map(|fix| fix.span)) {
            assert!(
                source.text().get(span.start..span.end).is_some(),
                "{}: {span:?} {found:?}",
                source.name()
            );
        }
        assert!(!found.message.ends_with('.'), "{}", found.message);
        let help = found.help.iter().all(|help| !help.ends_with('.'));
        assert!(help, "{:?}", found.help);
    }
    checked.diagnostics
}

fn rendered(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for found in diagnostics {
        let place = source.line_column(found.span.start);
        let pointer = if found.pointer.is_empty() { "/" } else { &found.pointer };
        let help = found
            .help
            .as_ref()
            .map(|help| format!(" | help: {help}"))
            .unwrap_or_default();
        text += &format!(
            "{} {} {}:{} {pointer} {}{help}\n",
            found.code,
            found.severity.as_str(),
            place.line,
            place.column,
            found.message
        );
    }
    text
}

#[test]
fn fixtures_yield_what_stands_beside_them() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = String::new();
    for fixture in fixtures() {
        let found = rendered(&fixture.source, &fixture.diagnostics());
        if update {
            fs::write(&fixture.expected, &found).unwrap();
        }
        let expected = if fixture.expected.exists() {
            read(&fixture.expected)
        } else {
            String::new()
        };
        if found != expected {
            wrong += &format!("{}\nexpected:\n{expected}found:\n{found}\n", fixture.name);
        }
        if !found.contains(fixture.code().as_str()) {
            wrong += &format!("{} does not yield its code but\n{found}\n", fixture.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_code_has_a_fixture_and_every_file_a_use() {
    let shown: BTreeSet<&str> = fixtures().iter().map(|fixture| fixture.code().as_str()).collect();
    let missing: Vec<&str> = Code::ALL
        .iter()
        .map(|code| code.as_str())
        .filter(|code| !shown.contains(code))
        .collect();
    assert!(missing.is_empty(), "no fixture: {missing:?}");
    for path in files(&project("tests/diagnostics")) {
        let used = path.extension().is_some_and(|ext| ext == "json" || ext == "yaml")
            || path.with_extension("json").exists()
            || path.with_extension("yaml").exists();
        assert!(used, "{} belongs to nothing", path.display());
    }
    for path in files(&project("docs/diagnostics")) {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            stem == "README" || Code::parse(&stem).is_some(),
            "{} is no code's page",
            path.display()
        );
    }
}

/// The fences of a page: the section, language, limits and text of each.
fn fences(page: &str) -> Vec<(String, String, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.to_owned(), String::new())),
            (None, None) => section = line.strip_prefix("## ").map_or(section, str::to_owned),
            (Some(_), Some(_)) => {
                let (info, text) = open.take().unwrap();
                let (language, settings) = info.split_once(' ').unwrap_or((&info, ""));
                found.push((section.clone(), language.to_owned(), settings.to_owned(), text));
            }
            (Some((_, text)), None) => *text += &format!("{line}\n"),
        }
    }
    found
}

#[test]
fn pages_explain_and_their_examples_are_true() {
    let mut wrong = String::new();
    for &code in Code::ALL {
        let page = code.page();
        let head = format!("# {code}: {}\n", code.title());
        assert!(page.starts_with(&head), "{code}: the page must begin with {head}");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["What", "Why", "Example", "Instead"], "{code}");
        let fences = fences(page);
        for section in ["Example", "Instead"] {
            assert!(
                fences.iter().any(|fence| fence.0 == section),
                "{code}: nothing shown under {section}"
            );
        }
        for (section, language, settings, text) in fences {
            let source = Source::new(format!("{code}.{language}"), text);
            let found = checked(&source, &limits(&settings));
            let good = match section.as_str() {
                "Example" => !found.is_empty() && found.iter().all(|found| found.code == code),
                _ => found.is_empty(),
            };
            if !good {
                wrong += &format!("{code} {section}:\n{}\n", rendered(&source, &found));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn applied(text: &str, fix: &Fix) -> String {
    format!(
        "{}{}{}",
        &text[..fix.span.start],
        fix.replacement,
        &text[fix.span.end..]
    )
}

#[test]
fn a_fix_removes_its_diagnostic() {
    let mut count = 0;
    for fixture in fixtures() {
        for found in fixture.diagnostics() {
            let Some(fix) = &found.fix else { continue };
            let fixed = Source::new(fixture.name.as_str(), applied(fixture.source.text(), fix));
            let of_the_code = |list: &[Diagnostic]| list.iter().filter(|each| each.code == found.code).count();
            let before = of_the_code(&fixture.diagnostics());
            let after = checked(&fixed, &fixture.limits);
            assert_eq!(
                of_the_code(&after),
                before - 1,
                "{}: {}\n{}{}",
                fixture.name,
                fix.title,
                fixed.text(),
                rendered(&fixed, &after)
            );
            count += 1;
        }
    }
    assert!(count >= 15, "only {count} fixes are shown");
}

/// The definitions of the conformance cases, each with the limits of its file.
fn conformance_flows() -> Vec<(String, String, Limits)> {
    let mut flows = Vec::new();
    for path in files(&project("tests/conformance")) {
        if !path.to_string_lossy().ends_with(".test.json") {
            continue;
        }
        let text = read(&path);
        let file: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut limits = Limits::default();
        if let Some(days) = file["limits"]["waitDays"].as_u64() {
            limits.wait_days = days;
        }
        let children = file["flows"].as_object().into_iter().flatten();
        for (name, flow) in children.chain([(&String::new(), &file["flow"])]) {
            if flow.is_object() {
                let text = serde_json::to_string_pretty(flow).unwrap();
                flows.push((format!("{} {name}", path.display()), text, limits.clone()));
            }
        }
    }
    flows
}

/// Conformance flows with an intentional error: they show what a rule protects from.
const ERRORS_ON_PURPOSE: [(&str, Code); 1] = [("data/flow-input-mappings.test.json", Code::NoLocalHere)];

#[test]
fn conformance_flows_have_no_errors() {
    let mut wrong = String::new();
    for (name, text, limits) in conformance_flows() {
        let source = Source::new("flow.json", text);
        let errors: Vec<Diagnostic> = checked(&source, &limits)
            .into_iter()
            .filter(|found| found.severity == Severity::Error)
            .filter(|found| {
                !ERRORS_ON_PURPOSE
                    .iter()
                    .any(|(file, code)| name.contains(file) && found.code == *code)
            })
            .collect();
        if !errors.is_empty() {
            wrong += &format!("{name}\n{}", rendered(&source, &errors));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn json_and_yaml_of_one_document_are_the_same_flow() {
    let json = "{\"version\":\"v1\",\"type\":\"flow\",\"steps\":[{\"type\":\"pass\",\"name\":\"a\"}]}";
    let yaml = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: a\n";
    let flow = |name: &str, text: &str| check(&Source::new(name, text), &Limits::default()).flow.unwrap();
    let (json, yaml) = (flow("a.json", json), flow("a.yaml", yaml));
    assert_eq!(json.hash, yaml.hash);
    assert_eq!(json.hash.len(), 64);
    assert_eq!(json.definition, yaml.definition);
}

#[test]
fn broken_texts_never_break_the_checker() {
    let texts: BTreeMap<String, String> = fixtures()
        .into_iter()
        .filter(|fixture| fixture.source.text().len() < 1500)
        .map(|fixture| (fixture.name, fixture.source.text().to_owned()))
        .collect();
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    let pieces = [
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "1",
        "-",
        "\"steps\"",
        "\"$input.\"",
        " ",
        "é",
        "true",
    ];
    for (name, text) in &texts {
        for _ in 0..40 {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let a = boundaries[random(boundaries.len())];
            let b = boundaries[random(boundaries.len())].clamp(a, a + 40.min(text.len() - a));
            let b = (b..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap();
            let mutated = format!("{}{}{}", &text[..a], pieces[random(pieces.len())], &text[b..]);
            checked(&Source::new(name.as_str(), mutated), &Limits::default());
        }
    }
}

/// Fixtures of group 01 that the editor's schema accepts: it neither resolves references nor reads
/// patterns.
const UNSEEN_BY_THE_SCHEMA: [&str; 4] = [
    // It counts characters, and a path or template may be longer than what it makes.
    "FDL0109-key.json",
    "FDL0118-pattern.json",
    "FDL0119.json",
    "FDL0119-bundled.json",
];

#[test]
fn the_schema_for_editors_agrees() {
    let schema: serde_json::Value = serde_json::from_str(&read(&project("schemas/flow.schema.json"))).unwrap();
    let validator = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .build(&schema)
        .unwrap();
    let value = |source: &Source| starbridge_flow::syntax::parse(source).root.map(|root| root.to_value());
    let mut wrong = String::new();
    let mut good: Vec<(String, Source)> = conformance_flows()
        .into_iter()
        .map(|(name, text, _)| (name, Source::new("flow.json", text)))
        .collect();
    for &code in Code::ALL {
        for (section, language, _, text) in fences(code.page()) {
            if section == "Instead" {
                good.push((code.to_string(), Source::new(format!("{code}.{language}"), text)));
            }
        }
    }
    for (name, source) in &good {
        let value = serde_json::Value::from(&value(source).unwrap());
        for error in validator.iter_errors(&value) {
            wrong += &format!("{name} {}: {error}\n", error.instance_path());
        }
    }
    for fixture in fixtures().iter().filter(|fixture| fixture.name.starts_with("FDL01")) {
        let value = serde_json::Value::from(&value(&fixture.source).unwrap());
        let unseen = UNSEEN_BY_THE_SCHEMA.contains(&fixture.name.as_str());
        if validator.is_valid(&value) != unseen {
            wrong += &format!(
                "{}: the schema should {} it\n",
                fixture.name,
                if unseen { "let pass" } else { "refuse" }
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
