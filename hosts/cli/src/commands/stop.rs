//! `stop`: ends an execution of a server.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::{id_of, show_going};
use clap::Args;
use starbridge_flow::value::Object;

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
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub cause: Option<String>,
    /// Undoes what it did
    #[arg(long)]
    pub rollback: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let mut body = Object::new();
    if let Some(error) = &options.error {
        body.insert("error".into(), error.as_str().into());
    }
    if let Some(cause) = &options.cause {
        body.insert("cause".into(), cause.as_str().into());
    }
    if options.rollback {
        body.insert("rollback".into(), true.into());
    }
    let answer = client.post(&["executions", &id, "stop"], &[], &body)?;
    show_going(&client, &answer)
}
