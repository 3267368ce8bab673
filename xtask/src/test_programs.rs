//! The test programs that the stage `build` compiled. Cargo lists them while it builds; other stages read the list and run them
//! without Cargo, whose lock of the build folder lets only one build at a time go on.

use crate::process;
use crate::stage::{Outcome, Tally};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set for stages that run beside others: all is built, and the list is that of this build.
const BUILT: &str = "STARBRIDGE_BUILT";

/// A test program, and the folder of its package, in which Cargo would run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// The name of its target.
    pub name: String,
    executable: PathBuf,
    package: PathBuf,
}

impl TestProgram {
    /// Reads a line of Cargo's list; `None` if it is no program of tests. Benchmarks and examples are none.
    fn read(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let target = &line["target"];
        let is_other = |kind: &Value| kind == "bench" || kind == "example";
        if line["profile"]["test"] != true || target["kind"].as_array()?.iter().any(is_other) {
            return None;
        }
        Some(Self {
            name: target["name"].as_str()?.to_owned(),
            executable: line["executable"].as_str()?.into(),
            package: Path::new(line["manifest_path"].as_str()?).parent()?.into(),
        })
    }

    /// The command that runs it as `cargo test` does.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .stdin(Stdio::null());
        command
    }
}

/// Runs these builds of test programs, and keeps the list of all. An error says how one ended.
pub fn build(commands: [&mut Command; 2]) -> Result<(), String> {
    let mut list = BTreeSet::new();
    for command in commands {
        process::run_reading(command.arg("--message-format=json-render-diagnostics"), |line| {
            if TestProgram::read(line).is_some() {
                list.insert(format!("{line}\n"));
            }
        })?;
    }
    let list: String = list.into_iter().collect();
    let problem = |error: std::io::Error| format!("{}: {error}", path().display());
    std::fs::create_dir_all(process::target().join("tmp")).map_err(problem)?;
    std::fs::write(path(), list).map_err(problem)
}

/// Tells a stage that all is built.
pub fn say_built(command: &mut Command) -> &mut Command {
    command.env(BUILT, "1")
}

/// Whether all is built, so that nothing needs Cargo.
pub fn are_built() -> bool {
    std::env::var_os(BUILT).is_some()
}

/// All test programs if they are built.
pub fn built() -> Option<Vec<TestProgram>> {
    let list = are_built().then(|| std::fs::read_to_string(path()).ok())??;
    let mut programs: Vec<_> = list.lines().filter_map(TestProgram::read).collect();
    // Those of a package stand together, as Cargo runs them.
    programs.sort_by(|one, other| (&one.package, &one.name).cmp(&(&other.package, &other.name)));
    programs.dedup();
    Some(programs)
}

/// Runs these programs one after the other. With `keep_going`, all of them even after one that failed.
pub fn run(programs: &[TestProgram], keep_going: bool, tally: &mut Tally) -> Outcome {
    let mut outcome = Outcome::Passed;
    for program in programs {
        println!("     Running {}", program.executable.display());
        if let Err(problem) = process::run_seeing(&mut program.command(), |line| tally.see(line)) {
            outcome = Outcome::Failed(format!("{}: {problem}", program.name));
            if !keep_going {
                break;
            }
        }
    }
    outcome
}

fn path() -> PathBuf {
    process::target().join("tmp/test-programs.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_of_tests_are_listed() {
        let line = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/stores/Cargo.toml","target":{{"kind":["{kind}"],"name":"file"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let expected = TestProgram {
            name: "file".to_owned(),
            executable: "/p/target/file-1".into(),
            package: "/p/stores".into(),
        };
        let built = r#""/p/target/file-1""#;
        assert_eq!(TestProgram::read(&line("test", true, built)), Some(expected.clone()));
        assert_eq!(TestProgram::read(&line("lib", true, built)), Some(expected));
        for other in [
            line("test", false, built),
            line("bench", true, built),
            line("example", true, built),
            line("lib", true, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "text".to_owned(),
        ] {
            assert_eq!(TestProgram::read(&other), None, "{other}");
        }
    }
}
