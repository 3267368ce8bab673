//! Fuzzing: each target for some seconds, from the corpus in the repository and the findings of
//! earlier runs.

use crate::coverage;
use crate::process::{self, cargo, program};
use std::path::PathBuf;
use std::time::Duration;

/// The seconds for each target if none are given.
const SECONDS: u64 = 60;
/// The program that has all targets.
const PROGRAM: &str = "fuzz";
/// How much longer a target may take, to read its corpus and to end.
const TO_END: Duration = Duration::from_secs(300);
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
    let done = run(&wanted, seconds);
    if let Err(problem) = &done {
        eprintln!("error: {problem}");
    }
    Ok(done.is_ok())
}

/// The names of all targets, in order: each has a corpus.
pub fn targets() -> Vec<String> {
    let folders = std::fs::read_dir(process::root().join("fuzz/corpus"));
    let mut names: Vec<String> = folders
        .into_iter()
        .flatten()
        .filter_map(|folder| folder.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Builds the program and runs these targets, two at a time and each for this many seconds.
///
/// # Errors
///
/// Names the first target that crashed, or says why the program can't be built.
pub fn run(targets: &[String], seconds: u64) -> Result<(), String> {
    let mut build = cargo(&["build", "--workspace", "--all-features", "--example", PROGRAM]);
    let built = process::run(coverage::instrument(&mut build)?);
    built.map_err(|status| format!("the program `{PROGRAM}` can't be built ({status})"))?;
    let lanes: Vec<&[String]> = targets.chunks(targets.len().div_ceil(AT_ONCE).max(1)).collect();
    std::thread::scope(|scope| {
        let one_lane = |lane: &[String]| lane.iter().try_for_each(|target| run_one(target, seconds));
        let running: Vec<_> = lanes.iter().map(|lane| scope.spawn(move || one_lane(lane))).collect();
        let died = |_| Err("a thread that runs targets died".to_owned());
        running
            .into_iter()
            .try_for_each(|lane| lane.join().unwrap_or_else(died))
    })
}

fn run_one(target: &str, seconds: u64) -> Result<(), String> {
    let of = |error: std::io::Error| format!("{target}: {error}");
    let (found, artifacts) = (folder().join("corpus").join(target), artifacts(target));
    std::fs::create_dir_all(&found).map_err(of)?;
    std::fs::create_dir_all(&artifacts).map_err(of)?;
    let log = folder().join(target).with_extension("log");
    let mut command = program(process::target().join("debug/examples").join(PROGRAM), &[]);
    // New findings go to the first corpus; the one in the repository is only read.
    command.arg(found).arg(format!("fuzz/corpus/{target}"));
    command.args([
        "-dict=fuzz/words.dict",
        "-timeout=20",
        "-max_len=8192",
        "-print_funcs=0",
    ]);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(format!("-max_total_time={seconds}"));
    let limit = Duration::from_secs(seconds) + TO_END;
    let done = process::run_logged(command.env("STARBRIDGE_FUZZ", target), &log, limit);
    let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    match done {
        Ok(()) => {
            let runs = text.lines().rfind(|line| line.starts_with("Done ")).unwrap_or("Done");
            println!("{target:<17} {runs}");
            Ok(())
        }
        Err(status) => {
            let lines: Vec<&str> = text.lines().collect();
            println!("{}", lines[lines.len().saturating_sub(LINES)..].join("\n"));
            Err(format!(
                "{target} fell ({status}); add its input from {} to fuzz/corpus/{target}",
                artifacts.display()
            ))
        }
    }
}

/// The folder for inputs that crashed a target.
fn artifacts(target: &str) -> PathBuf {
    process::root().join("fuzz/artifacts").join(target)
}

/// The folder for inputs that runs have found.
fn folder() -> PathBuf {
    process::target().join("fuzz")
}
