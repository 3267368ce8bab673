//! `help`: how a command is used.

use crate::arguments;
use crate::exit::Exit;
use crate::output::Output;
use clap::Args;
use starbridge_flow::diagnostics::nearest;

/// Prints how a command is used
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  starbridge help\n  starbridge help exec\n  starbridge help queue set")]
pub struct Options {
    /// The command; without one the whole program
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Prints it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut command = arguments::command();
    command.build();
    for word in &options.command {
        let Some(found) = command.find_subcommand(word) else {
            let names = command.get_subcommands().map(clap::Command::get_name);
            let help = nearest(word, names).map(|meant| format!("did you mean `{meant}`?"));
            return Err(output.fail(Exit::Bad, &format!("there is no command `{word}`"), help.as_deref()));
        };
        command = found.clone();
    }
    output.print(&command.render_long_help().ansi().to_string())
}
