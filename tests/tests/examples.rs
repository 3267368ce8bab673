//! The examples: their flows are without fault, their tests pass, their folders are whole.

use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_simulator::{Simulation, TestFile, compare};
use starbridge_tests::{conformance, data};
use std::path::PathBuf;

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(data::root().join("examples"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

#[test]
fn every_folder_has_a_readme_a_flow_and_tests() {
    let folders = folders();
    assert!(folders.len() >= 8);
    for folder in &folders {
        assert!(folder.join("README.md").is_file(), "{}", folder.display());
        assert!(!data::files(folder, ".test.json").is_empty(), "{}", folder.display());
    }
}

#[test]
fn every_flow_is_without_fault() {
    for folder in folders() {
        for path in data::files(&folder, "").into_iter().filter(|path| is_flow(path)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let checked = starbridge_fdl::check(&Source::new(path.display().to_string(), text), &Limits::default());
            assert!(
                checked.diagnostics.is_empty(),
                "{}: {:?}",
                path.display(),
                checked.diagnostics
            );
        }
    }
}

/// The flow in README with the name `examples/order/flow.json` equals that file, except the line
/// for editors, the description, and what forms are made of.
#[test]
fn the_flow_that_readme_shows_is_the_example() {
    let readme = std::fs::read_to_string(data::root().join("README.md")).unwrap();
    let shown = readme.split("```json order.json\n").nth(1).unwrap();
    let shown: serde_json::Value = serde_json::from_str(shown.split("```").next().unwrap()).unwrap();
    let example = std::fs::read_to_string(data::root().join("examples/order/flow.json")).unwrap();
    let mut example: serde_json::Value = serde_json::from_str(&example).unwrap();
    for member in ["$schema", "description", "inputSchema"] {
        example.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(shown, example);
}

fn is_flow(path: &std::path::Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let data = name.ends_with(".test.json") || name.starts_with("input") || name.starts_with("functions");
    !data && (name.ends_with(".json") || name.ends_with(".yaml"))
}

#[test]
fn every_test_passes() {
    let mut cases = 0;
    for folder in folders() {
        for path in data::files(&folder, ".test.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let file = TestFile::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let flows = conformance::load(&file, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for case in &file.cases {
                cases += 1;
                let limits = file.limits.over(Limits::default());
                let mut simulation = Simulation::new(flows.clone(), case.clone(), limits);
                let outcome = simulation
                    .run()
                    .unwrap_or_else(|error| panic!("{}: {}: {error}", path.display(), case.name));
                let problems = compare(&case.expect, &outcome);
                assert!(problems.is_empty(), "{}: {}: {problems:#?}", path.display(), case.name);
            }
        }
    }
    assert!(cases >= 15);
}
