//! `test`: runs test files in virtual time.

mod junit;

use crate::definitions::{check_flow, flow_name, read_text, without_mark};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use clap::Args;
use serde::Serialize;
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_node::escaping::escaped;
use starbridge_node::system::reason;
use starbridge_simulator::{FlowSource, Flows, Simulation, TestFile, compare};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs test files in virtual time
///
/// A test file (`*.test.json`) says what each task answers and what is expected. No task is called, no time passes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  starbridge test examples/order\n  starbridge test examples --junit report.xml")]
pub struct Options {
    /// Test files, or folders in which all `*.test.json` are run
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only the case of this name; may be given several times
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Also writes what came of it to a file, in the form of JUnit; `-` writes that alone, to stdout
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Names the cases, a line each, and runs none
    #[arg(long, conflicts_with_all = ["cases", "junit"])]
    pub list: bool,
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
    if options.list {
        return list(&files, output);
    }
    if output.json() && options.junit.as_ref().is_some_and(|file| file.as_os_str() == "-") {
        let help = "name a file for `--junit`, or leave `--json` out";
        return Err(bad(output, "`--junit -` and `--json` would both write to stdout", help));
    }
    let mut cases = Vec::new();
    let mut known = Vec::new();
    for file in &files {
        let file = read_file(file, output)?;
        known.extend(file.file.cases.iter().map(|case| case.name.clone()));
        cases.extend(run_file(file, &options.cases, output)?);
    }
    if let Some(missing) = options.cases.iter().find(|wanted| !known.contains(wanted)) {
        let near = nearest(missing, known.iter().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`--list` names the cases there are".to_owned(),
        };
        return Err(bad(output, &format!("there is no case `{missing}`"), &help));
    }
    if let Some(file) = &options.junit {
        if file.as_os_str() == "-" {
            let failed = cases.iter().any(|case| !case.ok);
            let outcome = if failed { Err(Exit::Found) } else { Ok(()) };
            return finish(output, junit::junit(&cases).trim_end(), outcome);
        }
        std::fs::write(file, junit::junit(&cases)).map_err(|error| {
            let message = format!("can't write `{}`: {}", file.display(), reason(&error));
            bad(output, &message, "")
        })?;
    }
    report(cases, output)
}

/// Prints the results of the cases.
fn report(cases: Vec<CaseReport>, output: Output) -> Result<(), Exit> {
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
            for line in problem.lines() {
                text.push_str(&format!("       {}\n", escaped(line)));
            }
        }
    }
    text.push_str(&format!("{} passed, {} failed", report.passed, report.failed));
    finish(output, &text, outcome)
}

/// Prints the names of the cases.
fn list(files: &[PathBuf], output: Output) -> Result<(), Exit> {
    let mut names = String::new();
    for file in files {
        for case in &read_file(file, output)?.file.cases {
            names.push_str(&format!("{}\n", escaped(&case.name)));
        }
    }
    output.result(&names)
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

/// A test file and where it is.
struct Read<'a> {
    path: &'a Path,
    file: TestFile,
}

fn read_file(path: &Path, output: Output) -> Result<Read<'_>, Exit> {
    let text = read_text(path, output)?;
    let file = TestFile::parse(without_mark(&text)).map_err(|error| {
        bad(
            output,
            &format!("{}: {error}", path.display()),
            "`starbridge schema test` prints what a test file looks like",
        )
    })?;
    Ok(Read { path, file })
}

/// Runs the cases with these names; all cases if there are no names.
fn run_file(read: Read<'_>, wanted: &[String], output: Output) -> Result<Vec<CaseReport>, Exit> {
    let Read { path, file } = read;
    let flows = load(&file, path, output)?;
    let limits = file.limits.over(Limits::default());
    Ok(file
        .cases
        .into_iter()
        .filter(|case| wanted.is_empty() || wanted.contains(&case.name))
        .map(|case| {
            let name = case.name.clone();
            let expect = case.expect.clone();
            let problems = match Simulation::new(flows.clone(), case, limits.clone()).run() {
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
