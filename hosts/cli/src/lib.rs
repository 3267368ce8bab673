//! The command line: arguments to calls, results to stdout, everything else to stderr, outcomes to exit codes.
//!
//! Nothing here decides about flows.
//!
//! ```
//! use std::process::ExitCode;
//!
//! let code = starbridge_cli::run(["starbridge", "explain", "FDL0102"].map(Into::into));
//! assert_eq!(code, ExitCode::SUCCESS);
//! ```

mod acts;
mod arguments;
mod client;
mod commands;
pub mod definitions;
pub mod exit;
mod filter;
pub mod output;
mod progress;
pub mod render;
mod supervisor;
mod table;
mod task_report;
mod usage;
mod views;

use arguments::Arguments;
use clap::FromArgMatches;
use exit::Exit;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command of the arguments, which begin with the program's own name. Returns the
/// process's exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = supervisor::supervise(&arguments) {
        return code;
    }
    let parsed = arguments::command()
        .try_get_matches_from(&arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    match parsed {
        Ok(arguments) => {
            let output = Output::new(arguments.json, arguments.quiet);
            Exit::code(arguments.command.run(&output))
        }
        Err(stopped) => Exit::code(usage::say(&stopped, &arguments)),
    }
}
