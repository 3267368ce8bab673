//! The JSON Schemas of test files and exported histories say what there is.

use serde_json::Value;
use starbridge_flow::limits::Limits;
use starbridge_node::export::{export_event, export_head, needed_version};
use starbridge_simulator::{Simulation, TestFile};
use starbridge_tests::conformance::{self, operated};
use starbridge_tests::data;
use std::path::PathBuf;

fn schema(name: &str) -> jsonschema::Validator {
    let text = std::fs::read_to_string(data::root().join("schemas").join(name)).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    jsonschema::meta::validate(&value).unwrap_or_else(|error| panic!("{name}: {error}"));
    jsonschema::validator_for(&value).unwrap()
}

fn test_files() -> Vec<PathBuf> {
    let mut files = data::files(&data::folder().join("conformance"), ".test.json");
    files.extend(data::files(&data::root().join("examples"), ".test.json"));
    files
}

/// The schema's objections to a value, with their places.
fn problems(schema: &jsonschema::Validator, value: &Value) -> Vec<String> {
    schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn the_schema_of_test_files_takes_every_test_file() {
    let schema = schema("test.schema.json");
    for path in test_files() {
        let value: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let problems = problems(&schema, &value);
        assert!(problems.is_empty(), "{}: {problems:#?}", path.display());
    }
}

#[test]
fn the_schema_of_test_files_refuses_what_the_reader_refuses() {
    let schema = schema("test.schema.json");
    let file = |case: &str| format!(r#"{{"flow": "a.json", "cases": [{case}]}}"#);
    for text in [
        r#"{"cases": []}"#.to_owned(),
        r#"{"flow": "a.json"}"#.to_owned(),
        r#"{"flow": 1, "cases": []}"#.to_owned(),
        r#"{"flow": "a.json", "cases": [], "case": []}"#.to_owned(),
        r#"{"flow": "a.json", "cases": [], "limits": {"steps": 1}}"#.to_owned(),
        file("{}"),
        file(r#"{"name": "a", "input": []}"#),
        file(r#"{"name": "a", "expects": {}}"#),
        file(r#"{"name": "a", "mocks": {"b": []}}"#),
        file(r#"{"name": "a", "mocks": {"b": [{}]}}"#),
        file(r#"{"name": "a", "mocks": {"b": [{"result": {}, "error": "E"}]}}"#),
        file(r#"{"name": "a", "mocks": {"b": [{"never": false}]}}"#),
        file(r#"{"name": "a", "mocks": {"b": {"result": {}}}}"#),
        file(r#"{"name": "a", "stop": {}}"#),
        file(r#"{"name": "a", "expect": {"steps": "b"}}"#),
        file(r#"{"name": "a", "expect": {"elapsedSeconds": -1}}"#),
        file(r#"{"name": "a", "mocks": {"b": [{"result": {}, "delaySeconds": -0.5}]}}"#),
        file(r#"{"name": "a", "mocks": {"b": [{"result": {}, "delaySeconds": 1e18}]}}"#),
        file(r#"{"name": "a", "mocks": {"b": [{"error": "E", "retryAfterSeconds": 18446744073709551615}]}}"#),
        file(r#"{"name": "a", "pause": {"atSeconds": 1e308}}"#),
        file(r#"{"name": "a", "pause": {"atSeconds": 1, "forSeconds": -3}}"#),
        file(r#"{"name": "a", "stop": {"atSeconds": 9223372036854775808}}"#),
        r#"{"flow": "a.json", "cases": [], "limits": {"waitDays": 36501}}"#.to_owned(),
    ] {
        assert!(TestFile::parse(&text).is_err(), "the reader takes {text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(!schema.is_valid(&value), "the schema takes {text}");
    }
}

#[test]
fn the_schema_of_histories_takes_every_history() {
    let schema = schema("history.schema.json");
    let mut kinds = std::collections::BTreeSet::new();
    for path in test_files() {
        let file = TestFile::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let flows = conformance::load(&file, &path).unwrap();
        for case in &file.cases {
            let mut simulation = Simulation::new(flows.clone(), case.clone(), file.limits.over(Limits::default()));
            simulation.run().unwrap();
            for (id, events) in simulation.histories() {
                let Some(flow) = simulation.shard().flow(id) else {
                    continue;
                };
                let lines = events.iter().map(|event| export_event(flow, event));
                // Long histories repeat themselves.
                for line in std::iter::once(export_head(id, needed_version(events), flow, &flows.children))
                    .chain(lines)
                    .take(100)
                {
                    let value: Value = serde_json::from_str(&line).unwrap();
                    kinds.insert(value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned());
                    let problems = problems(&schema, &value);
                    assert!(
                        problems.is_empty(),
                        "{}: {}: {line}: {problems:#?}",
                        path.display(),
                        case.name
                    );
                }
            }
        }
    }
    for path in operated::files() {
        for run in operated::histories(&path).unwrap() {
            for event in run.events() {
                let value: Value = serde_json::from_str(&export_event(run.flow(), event)).unwrap();
                kinds.insert(value["type"].as_str().unwrap_or_default().to_owned());
                let problems = problems(&schema, &value);
                assert!(problems.is_empty(), "{}: {value}: {problems:#?}", path.display());
            }
        }
    }
    assert!(kinds.len() > 30, "{kinds:?}");
}

#[test]
fn the_schema_of_histories_knows_what_it_says() {
    let schema = schema("history.schema.json");
    let event = |rest: &str| {
        let text = format!(r#"{{"id": 1, "causedBy": 0, "time": "2024-01-01T00:00:00.000Z", "path": [], {rest}}}"#);
        serde_json::from_str::<Value>(&text).unwrap()
    };
    for (rest, taken) in [
        (r#""step": "a", "type": "StepEntered", "detail": {}"#, true),
        (r#""step": "a", "type": "StepEntered", "detail": {"attempt": 1}"#, false),
        (r#""step": "a", "type": "StepStarted", "detail": {"attempt": 1}"#, true),
        (r#""step": "a", "type": "StepStarted", "detail": {}"#, false),
        (r#""step": "a", "type": "StepBegan", "detail": {}"#, false),
        (r#""step": "a", "type": "TimerFired", "detail": {"of": 0}"#, false),
        (
            r#""step": "a", "type": "BranchExited", "detail": {"error": "E"}"#,
            false,
        ),
        (
            r#""step": "a", "type": "BranchExited", "detail": {"error": "E", "cause": ""}"#,
            true,
        ),
        (
            r#""step": "a", "type": "BranchExited", "detail": {"error": "E", "cause": "", "cancelled": true}"#,
            false,
        ),
        (r#""step": "a", "type": "ChoiceTaken", "detail": {"arm": null}"#, true),
        (
            r#""step": "a", "type": "ChoiceTaken", "detail": {"arm": "other"}"#,
            false,
        ),
        (r#""type": "StepEntered", "detail": {}"#, false),
    ] {
        assert_eq!(schema.is_valid(&event(rest)), taken, "{rest}");
    }
    assert!(!schema.is_valid(&serde_json::json!({"history": 3, "execution": "e", "definition": {}})));
}
