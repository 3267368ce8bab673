//! `stop`: ends an execution of a server.

use crate::acts::{Reason, act};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::show_going;
use clap::Args;

/// Stops an execution of a server
///
/// What runs is cancelled. What it did stays, unless --rollback undoes it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge stop order/order-7 --error Order.Cancelled --cause 'by the customer' --rollback"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// The error it ends with; otherwise `FnF.Stopped`
    #[arg(long, value_name = "NAME")]
    pub error: Option<String>,
    #[command(flatten)]
    reason: Reason,
    /// Undoes what it did
    #[arg(long)]
    pub rollback: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let mut body = options.reason.body();
    if let Some(error) = &options.error {
        body.insert("error".into(), error.as_str().into());
    }
    if options.rollback {
        body.insert("rollback".into(), true.into());
    }
    let answer = act(&client, &options.execution, "stop", &body)?;
    show_going(&client, &answer)
}
