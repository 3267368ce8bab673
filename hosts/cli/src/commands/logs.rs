//! `logs`: shows the stderr of the programs of an execution.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::time;
use crate::views::{id_of, place, plain, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped;

/// The largest number of logs on a page of the server.
const PAGE_LOGS: &str = "100";

/// Shows what the programs of an execution printed on stderr
///
/// Of each attempt of a `cmd:` task, and of each task that `starbridge worker` did, the last 64 KiB are kept with the execution.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge logs nightly/2026-01-01 --step build")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// Only of the step of this name
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let mut from: Option<String> = None;
    let mut any = false;
    loop {
        let mut query = vec![("limit", PAGE_LOGS.to_owned())];
        query.extend(options.step.clone().map(|step| ("step", step)));
        query.extend(from.map(|from| ("from", from)));
        let answer = client.get(&["executions", &id, "logs"], &query)?;
        let (logs, next) = answer.page();
        any |= !logs.is_empty();
        if output.json() {
            output.result(&format!("{}\n", answer.text))?;
        } else {
            output.print(&logs.iter().map(shown).collect::<String>())?;
        }
        from = next;
        if from.is_none() {
            break;
        }
    }
    if !any {
        output.note("its programs printed nothing on stderr, or it has none");
    }
    Ok(())
}

/// Each line of a log, with its time, step and attempt.
fn shown(log: &Object) -> String {
    let step = format!("{}{}", plain(log, "step"), place(log.get("path")));
    let undone = match log.get("rollback") {
        Some(Value::Bool(true)) => " (rollback)",
        _ => "",
    };
    let head = format!("{} {step}{undone} #{}", time(text(log, "time")), plain(log, "attempt"));
    let lines = text(log, "text").unwrap_or_default().lines();
    lines
        .map(|line| format!("{}\n", escaped(&format!("{head} | {line}"))))
        .collect()
}
