//! `redrive`: continues an execution that ended unsuccessfully.

use crate::client::{Client, ServerOptions};
use crate::definitions::read_given;
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::views::{execution, plain, show_going, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};

/// Lets an execution that ended unsuccessfully go on where it failed
///
/// With --input the step that failed gets that input in place of its own.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge redrive order/order-7 && starbridge show order/order-7 --follow\n  starbridge redrive order/order-7 --input '{\"card\": \"another one\"}'\n  starbridge redrive order/order-7 --version latest"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// The input of the step that failed: a JSON object, or a file with it; `-` reads stdin
    #[arg(long, value_name = "JSON|FILE")]
    pub input: Option<String>,
    /// The step that gets the input, where it is another one than the one that failed
    #[arg(long, value_name = "NAME", requires = "input", conflicts_with = "event")]
    pub step: Option<String>,
    /// The event that entered that step (`show --steps --json` has it)
    #[arg(long, value_name = "EVENT", requires = "input", value_parser = clap::value_parser!(u64).range(1..))]
    pub event: Option<u64>,
    /// The version of the flow it goes on with, or `latest`; what was done must fit it
    #[arg(long, value_name = "N|latest", value_parser = read_version)]
    pub version: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

fn read_version(text: &str) -> Result<String, String> {
    match text == "latest" || text.parse::<u64>().is_ok_and(|version| version > 0) {
        true => Ok(text.to_owned()),
        false => Err("it must be the number of a version, or `latest`".to_owned()),
    }
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let input = match options.input.as_deref() {
        None => None,
        Some(given) => Some(read_given(given, "a step's input", output)?),
    };
    let client = Client::new(&options.server, output)?;
    let found = execution(&client, &options.execution)?.object();
    let id = plain(&found, "id");
    let mut body = Object::new();
    if let Some(input) = input {
        let event = match options.event {
            Some(event) => event,
            None => failed(&client, &id, options.step.as_deref().or(text(&found, "step")))?,
        };
        let edited: Object = [("event".into(), event.into()), ("input".into(), input.into())]
            .into_iter()
            .collect();
        body.insert("inputs".into(), vec![Value::from(edited)].into());
    }
    if let Some(version) = &options.version {
        let number = version.parse::<u64>().map(Value::from);
        body.insert("version".into(), number.unwrap_or_else(|_| version.as_str().into()));
    }
    let answer = client.post(&["executions", &id, "redrive"], &[], &body)?;
    show_going(&client, &answer)
}

/// The event of the last time that the execution entered a step.
fn failed(client: &Client, id: &str, step: Option<&str>) -> Result<u64, Exit> {
    let output = client.output();
    let Some(name) = step else {
        let message = "the execution did not fail in a step";
        return Err(bad(output, message, "say with `--step` which step the input is for"));
    };
    let query = [("limit", "10000".to_owned())];
    let (rows, _) = client.get(&["executions", id, "steps"], &query)?.page();
    let number = |row: &Object, key: &str| {
        row.get(key)
            .and_then(Value::as_number)
            .and_then(|number| number.as_u64())
    };
    let mut visits: Vec<&Object> = rows.iter().filter(|row| text(row, "step") == Some(name)).collect();
    let run = visits.iter().filter_map(|row| number(row, "run")).max();
    visits.retain(|row| number(row, "run") == run);
    if visits.len() > 1 {
        visits.retain(|row| text(row, "status") == Some("failed"));
    }
    match visits.as_slice() {
        [row] => number(row, "event").ok_or_else(|| bad(output, "the server names no event of the step", "")),
        [] => Err(bad(
            output,
            &format!("the execution did not fail in a step `{name}`"),
            "",
        )),
        several => {
            let message = format!("`{name}` failed in {} places", several.len());
            let help = "choose one with `--event`: `starbridge show --steps --failed --json` lists them";
            Err(bad(output, &message, help))
        }
    }
}
