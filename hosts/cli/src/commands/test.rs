//! `test`: runs test files in virtual time.

use crate::definitions::{check_flow, flow_name, read_text};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use clap::Args;
use serde::Serialize;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_node::escaping::escaped;
use starbridge_node::system::reason;
use starbridge_simulator::{FlowSource, Flows, Rehearsal, TestFile, compare};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs test files in virtual time
///
/// A test file (`*.test.json`) says what each task answers and what is expected. No task is called, no time passes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge test examples/order")]
pub struct Options {
    /// Test files, or folders in which all `*.test.json` are run
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    cases: Vec<CaseReport>,
}

#[derive(Serialize)]
struct CaseReport {
    name: String,
    ok: bool,
    problems: Vec<String>,
    #[serde(skip)]
    file: String,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut files = Vec::new();
    for path in &options.paths {
        if let Err(error) = collect(path, &mut files) {
            let message = format!("can't read `{}`: {}", path.display(), reason(&error));
            return Err(bad(
                output,
                &message,
                "give a test file or a folder with `*.test.json` files",
            ));
        }
    }
    if files.is_empty() {
        return Err(bad(
            output,
            "there is no test file here",
            "test files end in `.test.json`",
        ));
    }
    let mut cases = Vec::new();
    for file in &files {
        cases.extend(run_file(file, output)?);
    }
    let failed = cases.iter().filter(|case| !case.ok).count();
    let report = Report {
        passed: cases.len() - failed,
        failed,
        cases,
    };
    let outcome = if failed == 0 { Ok(()) } else { Err(Exit::Found) };
    if output.json() {
        return finish(output, &serde_json::to_string(&report).unwrap_or_default(), outcome);
    }
    let mut text = String::new();
    let mut last = "";
    for case in &report.cases {
        if case.file != last {
            text.push_str(&format!("{}\n", case.file));
            last = &case.file;
        }
        text.push_str(&format!(
            "  {} {}\n",
            if case.ok { "ok  " } else { "FAIL" },
            escaped(&case.name)
        ));
        for problem in &case.problems {
            text.push_str(&format!("       {}\n", problem.replace('\n', "\n       ")));
        }
    }
    text.push_str(&format!("{} passed, {} failed", report.passed, report.failed));
    finish(output, &text, outcome)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        std::fs::metadata(path)?;
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut open = vec![path.to_path_buf()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(".test.json") {
                found.push(path);
            }
        }
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}

fn run_file(path: &Path, output: Output) -> Result<Vec<CaseReport>, Exit> {
    let text = read_text(path, output)?;
    let file = TestFile::parse(&text).map_err(|error| {
        bad(
            output,
            &format!("{}: {error}", path.display()),
            "`starbridge schema test` prints what a test file looks like",
        )
    })?;
    let flows = load(&file, path, output)?;
    let limits = file.limits.over(Limits::default());
    Ok(file
        .cases
        .into_iter()
        .map(|case| {
            let name = case.name.clone();
            let expect = case.expect.clone();
            let problems = match Rehearsal::new(flows.clone(), case, limits.clone()).run() {
                Ok(outcome) => compare(&expect, &outcome),
                Err(error) => vec![error.to_string()],
            };
            CaseReport {
                name,
                ok: problems.is_empty(),
                problems,
                file: path.display().to_string(),
            }
        })
        .collect())
}

fn load(file: &TestFile, path: &Path, output: Output) -> Result<Flows, Exit> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let flow = |source: &FlowSource| -> Result<(String, Arc<starbridge_flow::graph::Flow>), Exit> {
        let source = match source {
            FlowSource::Definition(definition) => {
                let text = serde_json::to_string_pretty(definition).unwrap_or_default();
                Source::new(format!("{} (flow).json", path.display()), text)
            }
            FlowSource::Path(relative) => {
                let file = folder.join(relative);
                Source::new(file.display().to_string(), read_text(&file, output)?)
            }
        };
        let name = flow_name(&source);
        Ok((name, check_flow(source, output)?.1))
    };
    let (name, main) = flow(&file.flow)?;
    let mut children = BTreeMap::new();
    for (name, source) in &file.flows {
        children.insert(name.clone(), flow(source)?.1);
    }
    Ok(Flows {
        name,
        flow: main,
        children,
    })
}
