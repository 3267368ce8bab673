//! `report`: reports a task that waits for somebody's answer, in place of whoever has its token.

use crate::acts::several_wait;
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::task_report::TaskReport;
use crate::views::{id_of, plain, show_going, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};

/// Reports a task that waits for somebody's answer, without its token
///
/// For operators: the audit list has who did it. With the task's token anybody can do the same by `callback`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge report order/order-7 succeed --output '{\"approved\": true}'\n  starbridge report order/order-7 --step approve fail --error Approval.Refused --cause 'too dear'"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// The step; needed where several wait
    #[arg(long, value_name = "NAME", conflicts_with = "event")]
    pub step: Option<String>,
    /// The event that entered the step (`show --steps --json` has it)
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    pub event: Option<u64>,
    /// A note for the audit list
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    report: TaskReport,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut body = options.report.body(output)?;
    body.insert("action".into(), options.report.word().into());
    if let Some(note) = &options.note {
        body.insert("note".into(), note.as_str().into());
    }
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let event = match options.event {
        Some(event) => event.to_string(),
        None => waiting(&client, &id, options.step.as_deref())?,
    };
    let answer = client.post(&["executions", &id, "steps", &event, "report"], &[], &body)?;
    show_going(&client, &answer)
}

/// The event of the one step that waits for a report, or of the step of that name.
fn waiting(client: &Client, id: &str, name: Option<&str>) -> Result<String, Exit> {
    let output = client.output();
    let query = [("limit", "10000".to_owned())];
    let (rows, _) = client.get(&["executions", id, "steps"], &query)?.page();
    let awaits = |row: &Object| {
        let waiting = row.get("waitingFor").and_then(Value::as_object);
        waiting.is_some_and(|waiting| text(waiting, "reason") == Some("callback"))
    };
    let named = |row: &Object| name.is_none_or(|name| text(row, "step") == Some(name));
    let found: Vec<&Object> = rows.iter().filter(|row| awaits(row) && named(row)).collect();
    let help =
        format!("`starbridge show {id} --steps` shows what became of its steps, `starbridge audit` who reported");
    match (found.as_slice(), name) {
        ([row], _) => Ok(plain(row, "event")),
        ([], Some(name)) => Err(bad(output, &format!("no step `{name}` waits for a report"), &help)),
        ([], None) => Err(bad(output, "no step of the execution waits for a report", &help)),
        (several, _) => Err(several_wait(several, "a report", output)),
    }
}
