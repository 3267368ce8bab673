//! `queue`: the worker queues of a server.

mod dead;
mod inside;

use crate::client::lists::whole;
use crate::client::{Answer, Body, Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use crate::table::{NOTHING, listing};
use crate::views::plain;
use clap::{Args, Subcommand};
use reqwest::Method;
use starbridge_flow::value::{Object, Value};
use starbridge_runtime::QueueSettings;

/// Shows and sets the worker queues of a server, and deals with their dead tasks
///
/// A task is dead when it failed, no retry was left and nothing caught it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge queue list\n  starbridge queue set resize --max-concurrent 8 --rate 20\n  starbridge queue requeue resize --all"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the queues
    List,
    /// Shows a queue
    Show {
        /// The queue
        name: String,
    },
    /// Sets a queue; what is not named stays as it is
    Set(SetOptions),
    /// Hands out no task of a queue until it is resumed; what workers have stays theirs
    Pause {
        /// The queue
        name: String,
    },
    /// Hands out tasks of a queue again
    Resume {
        /// The queue
        name: String,
    },
    /// Lists the tasks of a queue, each with its input
    Tasks(inside::TasksOptions),
    /// Lists the workers of a queue
    Workers {
        /// The queue
        name: String,
    },
    /// Lists the tasks that failed for good
    Dead(dead::ListOptions),
    /// Queues dead tasks anew: their executions go on from where they failed
    Requeue(dead::DeadOptions),
    /// Lists dead tasks no longer; their executions stay as they are
    Drop(dead::DeadOptions),
}

#[derive(Debug, Args)]
struct SetOptions {
    /// The queue
    name: String,
    /// So many tasks workers may have at a time; `none`: as many as they like
    #[arg(long, value_name = "N|none")]
    max_concurrent: Option<String>,
    /// So many tasks are handed out in a second; `none`: as many as workers take
    #[arg(long, value_name = "R|none")]
    rate: Option<String>,
    /// Retries of a task whose worker fell silent, where its step does not say
    #[arg(long, value_name = "N")]
    redeliver: Option<u64>,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    match &options.action {
        Action::List => list(&client),
        Action::Show { name } => show(&client.get(&["queues", name], &[])?, output),
        Action::Set(set_options) => set(&client, set_options),
        Action::Pause { name } => change(&client, name, [("paused", true.into())].to_vec()),
        Action::Resume { name } => change(&client, name, [("paused", false.into())].to_vec()),
        Action::Tasks(tasks_options) => inside::tasks(&client, tasks_options),
        Action::Workers { name } => inside::workers(&client, name),
        Action::Dead(list_options) => dead::list(&client, list_options),
        Action::Requeue(dead_options) => dead::change_dead(&client, "requeue", dead_options),
        Action::Drop(dead_options) => dead::change_dead(&client, "drop", dead_options),
    }
}

fn set(client: &Client, options: &SetOptions) -> Result<(), Exit> {
    let output = client.output();
    let number = |option: &str, text: &str| match text {
        "none" => Ok(Value::Null),
        text => {
            let read = serde_json::from_str::<Value>(text).ok();
            let read = read.filter(|value| value.as_number().is_some());
            read.ok_or_else(|| bad(output, &format!("`{option}` is a number or `none`, not `{text}`"), ""))
        }
    };
    let mut changes = Vec::new();
    if let Some(text) = &options.max_concurrent {
        changes.push(("maxConcurrent", number("--max-concurrent", text)?));
    }
    if let Some(text) = &options.rate {
        changes.push(("ratePerSecond", number("--rate", text)?));
    }
    if let Some(redeliver) = options.redeliver {
        changes.push(("redeliver", redeliver.into()));
    }
    if changes.is_empty() {
        let help = "`--max-concurrent`, `--rate` and `--redeliver` set something";
        return Err(bad(output, "there is nothing to set", help));
    }
    change(client, &options.name, changes)
}

/// Changes some settings of a queue. A server replaces all of them, so they are read first.
fn change(client: &Client, name: &str, changes: Vec<(&str, Value)>) -> Result<(), Exit> {
    let mut settings = Object::new();
    match client.ask(Method::GET, &["queues", name], &[], Body::Nothing)? {
        Ok(answer) => {
            let now = answer.object();
            for key in QueueSettings::MEMBERS {
                if let Some(value) = now.get(key) {
                    settings.insert(key.into(), value.clone());
                }
            }
        }
        // A setting may come before the first task, and a mistyped name looks the same.
        Err(problem) if problem.code() == "NoSuchQueue" => {
            let new = format!("`{name}` is new: it has no task yet; `starbridge queue list` shows the others");
            client.output().note(&new);
        }
        Err(problem) => return Err(client.say(&problem)),
    }
    for (key, value) in changes {
        settings.insert(key.into(), value);
    }
    show(&client.put(&["queues", name], &settings)?, client.output())
}

fn show(answer: &Answer, output: Output) -> Result<(), Exit> {
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let queue = answer.object();
    let rows = [
        ("name", "name"),
        ("waiting", "waiting"),
        ("held", "held"),
        ("dead", "dead"),
        ("idle workers", "workers"),
        ("busy workers", "busyWorkers"),
        ("age", "ageSeconds"),
        ("max-concurrent", "maxConcurrent"),
        ("rate", "ratePerSecond"),
        ("paused", "paused"),
        ("redeliver", "redeliver"),
    ];
    // The answer to a change has only the settings.
    let there = rows.into_iter().filter(|(_, key)| queue.contains_key(key));
    let entries: Vec<(&str, String)> = there.map(|(name, key)| (name, cell(&queue, key))).collect();
    output.print(&listing(&entries))
}

fn cell(queue: &Object, key: &str) -> String {
    match (key, plain(queue, key)) {
        ("ageSeconds", age) if age != NOTHING => format!("{age} s"),
        ("ratePerSecond", rate) if rate != NOTHING => format!("{rate} a second"),
        (_, text) => text,
    }
}

fn list(client: &Client) -> Result<(), Exit> {
    let keys = [
        "name",
        "waiting",
        "held",
        "dead",
        "workers",
        "busyWorkers",
        "ageSeconds",
        "maxConcurrent",
        "ratePerSecond",
        "paused",
    ];
    let row = |queue: &Object| keys.iter().map(|key| cell(queue, key)).collect();
    let heads = [
        "NAME", "WAITING", "HELD", "DEAD", "IDLE", "BUSY", "AGE", "MAX", "RATE", "PAUSED",
    ];
    let none = "there are no queues: one begins with the first task of a flow, or with `starbridge queue set`";
    whole(client, &["queues"], none, &heads, row)
}
