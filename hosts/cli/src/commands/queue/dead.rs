//! The dead tasks of a queue.

use crate::client::Client;
use crate::client::lists::{ListLimit, Paged};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use crate::table::time;
use crate::views::{failure, plain, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};

#[derive(Debug, Args)]
pub struct ListOptions {
    /// The queue
    name: String,
    #[command(flatten)]
    most: ListLimit,
}

#[derive(Debug, Args)]
pub struct DeadOptions {
    /// The queue
    name: String,
    /// These tasks, as `dead` lists them
    #[arg(
        value_name = "EXECUTION/CALL",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    tasks: Vec<String>,
    /// All that are listed
    #[arg(long)]
    all: bool,
}

/// Lists the dead tasks of a queue.
pub fn list(client: &Client, options: &ListOptions) -> Result<(), Exit> {
    let path = ["queues", &options.name, "dead"];
    let list = Paged {
        path: &path,
        query: &[],
        heads: &["TASK", "EXECUTION", "STEP", "ATTEMPT", "TIME", "ERROR"],
        more: "there may be more: `--all` shows them, or `--limit N`",
        flow: None,
    };
    list.show(client, options.most, row)
}

fn row(task: &Object) -> Vec<String> {
    let error = text(task, "error").map(|error| failure(error, text(task, "cause")));
    vec![
        format!("{}/{}", plain(task, "execution"), plain(task, "call")),
        format!("{}/{}", plain(task, "flow"), plain(task, "name")),
        plain(task, "step"),
        plain(task, "attempt"),
        time(text(task, "time")),
        error.unwrap_or_default(),
    ]
}

/// Queues them again or removes them from the list, page by page.
pub fn change_dead(client: &Client, action: &str, options: &DeadOptions) -> Result<(), Exit> {
    let output = client.output();
    let wanted = options.tasks.iter().map(|task| wanted(task, output));
    let wanted = wanted.collect::<Result<Vec<Value>, Exit>>()?;
    let (mut done, mut not_done) = (0, 0);
    let mut cursor: Option<String> = None;
    loop {
        let mut body = Object::new();
        body.insert("action".into(), action.into());
        if !options.all {
            body.insert("tasks".into(), wanted.clone().into());
        }
        if let Some(cursor) = cursor {
            body.insert("cursor".into(), cursor.into());
        }
        let answer = client.post(&["queues", &options.name, "dead"], &[], &body)?.object();
        let count = |key: &str| {
            answer
                .get(key)
                .and_then(Value::as_number)
                .and_then(|number| number.as_u64())
        };
        done += count("done").unwrap_or(0);
        not_done += count("notDone").unwrap_or(0);
        cursor = text(&answer, "next").map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    // The named ones that are not in the list.
    let unknown = (wanted.len() as u64).saturating_sub(done + not_done);
    not_done += unknown;
    let outcome = if not_done == 0 { Ok(()) } else { Err(Exit::Found) };
    if output.json() {
        let counts: Object = [("done".into(), done.into()), ("notDone".into(), not_done.into())]
            .into_iter()
            .collect();
        return finish(output, &Value::from(counts).to_json(), outcome);
    }
    output.result(&format!("{done} done, {not_done} not done\n"))?;
    if not_done > unknown {
        output.note("what is not done: its execution goes on already, or is gone");
    }
    if unknown > 0 {
        output.note(&format!("{unknown} not listed as dead"));
    }
    outcome
}

fn wanted(task: &str, output: Output) -> Result<Value, Exit> {
    let read = task.rsplit_once('/');
    let read = read.and_then(|(execution, call)| Some((execution, call.parse::<u64>().ok()?)));
    let read = read.filter(|(execution, _)| !execution.is_empty());
    let (execution, call) = read.ok_or_else(|| {
        let help = "a task is given as `starbridge queue dead` lists it: EXECUTION/CALL";
        bad(output, &format!("`{task}` is no task"), help)
    })?;
    let members = [
        ("execution".into(), Value::from(execution)),
        ("call".into(), call.into()),
    ];
    Ok(members.into_iter().collect::<Object>().into())
}
