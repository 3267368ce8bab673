//! `callback`: reports a task that waits for somebody's answer.

use crate::client::{Client, ServerOptions};
use crate::definitions::{STDIN, read_text};
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::task_report::TaskReport;
use clap::{Args, Subcommand};
use starbridge_flow::value::Object;
use std::path::Path;

/// Reports a task that waits for somebody's answer
///
/// Whoever has a task's token may report it; no other token is needed.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge callback 7b2274… succeed --output '{\"approved\": true}'\n  starbridge callback - fail --error Approval.Refused --cause 'too dear' < token"
)]
pub struct Options {
    /// The task's token; `-` reads it from stdin
    #[arg(value_name = "TOKEN")]
    pub task: String,
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    report: Report,
}

#[derive(Debug, Subcommand)]
enum Report {
    #[command(flatten)]
    Ended(TaskReport),
    /// The task is still being worked on
    Heartbeat,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let (verb, body) = match &options.report {
        Report::Ended(report) => (report.word(), report.body(output)?),
        Report::Heartbeat => ("heartbeat", Object::new()),
    };
    let token = match options.task.as_str() {
        STDIN => read_text(Path::new(STDIN), output)?,
        token => token.to_owned(),
    };
    let token = token.trim();
    if token.is_empty() {
        return Err(bad(
            output,
            "there is no token",
            "a task's token was given to whoever is to report it",
        ));
    }
    let client = Client::new(&options.server, output)?;
    client.post(&["callbacks", token, verb], &[], &body)?;
    output.note("reported");
    Ok(())
}
