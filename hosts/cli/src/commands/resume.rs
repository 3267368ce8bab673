//! `resume`: continues an execution of a server after a pause.

use crate::acts::act;
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::show_going;
use clap::Args;
use starbridge_flow::value::Object;

/// Lets an execution of a server go on after a pause
///
/// Its deadlines move by the length of the pause. What was due meanwhile happens now. Resuming one that is not paused changes
/// nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge resume order/order-7")]
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
    let answer = act(&client, &options.execution, "resume", &Object::new())?;
    show_going(&client, &answer)
}
