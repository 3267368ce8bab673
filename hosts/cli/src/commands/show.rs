//! `show`: an execution of a server.

use crate::client::{Client, ServerOptions, follow};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::{NOTHING, table, time, took};
use crate::views::{self, event_line, failure, id_of, outcome, place, plain, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};

/// Steps the server puts on a page.
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
    let path = ["executions", &id, "steps"];
    let mut query = vec![("limit", STEPS.to_owned())];
    let mut steps = Vec::new();
    loop {
        let answer = client.get(&path, &query)?;
        if output.json() {
            output.result(&format!("{}\n", answer.text))?;
        }
        let (page, next) = answer.page();
        steps.extend(page);
        query.truncate(1);
        match next {
            Some(next) => query.push(("cursor", next)),
            None => break,
        }
    }
    if output.json() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = steps.iter().flat_map(rows).collect();
    const HEADS: [&str; 6] = ["STEP", "STATUS", "ATTEMPTS", "ENTERED", "TOOK", "WHY"];
    output.print(&table(&HEADS, &rows))
}

/// The row of a visit, and one more where it was undone.
fn rows(step: &Object) -> Vec<Vec<String>> {
    let name = format!("{}{}", plain(step, "step"), place(step.get("path")));
    let run = plain(step, "run");
    let run = (run != "1").then(|| format!(" (run {run})"));
    let mut rows = vec![row(
        &format!("{name}{}", run.unwrap_or_default()),
        step,
        text(step, "enteredTime"),
    )];
    if let Some(undo) = step.get("rollback").and_then(Value::as_object) {
        rows.push(row(&format!("{name}: undo"), undo, text(undo, "startedTime")));
    }
    rows
}

fn row(name: &str, shown: &Object, began: Option<&str>) -> Vec<String> {
    let error = text(shown, "error").map(|error| failure(error, text(shown, "cause")));
    let waiting = shown.get("waitingFor").and_then(Value::as_object);
    let waiting = waiting.filter(|waiting| text(waiting, "reason") != Some("time"));
    let waiting = waiting.map(|waiting| format!("waits for {}", plain(waiting, "text")));
    let why: Vec<String> = waiting.into_iter().chain(error).collect();
    vec![
        name.to_owned(),
        match text(shown, "waitsUntil") {
            Some(until) => format!("{} until {}", plain(shown, "status"), time(Some(until))),
            None => plain(shown, "status"),
        },
        plain(shown, "attempts"),
        time(began),
        took(began, text(shown, "endedTime")).unwrap_or_else(|| NOTHING.to_owned()),
        why.join("; after "),
    ]
}
