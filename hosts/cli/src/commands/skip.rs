//! `skip`: continues a rollback without the undo that failed.

use crate::acts::{Reason, act};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::show_going;
use clap::Args;

/// Lets a rollback that failed go on without the undo that failed
///
/// The step counts as undone: a redrive calls it again. To try to undo it once more, redrive the execution instead.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge skip order/order-7 --cause 'refunded by hand'")]
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
    let answer = act(&client, &options.execution, "skip", &options.reason.body())?;
    show_going(&client, &answer)
}
