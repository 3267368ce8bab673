//! `schedule`: the schedules of a server.

use crate::client::lists::whole;
use crate::client::{Answer, Body, Client, ServerOptions};
use crate::definitions::read_json;
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{NOTHING, listing, time};
use crate::views::{name_of, plain, text};
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use starbridge_flow::value::{Object, Value};

/// Puts, pauses, runs, shows, lists and deletes the schedules of a server
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge schedule put nightly --flow order --cron 'CRON_TZ=Europe/Berlin 30 2 * * *' --payload '{\"all\": true}'\n  starbridge schedule pause nightly\n  starbridge schedule list"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Puts a schedule; of one that is there only what is named changes
    Put(PutOptions),
    /// Lets a schedule start nothing until it is resumed
    Pause {
        /// The schedule's name
        name: String,
    },
    /// Lets a schedule go on from now; what passed meanwhile is not missed
    Resume {
        /// The schedule's name
        name: String,
    },
    /// Starts now what a schedule starts, also while it is paused, and prints the execution's id
    Run {
        /// The schedule's name
        name: String,
    },
    /// Shows a schedule
    #[command(alias = "show")]
    Get {
        /// The schedule's name
        name: String,
    },
    /// Lists the schedules
    List,
    /// Deletes a schedule; what it started goes on
    Delete {
        /// The schedule's name
        name: String,
    },
}

#[derive(Debug, Args)]
struct PutOptions {
    /// The schedule's name
    name: String,
    /// The flow it starts; a new schedule needs one
    #[arg(long)]
    flow: Option<String>,
    /// When: five or six cron fields, maybe after `CRON_TZ=Area/City `, or `@every 1h30m`; a new schedule needs it
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// What executions get as `payload`, any JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// What becomes of a trigger while the execution before still runs
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
    /// What becomes of triggers that were missed
    #[arg(long, value_enum)]
    catch_up: Option<CatchUp>,
    /// The priority of what it starts, 9 first; otherwise 5
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// How long after its time an execution may begin at the latest; one that waits longer fails
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    start_deadline: Option<u64>,
    /// It starts nothing until it is resumed
    #[arg(long)]
    paused: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Overlap {
    /// It is left out
    Skip,
    /// It waits
    Queue,
    /// It starts all the same
    Allow,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CatchUp {
    /// They are left out
    None,
    /// The last of them starts
    Last,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    match &options.action {
        Action::Put(put_options) => put(&client, put_options),
        Action::Pause { name } => show(
            &client,
            &client.post(&["schedules", name, "pause"], &[], &Object::new())?,
        ),
        Action::Resume { name } => show(
            &client,
            &client.post(&["schedules", name, "resume"], &[], &Object::new())?,
        ),
        Action::Run { name } => {
            let answer = client.post(&["schedules", name, "run"], &[], &Object::new())?;
            match output.json() {
                true => finish(output, &answer.text, Ok(())),
                false => finish(output, &plain(&answer.object(), "id"), Ok(())),
            }
        }
        Action::Get { name } => show(&client, &client.get(&["schedules", name], &[])?),
        Action::List => list(&client),
        Action::Delete { name } => {
            client.delete(&["schedules", name])?;
            output.note(&format!("`{name}` is deleted; what it started goes on"));
            Ok(())
        }
    }
}

fn put(client: &Client, options: &PutOptions) -> Result<(), Exit> {
    let output = client.output();
    let mut body = Object::new();
    if let Some(flow) = &options.flow {
        body.insert("flow".into(), flow.as_str().into());
    }
    if let Some(cron) = &options.cron {
        body.insert("cron".into(), cron.as_str().into());
    }
    if let Some(payload) = &options.payload {
        let payload = read_json(payload, "`--payload`", output)?;
        body.insert("payload".into(), payload);
    }
    let word = |value: clap::builder::PossibleValue| Value::from(value.get_name());
    if let Some(overlap) = options.overlap.and_then(|overlap| overlap.to_possible_value()) {
        body.insert("overlap".into(), word(overlap));
    }
    if let Some(catch_up) = options.catch_up.and_then(|catch_up| catch_up.to_possible_value()) {
        body.insert("catchUp".into(), word(catch_up));
    }
    if let Some(priority) = options.priority {
        body.insert("priority".into(), u32::from(priority).into());
    }
    if let Some(seconds) = options.start_deadline {
        body.insert("startDeadlineSeconds".into(), seconds.into());
    }
    if options.paused {
        body.insert("paused".into(), true.into());
    }
    let path = ["schedules", options.name.as_str()];
    match client.ask(Method::PATCH, &path, &[], Body::Json(&body))? {
        Ok(answer) => show(client, &answer),
        Err(problem) if problem.code() == "NoSuchSchedule" && (options.flow.is_none() || options.cron.is_none()) => {
            let message = format!(
                "there is no schedule `{}`, and a new one needs `--flow` and `--cron`",
                options.name
            );
            let near = client.near(&problem, &path, None);
            Err(output.fail_as(Exit::Bad, problem.code(), &message, near.as_deref()))
        }
        Err(problem) if problem.code() == "NoSuchSchedule" => show(client, &client.put(&path, &body)?),
        Err(problem) => Err(client.say(&problem)),
    }
}

fn show(client: &Client, answer: &Answer) -> Result<(), Exit> {
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let schedule = answer.object();
    let mut entries: Vec<(&str, String)> = Vec::new();
    for (key, value) in &schedule {
        match key.as_str() {
            "nextTime" => entries.push(("next", time(value.as_str()))),
            "latestExecution" => {
                let id = value.to_plain_text();
                entries.push(("latest", name_of(client, &id).unwrap_or(id)));
            }
            "latestTime" => entries.push(("triggered", time(value.as_str()))),
            "latestError" => entries.push(("error", one_line(&value.to_plain_text()))),
            "catchUp" => entries.push(("catch-up", value.to_plain_text())),
            "startDeadlineSeconds" => entries.push(("start-deadline", value.to_plain_text())),
            _ => entries.push((key.as_str(), value.to_plain_text())),
        }
    }
    output.print(&listing(&entries))
}

/// An error in one line. That of an input that does not fit has a line for each misfit.
fn one_line(error: &str) -> String {
    let mut lines = error.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let others: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    match others.is_empty() {
        true => first.to_owned(),
        false => format!("{first}: {}", others.join("; ")),
    }
}

fn list(client: &Client) -> Result<(), Exit> {
    let row = |schedule: &Object| {
        let paused = schedule
            .get("paused")
            .is_some_and(|paused| *paused == Value::from(true));
        let next = match text(schedule, "nextTime") {
            None if paused => "paused".to_owned(),
            None => NOTHING.to_owned(),
            next => time(next),
        };
        vec![
            plain(schedule, "name"),
            plain(schedule, "flow"),
            plain(schedule, "cron"),
            next,
            plain(schedule, "latestExecution"),
            one_line(text(schedule, "latestError").unwrap_or_default()),
        ]
    };
    let none = "there are no schedules: `starbridge schedule put` puts one";
    whole(
        client,
        &["schedules"],
        none,
        &["NAME", "FLOW", "CRON", "NEXT", "LATEST", "ERROR"],
        row,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_several_lines_is_shown_in_one() {
        assert_eq!(one_line("there is no such flow"), "there is no such flow");
        let two = "the input does not fit\n  /a: must be a number\n  /b: must be text\n";
        assert_eq!(
            one_line(two),
            "the input does not fit: /a: must be a number; /b: must be text"
        );
    }
}
