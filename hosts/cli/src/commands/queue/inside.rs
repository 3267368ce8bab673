//! What is in a queue: its tasks and its workers.

use crate::client::Client;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, table, time};
use crate::views::{plain, text};
use clap::{Args, ValueEnum};
use starbridge_flow::value::{Object, Value};

#[derive(Debug, Args)]
pub struct TasksOptions {
    /// The queue
    name: String,
    /// Which tasks: those handed out next, those that workers have, or those that failed for good
    #[arg(long, value_enum, default_value_t = State::Waiting)]
    state: State,
    /// So many at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    /// Those handed out next
    Waiting,
    /// Those that workers have
    Held,
    /// Those that failed for good
    Dead,
}

/// Lists the tasks of a queue.
pub fn tasks(client: &Client, options: &TasksOptions) -> Result<(), Exit> {
    let (word, stands) = match options.state {
        State::Waiting => ("waiting", "SINCE"),
        State::Held => ("held", "HELD BY"),
        State::Dead => ("dead", "ERROR"),
    };
    let query = [("state", word.to_owned()), ("limit", options.limit.to_string())];
    let answer = client.get(&["queues", &options.name, "tasks"], &query)?;
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let (tasks, _) = answer.page();
    let row = |task: &Object| {
        let how = match options.state {
            State::Waiting => time(text(task, "since")),
            State::Held => format!("{} since {}", plain(task, "worker"), time(text(task, "heldTime"))),
            State::Dead => plain(task, "error"),
        };
        vec![
            format!("{}/{}", plain(task, "execution"), plain(task, "call")),
            format!("{}/{}", plain(task, "flow"), plain(task, "name")),
            plain(task, "step"),
            plain(task, "attempt"),
            how,
            task.get("input").map_or_else(|| NOTHING.to_owned(), Value::to_json),
        ]
    };
    let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
    if rows.is_empty() {
        output.note("there are none");
        return Ok(());
    }
    output.print(&table(
        &["TASK", "EXECUTION", "STEP", "ATTEMPT", stands, "INPUT"],
        &rows,
    ))
}

/// Lists the workers of a queue.
pub fn workers(client: &Client, name: &str) -> Result<(), Exit> {
    let answer = client.get(&["queues", name, "workers"], &[])?;
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let (workers, _) = answer.page();
    let row = |worker: &Object| {
        let polls = plain(worker, "polls");
        vec![
            plain(worker, "worker"),
            plain(worker, "held"),
            time(text(worker, "since")),
            if polls == "0" {
                "no".to_owned()
            } else {
                "yes".to_owned()
            },
        ]
    };
    let rows: Vec<Vec<String>> = workers.iter().map(row).collect();
    if rows.is_empty() {
        output.note(&format!(
            "it has none now: `starbridge worker --queue {name} -- PROGRAM` is one"
        ));
        return Ok(());
    }
    output.print(&table(&["WORKER", "HAS", "SINCE", "WAITS"], &rows))
}
