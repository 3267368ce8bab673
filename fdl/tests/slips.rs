//! Typing mistakes in data, planted by hand: each is found in its place and gone after its
//! correction, and the definitions of the examples, the language reference and the conformance
//! cases have none.

#![expect(clippy::disallowed_methods, reason = "a test reads its data")]

use serde_json::{Map, Value, json};
use starbridge_fdl::diagnostics::{Code, Diagnostic, Severity};
use starbridge_fdl::{Samples, check_knowing};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The codes for data that does not fit.
const CODES: [Code; 4] = [Code::FindsNothing, Code::UnfitData, Code::NeverTrue, Code::OtherType];

/// Conformance cases with an intentional path that finds nothing, or an intentional comparison that
/// never holds. Each has the file and the place in its flow.
const MEANT: [(&str, &str); 21] = [
    ("children/sync-in-out-mappings", "/outputMappings/1/source"),
    ("choice/arm-scope", "/steps/1/choices/0/steps/0/inputMappings/0/source"),
    ("choice/input-by-default", "/steps/1/choices/0/condition"),
    ("choice/input-of-conditions", "/steps/1/choices/0/condition"),
    ("choice/output", "/steps/0/outputMappings/3/source"),
    ("choice/precedence-of-not", "/steps/2/choices/0/condition"),
    ("choice/required-input", "/steps/0/outputMappings/0/source"),
    ("data/empty-mappings", "/steps/1/outputMappings/1/source"),
    ("data/error-mappings", "/steps/1/errorMappings/3/source"),
    ("data/flow-input-mappings", "/outputMappings/3/source"),
    ("data/flow-input-mappings", "/steps/0/outputMappings/1/source"),
    ("data/input-mappings-roots", "/steps/1/inputMappings/3/source"),
    ("data/jsonpath-of-local", "/steps/0/outputMappings/5/source"),
    ("data/required-output-of-composites", "/steps/0/outputMappings/0/source"),
    (
        "data/scope-of-branches",
        "/steps/1/branches/0/steps/0/inputMappings/0/source",
    ),
    (
        "data/scope-of-branches",
        "/steps/1/branches/1/steps/0/inputMappings/0/source",
    ),
    ("errors/fail-with-input-mapping", "/steps/1/cause"),
    ("parallel/output-mappings", "/steps/0/outputMappings/2/source"),
    ("rollback/input-mapped", "/steps/0/rollback/inputMappings/4/source"),
    ("wait/path-not-mapped", "/steps/0/duration"),
    ("wait/required", "/steps/0/outputMappings/0/source"),
];

/// Whether a conformance case has the problem on purpose.
fn is_meant(path: &Path, found: &Diagnostic) -> bool {
    MEANT
        .iter()
        .any(|(file, at)| path.ends_with(format!("tests/conformance/{file}.test.json")) && found.pointer == *at)
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![project(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}

/// One planted mistake.
struct Slip {
    name: String,
    code: String,
    at: String,
    right: Value,
    definition: Value,
    samples: Samples,
}

fn slips() -> Vec<Slip> {
    let mut slips = Vec::new();
    for path in files("tests/slips") {
        let file: Value = serde_json::from_str(&read(&path)).unwrap();
        for slip in file["slips"].as_array().unwrap() {
            let mut definition = json!({"version": "v1", "type": "flow", "inputSchema": file["inputSchema"]});
            for field in ["inputSchema", "inputMappings", "outputMappings", "steps"] {
                if let Some(value) = slip.get(field) {
                    definition[field] = value.clone();
                }
            }
            let text = |field: &str| slip[field].as_str().unwrap().to_owned();
            let stem = path.file_stem().unwrap().to_string_lossy();
            slips.push(Slip {
                name: format!("{stem}: {}", text("slip")),
                code: text("code"),
                at: text("at"),
                right: slip["right"].clone(),
                definition,
                samples: slip.get("mocks").map(samples).unwrap_or_default(),
            });
        }
    }
    slips
}

/// Results by step: of `mocks` in a test file, or plain ones.
fn samples(mocks: &Value) -> Samples {
    let results = |answers: &Value| {
        let answers = answers.as_array().unwrap().iter();
        answers
            .map(|answer| serde_json::from_value(answer.clone()).unwrap())
            .collect()
    };
    let mocks = mocks.as_object().unwrap().iter();
    mocks.map(|(step, answers)| (step.clone(), results(answers))).collect()
}

fn checked(name: &str, text: String, samples: &Samples) -> (Source, Vec<Diagnostic>) {
    let source = Source::new(name, text);
    let found = check_knowing(&source, &Limits::default(), None, Some(samples)).diagnostics;
    (source, found)
}

fn said(source: &Source, found: &Diagnostic) -> String {
    let place = source.line_column(found.span.start);
    format!(
        "  {} {}:{} {} {} | {:?}\n",
        found.code, place.line, place.column, found.pointer, found.message, found.help
    )
}

#[test]
fn all_slips_are_found_and_none_once_put_right() {
    let slips = slips();
    assert!(slips.len() >= 100);
    let (mut missed, mut labelled, mut wrong) = (Vec::new(), 0, String::new());
    for slip in &slips {
        let text = serde_json::to_string_pretty(&slip.definition).unwrap();
        let (source, found) = checked("slip.json", text, &slip.samples);
        let here = |found: &&Diagnostic| found.code.as_str() == slip.code && found.pointer == slip.at;
        match found.iter().find(here) {
            Some(found) => labelled += usize::from(!found.labels.is_empty()),
            None => missed.push(slip.name.as_str()),
        }
        for other in found.iter().filter(|found| !here(found)) {
            wrong += &format!("{}, with the slip:\n{}", slip.name, said(&source, other));
        }
        let mut right = slip.definition.clone();
        *right
            .pointer_mut(&slip.at)
            .unwrap_or_else(|| panic!("{}: {}", slip.name, slip.at)) = slip.right.clone();
        let (source, found) = checked(
            "right.json",
            serde_json::to_string_pretty(&right).unwrap(),
            &slip.samples,
        );
        for found in found
            .iter()
            .filter(|found| CODES.contains(&found.code) || found.severity == Severity::Error)
        {
            wrong += &format!("{}, put right:\n{}", slip.name, said(&source, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let found = slips.len() - missed.len();
    println!(
        "{found} of {} found, {labelled} with both places; missed: {missed:#?}",
        slips.len()
    );
    assert!(missed.is_empty(), "{found} of {}: missed {missed:#?}", slips.len());
    assert!(
        labelled * 10 >= slips.len() * 8,
        "{labelled} of {} name both places",
        slips.len()
    );
}

/// The definitions in a JSON text, and the results that its mocks show.
fn definitions(value: &Value, samples: &mut Samples, found: &mut Vec<Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| definitions(item, samples, found)),
        Value::Object(object) => {
            if object.get("steps").is_some_and(Value::is_array) && object.get("type") == Some(&json!("flow")) {
                found.push(value.clone());
            }
            if let Some(Value::Object(mocks)) = object.get("mocks") {
                add_samples(mocks, samples);
            }
            object.values().for_each(|member| definitions(member, samples, found));
        }
        _ => {}
    }
}

fn add_samples(mocks: &Map<String, Value>, samples: &mut Samples) {
    for (step, answers) in mocks {
        let results = answers
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|answer| answer.get("result"));
        let results = results.map(|result| serde_json::from_value(result.clone()).unwrap());
        samples.entry(step.clone()).or_default().extend(results);
    }
}

/// The fenced texts of a page, without those whose diagnostics it names; for any other file, the
/// whole text.
fn texts(path: &Path) -> Vec<String> {
    let text = read(path);
    if path.extension().is_none_or(|ext| ext != "md") {
        return vec![text];
    }
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (&mut open, line.trim_start().starts_with("```")) {
            (None, true) => open = Some(String::new()),
            (None, false) if line.starts_with("<!-- diagnostics:") => _ = found.pop(),
            (None, false) => {}
            (Some(_), true) => found.extend(open.take()),
            (Some(text), false) => *text += &format!("{line}\n"),
        }
    }
    found
}

#[test]
fn nothing_is_said_of_what_is_right() {
    let (mut wrong, mut count, mut meant) = (String::new(), 0, BTreeSet::new());
    let folders = [
        "examples",
        "docs/language",
        "docs/guides",
        "docs/operations",
        "tests/conformance",
        "tests/campaigns",
    ];
    for path in folders.into_iter().flat_map(files) {
        let ends = |ends: &[&str]| path.extension().is_some_and(|ext| ends.iter().any(|end| ext == *end));
        if !ends(&["json", "yaml", "md"]) {
            continue;
        }
        for text in texts(&path) {
            let (mut samples, mut found) = (Samples::new(), Vec::new());
            let mut flows = match serde_json::from_str::<Value>(&text) {
                Ok(value) => {
                    definitions(&value, &mut samples, &mut found);
                    found
                        .iter()
                        .map(|flow| ("flow.json", serde_json::to_string_pretty(flow).unwrap()))
                        .collect()
                }
                Err(_) if text.contains("steps:") => vec![("flow.yaml", text)],
                Err(_) => Vec::new(),
            };
            count += flows.len();
            for (name, text) in flows.drain(..) {
                for samples in [&Samples::new(), &samples] {
                    let (source, found) = checked(name, text.clone(), samples);
                    for found in found.iter().filter(|found| CODES.contains(&found.code)) {
                        match is_meant(&path, found) {
                            true => _ = meant.insert((path.clone(), found.pointer.clone())),
                            false => wrong += &format!("{}{}\n{text}", path.display(), said(&source, found)),
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(
        meant.len(),
        MEANT.len(),
        "some of what is meant is not warned of any more: {meant:#?}"
    );
    assert!(count > 700, "only {count} definitions were looked at");
}
