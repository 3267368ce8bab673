//! Test data: readable, and each with a name of its own.

use super::{files, nothing_wrong};
use starbridge_fdl::diagnostics::Code;
use starbridge_simulator::TestFile;
use std::collections::BTreeMap;

#[test]
fn conformance_files_parse_and_no_two_cases_of_a_folder_have_one_name() {
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
    for file in files::all() {
        let Some(rest) = file.path.strip_prefix("tests/conformance/") else {
            continue;
        };
        if !rest.ends_with(".test.json") {
            // Flows and inputs that cases refer to.
            if rest.ends_with(".json") && serde_json::from_str::<serde_json::Value>(file.text()).is_err() {
                wrong.push(format!("{}: not JSON", file.path));
            }
            continue;
        }
        let folder = rest.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        match TestFile::parse(file.text()) {
            Err(error) => wrong.push(format!("{}: {error}", file.path)),
            Ok(parsed) if parsed.cases.is_empty() => wrong.push(format!("{}: no cases", file.path)),
            Ok(parsed) => {
                for case in parsed.cases {
                    let key = (folder.clone(), case.name);
                    if let Some(other) = seen.get(&key) {
                        wrong.push(format!(
                            "{}: `{}` is the name of a case in {other} too",
                            file.path, key.1
                        ));
                    }
                    seen.insert(key, file.path.clone());
                }
            }
        }
    }
    assert!(seen.len() > 1_000, "only {} conformance cases are found", seen.len());
    nothing_wrong(&wrong);
}

#[test]
fn every_code_has_a_page_and_a_fixture() {
    let paths: Vec<String> = files::all().into_iter().map(|file| file.path).collect();
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let fixture = format!("tests/diagnostics/{code}");
        let inputs = [".json", ".yaml"];
        let shown = |path: &String| path.starts_with(&fixture) && inputs.iter().any(|ending| path.ends_with(ending));
        if !paths.contains(&format!("docs/diagnostics/{code}.md")) {
            wrong.push(format!("{code} has no page"));
        }
        if !paths.iter().any(shown) {
            wrong.push(format!("{code} has no fixture"));
        }
    }
    nothing_wrong(&wrong);
}
