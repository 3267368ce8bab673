//! `skip`: continues a rollback without the undo that failed.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::{id_of, show_going};
use clap::Args;
use starbridge_flow::value::Object;

/// Lets a rollback that failed go on without the undo that failed
///
/// The step counts as undone: a redrive calls it again. To try to undo it once more, redrive the execution instead.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge skip order/order-7 --cause 'refunded by hand'")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub cause: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let mut body = Object::new();
    if let Some(cause) = &options.cause {
        body.insert("cause".into(), cause.as_str().into());
    }
    let answer = client.post(&["executions", &id, "skip"], &[], &body)?;
    show_going(&client, &answer)
}
