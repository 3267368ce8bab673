//! Fuzzing: each target for some seconds, from the corpus in the repository and the findings of
//! earlier runs.

use crate::process::{self, program};
use crate::tools;
use std::path::PathBuf;
use std::process::Command;

/// The seconds for each target if none are given.
const SECONDS: u64 = 60;
/// The number of targets that run at once.
const AT_ONCE: usize = 2;
/// The number of last output lines shown for a target that crashed.
const LINES: usize = 80;

/// `cargo xtask fuzz [TARGET]… [--seconds N]`; an error is a misuse.
pub fn command(arguments: &[&str]) -> Result<bool, String> {
    let all = targets();
    let mut wanted = Vec::new();
    let mut seconds = SECONDS;
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        if argument == "--seconds" {
            let number = rest.next().and_then(|number| number.parse().ok());
            seconds = number.ok_or("`--seconds` needs a whole number")?;
        } else if all.iter().any(|target| target == argument) {
            wanted.push(argument.to_owned());
        } else {
            return Err(format!("`{argument}` is no target; there are {}", all.join(", ")));
        }
    }
    let wanted = if wanted.is_empty() { all } else { wanted };
    let done = Fuzzer::found().and_then(|fuzzer| fuzzer.run(&wanted, seconds));
    if let Err(problem) = &done {
        eprintln!("error: {problem}");
    }
    Ok(done.is_ok())
}

/// The names of all targets, in order.
pub fn targets() -> Vec<String> {
    let files = std::fs::read_dir(process::root().join("fuzz/fuzz_targets"));
    let mut names: Vec<String> = files
        .into_iter()
        .flatten()
        .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// The tools for fuzzing.
#[derive(Debug)]
pub struct Fuzzer {
    cargo_fuzz: PathBuf,
}

impl Fuzzer {
    /// The tools that are installed or can be installed quickly; an error says what is missing.
    pub fn found() -> Result<Self, String> {
        if !tools::has_nightly() {
            return Err("there is no nightly compiler, and none can be had".to_owned());
        }
        let cargo_fuzz = tools::cargo_fuzz().ok_or("cargo-fuzz is not installed and can't be had")?;
        Ok(Self { cargo_fuzz })
    }

    /// Builds the targets and runs them, two at a time and each for this many seconds. An error
    /// names the first that crashed.
    pub fn run(&self, targets: &[String], seconds: u64) -> Result<(), String> {
        let built = process::run(&mut self.cargo_fuzz("build", &[]));
        built.map_err(|status| format!("the targets can't be built ({status})"))?;
        let lanes: Vec<&[String]> = targets.chunks(targets.len().div_ceil(AT_ONCE).max(1)).collect();
        std::thread::scope(|scope| {
            let one_lane = |lane: &[String]| lane.iter().try_for_each(|target| self.run_one(target, seconds));
            let running: Vec<_> = lanes.iter().map(|lane| scope.spawn(move || one_lane(lane))).collect();
            let died = |_| Err("a thread that runs targets died".to_owned());
            running
                .into_iter()
                .try_for_each(|lane| lane.join().unwrap_or_else(died))
        })
    }

    fn run_one(&self, target: &str, seconds: u64) -> Result<(), String> {
        let found = built().join("corpus").join(target);
        std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
        let log = built().join(format!("{target}.log"));
        let mut command = self.cargo_fuzz("run", &[target]);
        // New findings go to the first corpus; the one in the repository is only read.
        command.arg(found).arg(format!("fuzz/corpus/{target}")).arg("--");
        command.args([
            "-dict=fuzz/words.dict",
            "-timeout=20",
            "-max_len=8192",
            "-print_funcs=0",
        ]);
        command.arg(format!("-max_total_time={seconds}"));
        let done = process::run_logged(&mut command, &log);
        let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
        match done {
            Ok(()) => {
                let runs = text.lines().rfind(|line| line.starts_with("Done ")).unwrap_or("Done");
                println!("{target:<12} {runs}");
                Ok(())
            }
            Err(status) => {
                let lines: Vec<&str> = text.lines().collect();
                println!("{}", lines[lines.len().saturating_sub(LINES)..].join("\n"));
                Err(format!(
                    "{target} fell ({status}); add its input from fuzz/artifacts/{target} to fuzz/corpus/{target}"
                ))
            }
        }
    }

    fn cargo_fuzz(&self, verb: &str, target: &[&str]) -> Command {
        let mut command = program("rustup", &["run", "nightly"]);
        command.arg(&self.cargo_fuzz).args([verb, "--fuzz-dir", "fuzz"]);
        // Nothing here is unsafe, so a sanitizer would only cost time.
        command
            .args(["--sanitizer", "none", "--target-dir"])
            .arg(built())
            .args(target);
        // The stable `cargo` started this program, and passes its choice on to child processes. So does a linter in place of the
        // compiler, which is of the stable toolchain, too.
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        command.env_remove("RUSTC_WORKSPACE_WRAPPER");
        command
    }
}

/// The folder for the built targets and their findings.
fn built() -> PathBuf {
    process::target().join("fuzz")
}
