//! `resolve`: decides for a step that waits for an operator.

use crate::acts::several_wait;
use crate::client::{Client, ServerOptions};
use crate::definitions::read_object;
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::views::{id_of, plain, show_going, text};
use clap::{Args, ValueEnum};
use starbridge_flow::value::Object;

/// Decides for a step that waits for an operator
///
/// `retry` makes another attempt, `succeed` ends the step well with the output given, `fail` fails it for good.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge resolve order/order-7 succeed --output '{\"paid\": true}' --note 'paid by phone'"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// What is to happen
    #[arg(value_name = "ACTION")]
    pub action: Action,
    /// The step; needed where several wait
    #[arg(long, value_name = "NAME", conflicts_with = "event")]
    pub step: Option<String>,
    /// The event that entered the step (`show --steps --json` has it)
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    pub event: Option<u64>,
    /// The step's output, a JSON object; otherwise `{}`
    #[arg(long, value_name = "JSON")]
    pub output: Option<String>,
    /// The error it fails with; otherwise its own
    #[arg(long, value_name = "NAME")]
    pub error: Option<String>,
    /// Why it fails
    #[arg(long, value_name = "TEXT", requires = "error")]
    pub cause: Option<String>,
    /// A note for the history
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// What becomes of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Try again
    Retry,
    /// Succeed with an output
    Succeed,
    /// Fail for good
    Fail,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Succeed => "succeed",
            Self::Fail => "fail",
        }
    }
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let mut body = Object::new();
    body.insert("action".into(), options.action.word().into());
    if let Some(given) = &options.output {
        let given = read_object(given, "`--output`", "a step's output", output)?;
        body.insert("output".into(), given.into());
    }
    for (key, value) in [
        ("error", &options.error),
        ("cause", &options.cause),
        ("note", &options.note),
    ] {
        if let Some(value) = value {
            body.insert(key.into(), value.as_str().into());
        }
    }
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let event = match options.event {
        Some(event) => event.to_string(),
        None => waiting(&client, &id, options.step.as_deref())?,
    };
    let answer = client.post(&["executions", &id, "steps", &event, "resolve"], &[], &body)?;
    show_going(&client, &answer)
}

/// The event of the only step that waits for an operator, or of the step with that name.
fn waiting(client: &Client, id: &str, name: Option<&str>) -> Result<String, Exit> {
    let output = client.output();
    let named = |row: &Object| name.is_none_or(|name| text(row, "step") == Some(name));
    let (rows, _) = client
        .get(&["executions", id, "steps"], &[("status", "manual".to_owned())])?
        .page();
    let found: Vec<&Object> = rows.iter().filter(|row| named(row)).collect();
    match (found.as_slice(), name) {
        ([row], _) => Ok(plain(row, "event")),
        // The server knows who decided for it earlier.
        ([], Some(name)) => {
            let (rows, _) = client.get(&["executions", id, "steps"], &[])?.page();
            let last = rows.iter().rev().find(|row| named(row));
            last.map(|row| plain(row, "event"))
                .ok_or_else(|| bad(output, &format!("the execution was not in a step `{name}`"), ""))
        }
        ([], None) => Err(bad(output, "no step of the execution waits for an operator", "")),
        (several, _) => Err(several_wait(several, "an operator", output)),
    }
}
