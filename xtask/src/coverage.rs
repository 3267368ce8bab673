//! The compiler for what is fuzzed: members of the workspace count the branches they take, and are optimised a little. Dependencies
//! are those of all other builds.

use std::process::{Command, ExitCode};

/// Set where this program is started in place of the compiler.
const VARIABLE: &str = "STARBRIDGE_COVERAGE";

/// What libFuzzer reads: a counter for each edge and a table of them, and what is compared with what.
const FLAGS: [&str; 9] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Copt-level=1",
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
];

/// Lets a command of `cargo` compile members by this program.
///
/// # Errors
///
/// This program does not know its own path.
pub fn instrument(command: &mut Command) -> Result<&mut Command, String> {
    let this = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    Ok(command.env("RUSTC_WORKSPACE_WRAPPER", this).env(VARIABLE, "1"))
}

/// Compiles, if this program was started in place of the compiler: its arguments are then the compiler and what it is given
/// (<https://doc.rust-lang.org/cargo/reference/config.html#buildrustc-workspace-wrapper>).
pub fn compile() -> Option<ExitCode> {
    std::env::var_os(VARIABLE)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut compiler = Command::new(arguments.next()?);
    Some(match compiler.args(arguments).args(FLAGS).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: the compiler can't be started: {error}");
            ExitCode::from(1)
        }
    })
}
