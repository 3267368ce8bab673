//! `completions`: what shells need to complete this program's words.

use crate::arguments;
use crate::exit::Exit;
use crate::output::Output;
use clap::Args;
use clap_complete::Shell;

/// Print a script that lets a shell complete commands and options
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  starbridge completions bash > ~/.local/share/bash-completion/completions/starbridge")]
pub struct Options {
    /// For which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut arguments::command(), "starbridge", &mut script);
    output.result(&String::from_utf8_lossy(&script))
}
