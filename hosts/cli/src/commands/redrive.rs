//! `redrive`: lets an execution that ended unsuccessfully go on.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::{id_of, show};
use clap::Args;
use starbridge_flow::value::Object;

/// Lets an execution that ended unsuccessfully go on where it failed
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge redrive order/order-7 && starbridge show order/order-7 --follow")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    #[command(flatten)]
    server: ServerOptions,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let answer = client.post(&["executions", &id, "redrive"], &[], &Object::new())?;
    show(&client, &answer)
}
