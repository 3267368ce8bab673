//! `start`: starts an execution at a server.

use crate::client::{Client, ServerOptions};
use crate::definitions::read_input;
use crate::exit::Exit;
use crate::filter::split_label;
use crate::output::{Output, finish, finish_value};
use crate::views::{outcome, plain, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};
use std::path::PathBuf;

/// The longest time, in seconds, that the server lets a request wait.
const TURN_SECONDS: u64 = 60;

/// Starts an execution at a server
///
/// Its id is printed; with --wait its output, or what went wrong, as `exec` prints it. A start with a name can be
/// repeated: the same flow, name and input start nothing twice, whether the first still runs or has ended.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge start order --input '{\"id\": 7}' --name order-7 --wait 10\n\nExit codes: as always; with --wait also 1 if it has not ended in time."
)]
pub struct Options {
    /// The flow's name
    pub flow: String,
    /// The input: a JSON object, or a file that is there and holds one
    #[arg(long, value_name = "JSON|FILE", conflicts_with = "input_file")]
    pub input: Option<String>,
    /// A file with the input; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// The execution's name, unique in its flow
    #[arg(long)]
    pub name: Option<String>,
    /// The flow's version; otherwise the latest
    #[arg(long, value_name = "N")]
    pub version: Option<u64>,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// A key: a second start of the flow with the same one is the same execution, whatever its input
    #[arg(long, value_name = "KEY")]
    pub once_key: Option<String>,
    /// Its priority and that of its tasks, 9 first; otherwise 5
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub priority: Option<u8>,
    /// A number or a time: within a priority its tasks go before those with a larger one
    #[arg(long, value_name = "N|TIME", allow_negative_numbers = true)]
    pub order_time: Option<String>,
    /// Begins at this time, and not before
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    pub start_at: Option<String>,
    /// Begins after so long
    #[arg(long, value_name = "SECONDS")]
    pub delay: Option<u64>,
    /// Fails if it has not begun after so long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub start_deadline: Option<u64>,
    /// Begins when this execution has succeeded: a name, `FLOW/NAME` or an id; may be given several times
    #[arg(long, value_name = "EXECUTION")]
    pub after: Vec<String>,
    /// Begins when this execution has ended, whatever its end; may be given several times
    #[arg(long, value_name = "EXECUTION")]
    pub after_end: Vec<String>,
    /// The trace it belongs to, as W3C writes it; programs that flows run find theirs in TRACEPARENT
    #[arg(long, value_name = "TRACEPARENT")]
    pub traceparent: Option<String>,
    /// Waits for the end, so long at most
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<u64>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let body = request(options, output)?;
    let mut left = options.wait.unwrap_or(0);
    let path = ["flows", &options.flow, "executions"];
    let mut answer = client.post(&path, &waiting(left), &body)?;
    if answer.status == 200 {
        let execution = answer.object();
        let stands = match (outcome(&execution), text(&execution, "status")) {
            (Some(_), _) => "it has ended already",
            (None, Some("Delayed" | "Blocked" | "Queued")) => "it waits to begin already",
            (None, _) => "it runs already",
        };
        let how = match options.once_key {
            Some(_) => "started under the same key",
            None => "started by the same request",
        };
        output.note(&format!("{stands}, {how}"));
    }
    let id = plain(&answer.object(), "id");
    while left > TURN_SECONDS && outcome(&answer.object()).is_none() {
        left -= TURN_SECONDS;
        answer = client.get(&["executions", &id], &waiting(left))?;
    }
    let execution = answer.object();
    let over = outcome(&execution);
    if output.json() {
        let waited = options.wait.map(|_| over.unwrap_or(Err(Exit::Found)));
        return finish(output, &answer.text, waited.unwrap_or(Ok(())));
    }
    if options.wait.is_none() {
        return finish(output, &id, Ok(()));
    }
    match over {
        Some(Ok(())) => {
            let result = execution.get("output").cloned().unwrap_or_default();
            finish_value(output, &result, Ok(()))
        }
        Some(Err(exit)) => finish_value(output, &failed(&execution), Err(exit)),
        None => {
            output.note("it has not ended yet: `starbridge show` shows where it stands");
            finish_value(output, &failed(&execution), Err(Exit::Found))
        }
    }
}

fn waiting(left: u64) -> Vec<(&'static str, String)> {
    match left {
        0 => Vec::new(),
        left => vec![("wait", left.min(TURN_SECONDS).to_string())],
    }
}

/// The output for an execution that has not succeeded, in the form of `exec`.
fn failed(execution: &Object) -> Value {
    let mut shape = Object::new();
    shape.insert("status".into(), plain(execution, "status").into());
    if let Some(error) = text(execution, "error") {
        shape.insert("error".into(), error.into());
        shape.insert("cause".into(), text(execution, "cause").unwrap_or_default().into());
        let step = execution.get("step").cloned();
        shape.insert("step".into(), step.unwrap_or_default());
    }
    if let Some(rollback) = execution.get("rollback") {
        shape.insert("rollback".into(), rollback.clone());
    }
    shape.insert("id".into(), plain(execution, "id").into());
    shape.into()
}

fn request(options: &Options, output: Output) -> Result<Object, Exit> {
    let mut body = Object::new();
    let input = read_input(options.input.as_deref(), options.input_file.as_deref(), output)?;
    body.insert("input".into(), input.unwrap_or_default().into());
    if let Some(name) = &options.name {
        body.insert("name".into(), name.as_str().into());
    }
    if let Some(version) = options.version {
        body.insert("version".into(), version.into());
    }
    let order = options.order_time.as_deref().map(|given| match given.parse::<i64>() {
        Ok(number) => Value::from(number),
        Err(_) => given.into(),
    });
    let terms = [
        ("onceKey", options.once_key.as_deref().map(Value::from)),
        ("priority", options.priority.map(|priority| u32::from(priority).into())),
        ("orderTime", order),
        ("startAt", options.start_at.as_deref().map(Value::from)),
        ("delaySeconds", options.delay.map(Value::from)),
        ("startDeadlineSeconds", options.start_deadline.map(Value::from)),
        ("traceparent", options.traceparent.as_deref().map(Value::from)),
    ];
    for (member, value) in terms {
        if let Some(value) = value {
            body.insert(member.into(), value);
        }
    }
    if let Some(after) = after(options) {
        body.insert("after".into(), after);
    }
    let labels = labels(&options.labels, output)?;
    if !labels.is_empty() {
        body.insert("labels".into(), labels.into());
    }
    Ok(body)
}

fn after(options: &Options) -> Option<Value> {
    let ended = |name: &String| -> Value {
        let members = [
            ("execution".into(), name.as_str().into()),
            ("when".into(), "ended".into()),
        ];
        members.into_iter().collect::<Object>().into()
    };
    let names = options.after.iter().map(|name| Value::from(name.as_str()));
    let all: Vec<Value> = names.chain(options.after_end.iter().map(ended)).collect();
    (!all.is_empty()).then(|| all.into())
}

fn labels(given: &[String], output: Output) -> Result<Object, Exit> {
    let mut labels = Object::new();
    for label in given {
        let (key, value) = split_label(label, output)?;
        labels.insert(key.into(), value.into());
    }
    Ok(labels)
}
