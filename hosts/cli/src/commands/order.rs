//! `order`: changes the place of an execution of a server.

use crate::acts::act;
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::views::show_going;
use clap::Args;
use starbridge_flow::value::{Object, Value};

/// Changes the order of an execution of a server
///
/// One that waits to begin goes to another place of its line, begins now, or waits for nobody any more. One that runs takes its tasks
/// along that no worker holds.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge order order/order-7 --priority 9\n  starbridge order order/order-7 --now"
)]
#[group(id = "change", required = true, multiple = true, args = ["now", "no_after", "priority", "order_time"])]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// Its time has come: it waits for `startAt` no longer
    #[arg(long)]
    pub now: bool,
    /// It waits for no other execution any more
    #[arg(long)]
    pub no_after: bool,
    /// Its priority and that of its tasks, 9 first
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub priority: Option<u8>,
    /// A number or a time: within a priority the smaller goes first
    #[arg(long, value_name = "N|TIME", allow_negative_numbers = true)]
    pub order_time: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let mut body = Object::new();
    if let Some(priority) = options.priority {
        body.insert("priority".into(), u64::from(priority).into());
    }
    if let Some(order) = &options.order_time {
        let value = order
            .parse::<i64>()
            .map_or_else(|_| Value::from(order.as_str()), Value::from);
        body.insert("orderTime".into(), value);
    }
    if options.now {
        body.insert("startNow".into(), true.into());
    }
    if options.no_after {
        body.insert("after".into(), Vec::<Value>::new().into());
    }
    let answer = act(&client, &options.execution, "order", &body)?;
    show_going(&client, &answer)
}
