//! `pause`: pauses an execution of a server.

use crate::acts::{Reason, act};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::show;
use clap::Args;

/// Pauses an execution of a server
///
/// Nothing new begins in it and in the children it waits for, and no timer fires. Calls that are out may end: their results are
/// recorded, and what follows from them waits. Pausing one that is paused changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge pause order/order-7 --cause 'the bank is down'")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    #[command(flatten)]
    reason: Reason,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let answer = act(&client, &options.execution, "pause", &options.reason.body())?;
    show(&client, &answer)
}
