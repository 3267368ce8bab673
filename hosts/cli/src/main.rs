//! The `starbridge` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    starbridge_cli::run(std::env::args_os())
}
