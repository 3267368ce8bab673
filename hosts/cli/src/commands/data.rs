//! `data`: a datum of a history, as JSON.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::views::{id_of, text};
use clap::Args;
use starbridge_flow::value::Value;

/// How many bytes of a datum one request asks for.
const PART_BYTES: u64 = 1 << 20;

/// Prints a datum of an execution's history as JSON: an input, an output, a part of one
///
/// `history` names the events and their members. A large datum is read in parts.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge data order/order-7 1 input\n  starbridge data order/order-7 1 input --pointer /lines/0/price"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// The number of the event
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub event: u64,
    /// The member of the event's detail; all of it where none is given
    pub part: Option<String>,
    /// The place in it, as a JSON pointer (RFC 6901)
    #[arg(long, value_name = "POINTER")]
    pub pointer: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let mut whole = String::new();
    let mut from = 0;
    loop {
        let mut query = vec![
            ("event", options.event.to_string()),
            ("from", from.to_string()),
            ("bytes", PART_BYTES.to_string()),
        ];
        for (key, given) in [("part", &options.part), ("pointer", &options.pointer)] {
            query.extend(given.clone().map(|given| (key, given)));
        }
        let part = client.get(&["executions", &id, "data"], &query)?.object();
        whole.push_str(text(&part, "text").unwrap_or_default());
        let next = part.get("next").and_then(Value::as_number);
        match next.and_then(|next| next.as_u64()).filter(|next| *next > from) {
            Some(next) => from = next,
            None => return finish(output, &whole, Ok(())),
        }
    }
}
