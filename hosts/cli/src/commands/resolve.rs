//! `resolve`: decides for a step that waits for an operator.

use crate::acts::several_wait;
use crate::client::{Client, ServerOptions};
use crate::definitions::read_object;
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::views::{id_of, plain, show_going, text};
use clap::{Args, ValueEnum};
use starbridge_flow::value::{Object, Value};

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
    /// The event that asks (`waitingFor.request` in `show --steps --json`), or that entered the step
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
        // An answer that names the question is not taken for a later one of the same step.
        ([row], _) => {
            let asked = row.get("waitingFor").and_then(Value::as_object);
            let request = asked.map(|asked| plain(asked, "request"));
            Ok(request
                .filter(|request| !request.is_empty())
                .unwrap_or_else(|| plain(row, "event")))
        }
        // The server knows who decided for it earlier.
        ([], Some(name)) => {
            let (rows, _) = client.get(&["executions", id, "steps"], &[])?.page();
            let last = rows.iter().rev().find(|row| named(row));
            last.map(|row| plain(row, "event"))
                .ok_or_else(|| bad(output, &format!("the execution was not in a step `{name}`"), ""))
        }
        ([], None) => Err(none_waits(client, id)),
        (several, _) => Err(several_wait(several, "an operator", output)),
    }
}

/// Reports that nothing is to be decided, and who decided last, if somebody did.
fn none_waits(client: &Client, id: &str) -> Exit {
    let message = "no step of the execution waits for an operator";
    let query = [
        ("action", "resolve".to_owned()),
        ("object", id.to_owned()),
        ("limit", "1".to_owned()),
    ];
    let page = client.look(&["audit"], &query);
    let last = page
        .as_ref()
        .and_then(|page| page.get("items")?.as_array()?.values().first()?.as_object());
    let help = match last {
        Some(last) => format!(
            "`{}` decided last, at {}; `starbridge history {id}` shows what",
            plain(last, "by"),
            plain(last, "time")
        ),
        None => format!("`starbridge why {id}` says what it waits for"),
    };
    bad(client.output(), message, &help)
}
