//! `show`: an execution of a server.

use crate::client::{Client, ServerOptions, follow};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{NOTHING, table, time, took};
use crate::views::{self, event_line, failure, id_of, outcome, place, plain, text};
use clap::Args;
use starbridge_flow::value::Object;

/// Most steps the server tells of.
const STEPS: &str = "10000";

/// Shows an execution of a server: where it stands, and what came of it
///
/// --follow shows its events on stderr as they come, over restarts of the server, until it has ended.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge show order/order-7 --steps\n  starbridge show order/order-7 --follow")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// Shows its steps instead, a line for each visit
    #[arg(long, conflicts_with = "follow")]
    pub steps: bool,
    /// Goes on until it has ended; the exit code then says how
    #[arg(long)]
    pub follow: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if options.steps {
        return steps(&client, &options.execution);
    }
    let answer = views::execution(&client, &options.execution)?;
    if !options.follow {
        return views::show(&client, &answer);
    }
    let id = plain(&answer.object(), "id");
    follow(&client, &id, 1, &mut |_, event| {
        output.note(&event_line(event));
        Ok(())
    })?;
    let answer = client.get(&["executions", &id], &[])?;
    views::show(&client, &answer)?;
    outcome(&answer.object()).unwrap_or(Ok(()))
}

fn steps(client: &Client, meant: &str) -> Result<(), Exit> {
    let output = client.output();
    let id = id_of(client, meant)?;
    let answer = client.get(&["executions", &id, "steps"], &[("limit", STEPS.to_owned())])?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let (steps, _) = answer.page();
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    const HEADS: [&str; 6] = ["STEP", "STATUS", "ATTEMPTS", "ENTERED", "TOOK", "ERROR"];
    output.print(&table(&HEADS, &rows))
}

fn row(step: &Object) -> Vec<String> {
    let (entered, ended) = (text(step, "enteredTime"), text(step, "endedTime"));
    let error = text(step, "error").map(|error| failure(error, text(step, "cause")));
    vec![
        format!("{}{}", plain(step, "step"), place(step.get("path"))),
        match text(step, "waitsUntil") {
            Some(until) => format!("{} until {}", plain(step, "status"), time(Some(until))),
            None => plain(step, "status"),
        },
        plain(step, "attempts"),
        time(entered),
        took(entered, ended).unwrap_or_else(|| NOTHING.to_owned()),
        error.unwrap_or_default(),
    ]
}
