//! `delete`: deletes an execution of a server that has ended.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::id_of;
use clap::Args;

/// Deletes an execution of a server that has ended
///
/// Nothing is left of it: its name is free, and what is still to be told of it is not told. Executions that it started stay.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge delete order/order-7")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    client.delete(&["executions", &id])?;
    output.note(&format!("{} is deleted", options.execution));
    Ok(())
}
