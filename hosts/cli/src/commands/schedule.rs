//! `schedule`: what a server starts by the clock.

use crate::client::lists::whole;
use crate::client::{Answer, Client, ServerOptions};
use crate::definitions::read_json;
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{NOTHING, listing, time};
use crate::views::{name_of, plain, text};
use clap::{Args, Subcommand, ValueEnum};
use starbridge_fdl::value::{Object, Value};

/// Puts, shows, lists and deletes the schedules of a server
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge schedule put nightly --flow order --cron 'CRON_TZ=Europe/Berlin 30 2 * * *' --payload '{\"all\": true}'\n  starbridge schedule list"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Puts a schedule in place of an earlier one of that name
    Put(PutOptions),
    /// Shows a schedule
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
    /// The flow it starts
    #[arg(long)]
    flow: String,
    /// When: five or six cron fields, maybe after `CRON_TZ=Area/City `, or `@every 1h30m`
    #[arg(long, value_name = "EXPRESSION")]
    cron: String,
    /// What executions get as `payload`, any JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// What becomes of a trigger while the execution before still runs
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
    /// What becomes of triggers that were missed
    #[arg(long, value_enum)]
    catch_up: Option<CatchUp>,
    /// It starts nothing until it is put without this
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

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    match &options.action {
        Action::Put(put_options) => put(&client, put_options),
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
    body.insert("flow".into(), options.flow.as_str().into());
    body.insert("cron".into(), options.cron.as_str().into());
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
    if options.paused {
        body.insert("paused".into(), true.into());
    }
    show(client, &client.put(&["schedules", &options.name], &body)?)
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
            "catchUp" => entries.push(("catch-up", value.to_plain_text())),
            _ => entries.push((key.as_str(), value.to_plain_text())),
        }
    }
    output.print(&listing(&entries))
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
        ]
    };
    let none = "there are no schedules: `starbridge schedule put` puts one";
    whole(
        client,
        &["schedules"],
        none,
        &["NAME", "FLOW", "CRON", "NEXT", "LATEST"],
        row,
    )
}
