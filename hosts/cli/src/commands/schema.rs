//! `schema`: prints the JSON Schemas of the files that people write and read.

use crate::exit::Exit;
use crate::output::Output;
use clap::{Args, ValueEnum};

/// Print a JSON Schema, for editors and other tools
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  starbridge schema flow > flow.schema.json")]
pub struct Options {
    /// Of which kind of file
    #[arg(value_name = "KIND", default_value = "flow")]
    kind: Kind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// A definition
    Flow,
    /// A line of an exported history
    History,
    /// A test file, also what `exec --mock` takes
    Test,
}

/// Prints it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    output.result(match options.kind {
        Kind::Flow => include_str!("../../../../schemas/flow.schema.json"),
        Kind::History => include_str!("../../../../schemas/history.schema.json"),
        Kind::Test => include_str!("../../../../schemas/test.schema.json"),
    })
}
