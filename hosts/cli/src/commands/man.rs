//! `man`: manual pages.

use crate::arguments;
use crate::exit::Exit;
use crate::output::Output;
use clap::Args;
use starbridge_flow::diagnostics::nearest;
use starbridge_node::system::reason;
use std::fs;
use std::path::{Path, PathBuf};

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  starbridge man | man -l -
  starbridge man --dir ~/.local/share/man/man1")]
pub struct Options {
    /// The page of this command; without one the page of the whole program
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,

    /// Write the pages of the program and of each command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints or writes them.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut program = arguments::command();
    program.build();
    if let Some(folder) = &options.dir {
        return write(&program, folder, output);
    }
    let Some(name) = &options.command else {
        return output.result(&page(program));
    };
    match program.find_subcommand(name) {
        Some(command) => output.result(&page(command.clone())),
        None => {
            let names = program.get_subcommands().map(clap::Command::get_name);
            let help = nearest(name, names).map(|meant| format!("did you mean `{meant}`?"));
            Err(output.fail(Exit::Bad, &format!("there is no command `{name}`"), help.as_deref()))
        }
    }
}

const VERSION: &str = concat!("starbridge ", env!("CARGO_PKG_VERSION"));

fn page(command: clap::Command) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(command)
        .title(name.to_uppercase())
        .source(VERSION)
        .render(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn write(program: &clap::Command, folder: &Path, output: Output) -> Result<(), Exit> {
    if folder.exists() && !folder.is_dir() {
        let message = format!("`{}` is no folder", folder.display());
        return Err(output.fail(Exit::Bad, &message, Some("name another one")));
    }
    let fault = |path: &Path, error: &std::io::Error| {
        let message = format!("can't write `{}`: {}", path.display(), reason(error));
        output.fail(Exit::Fault, &message, None)
    };
    fs::create_dir_all(folder).map_err(|error| fault(folder, &error))?;
    for command in std::iter::once(program).chain(program.get_subcommands()) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(command.clone())).map_err(|error| fault(&path, &error))?;
        output.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}
