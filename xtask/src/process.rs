//! Running other programs.

mod tree;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The root of the repository.
pub fn root() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.parent().map(PathBuf::from).unwrap_or(folder)
}

/// The folder for everything that is built.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The `cargo` that runs this program, in the root of the repository. What it told this program about its package it does not
/// see again: crates that look at these variables would be compiled anew at each change between `cargo` and `cargo xtask`.
pub fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_told = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_told {
            command.env_remove(&name);
        }
    }
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    command
}

/// A program by its name or path, in the root of the repository.
pub fn program(name: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a program to its end and shows what it prints. An error says how it ended.
pub fn run(command: &mut Command) -> Result<(), String> {
    verdict(command.status())
}

/// Runs a program to its end; `see` also gets each line of standard output.
pub fn run_seeing(command: &mut Command, mut see: impl FnMut(&str)) -> Result<(), String> {
    run_reading(command, |line| {
        println!("{line}");
        see(line);
    })
}

/// Runs a program to its end; its standard output is not shown, `read` gets each line.
pub fn run_reading(command: &mut Command, mut read: impl FnMut(&str)) -> Result<(), String> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            read(&line);
        }
    }
    verdict(child.wait())
}

/// Runs a program to its end; all its output goes to a file. After `limit` it is killed with all that it started, and the error
/// names those processes: whoever hangs is among the last of them.
pub fn run_logged(command: &mut Command, log: &Path, limit: Duration) -> Result<(), String> {
    let problem = |error: std::io::Error| format!("{}: {error}", log.display());
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).map_err(problem)?;
    }
    let file = File::create(log).map_err(problem)?;
    let same = file.try_clone().map_err(problem)?;
    let mut child = command
        .stdout(file)
        .stderr(same)
        .spawn()
        .map_err(|error| error.to_string())?;
    match end_within(&mut child, limit) {
        Some(status) => verdict(status),
        None => {
            let running = tree::kill(child.id());
            let ended = child.wait().map_err(|error| error.to_string());
            ended.and(Err(format!(
                "it did not end within {} s; killed were:\n{}",
                limit.as_secs(),
                running.join("\n")
            )))
        }
    }
}

/// Whether a program, whose output is not needed, succeeds within that time. It is killed if it
/// does not end.
pub fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = quiet else { return false };
    if let Some(status) = end_within(&mut child, limit) {
        return status.is_ok_and(|status| status.success());
    }
    // It may have ended meanwhile; in either case it is over.
    drop(child.kill());
    drop(child.wait());
    false
}

/// The time between two looks at a program.
#[expect(
    clippy::disallowed_methods,
    reason = "the standard library can't wait for a program and a time at once"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// How a child ended, if it does so within that time.
fn end_within(child: &mut Child, limit: Duration) -> Option<std::io::Result<ExitStatus>> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(Ok(status)),
            Ok(None) if begun.elapsed() < limit => pause(),
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        }
    }
}

/// The output of a program, if it succeeds.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn verdict(status: std::io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_end_in_time_is_killed_with_what_it_started_and_named() {
        let folder = target().join("tmp/process-tests");
        let log = folder.join("hangs.log");
        let mut hangs = program(
            "sh",
            &["-c", "echo before; sleep 1234 & sh -c 'sleep 1235; true'; true"],
        );
        let problem = run_logged(&mut hangs, &log, Duration::from_millis(500)).unwrap_err();
        for part in ["within 0 s", "sleep 1234", "sleep 1235"] {
            assert!(problem.contains(part), "{problem}");
        }
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "before\n");
        let runs = |line: &str| {
            let id = line.split_whitespace().next().unwrap();
            let command = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            command.contains("sleep")
        };
        // A killed process that is not this one's child ends a moment later.
        let ended = (0..600).any(|_| {
            let some = problem.lines().skip(1).any(runs);
            if some {
                pause();
            }
            !some
        });
        assert!(ended, "{problem}");
        let mut ends = program("sh", &["-c", "exit 3"]);
        assert_eq!(
            run_logged(&mut ends, &log, Duration::from_secs(60)),
            Err("exit status: 3".to_owned())
        );
    }
}
