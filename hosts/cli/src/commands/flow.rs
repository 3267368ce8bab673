//! `flow`: the flows a server can start.

use crate::client::lists::whole;
use crate::client::{Body, Client, ServerOptions, diagnostics, show};
use crate::definitions::{flow_name, read_flow};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use crate::table::{NOTHING, listing, time};
use crate::views::{plain, text};
use clap::{Args, Subcommand};
use reqwest::Method;
use starbridge_flow::syntax::Format;
use starbridge_flow::value::{Object, Value};
use std::path::PathBuf;

/// Puts, shows, lists and deletes the flows of a server
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge flow put order.json\n  starbridge flow list\n  starbridge flow get order > order.json\n  starbridge flow set order --max-running 5"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Puts a definition as the flow's latest version
    Put {
        /// The flow's file (JSON or YAML); `-` reads stdin
        file: PathBuf,
        /// The flow's name; otherwise the one in the definition, otherwise the file's
        #[arg(long)]
        name: Option<String>,
        /// Only checks it on the server, and keeps nothing
        #[arg(long)]
        check: bool,
        /// Also if it gives a pool of concurrency keys another limit than other flows do: put those with the same limit next
        #[arg(long, conflicts_with = "check")]
        new_limits: bool,
    },
    /// Prints a flow's definition
    #[command(alias = "show")]
    Get {
        /// The flow's name
        name: String,
        /// Which version; otherwise the latest
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Lists the flows that can be started
    List,
    /// Lists the versions of a flow, the latest first
    Versions {
        /// The flow's name
        name: String,
    },
    /// Sets how many executions of a flow run at a time, and whether new ones begin; what is not named stays as it is
    Set(SetOptions),
    /// Hides a flow from starts and lists; what runs goes on
    Delete {
        /// The flow's name
        name: String,
    },
}

#[derive(Debug, Args)]
struct SetOptions {
    /// The flow's name
    name: String,
    /// So many run at a time; the others wait. 0 lets none begin
    #[arg(long, value_name = "N", conflicts_with = "no_max_running")]
    max_running: Option<u64>,
    /// As many run as are started
    #[arg(long)]
    no_max_running: bool,
    /// Lets none begin until it is resumed; what runs goes on
    #[arg(long, conflicts_with = "resume")]
    pause: bool,
    /// Lets executions begin again
    #[arg(long)]
    resume: bool,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    match &options.action {
        Action::Put {
            file,
            name,
            check,
            new_limits,
        } => {
            let how = match (check, new_limits) {
                (true, _) => Put::Check,
                (false, true) => Put::WithNewLimits,
                (false, false) => Put::Plain,
            };
            put(&client, file, name.as_deref(), how)
        }
        Action::Get { name, version } => get(&client, name, *version),
        Action::List => list(&client),
        Action::Versions { name } => versions(&client, name),
        Action::Set(set_options) => set(&client, set_options),
        Action::Delete { name } => {
            client.delete(&["flows", name])?;
            output.note(&format!("`{name}` can't be started any more; what runs goes on"));
            Ok(())
        }
    }
}

/// What becomes of a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    /// It is checked and not stored.
    Check,
    /// It is put.
    Plain,
    /// It is put, whatever limits other flows give its pools.
    WithNewLimits,
}

fn put(client: &Client, file: &std::path::Path, name: Option<&str>, how: Put) -> Result<(), Exit> {
    let output = client.output();
    let source = read_flow(file, output)?;
    let name = name.map_or_else(|| flow_name(&source), str::to_owned);
    if name.starts_with('<') {
        let help = "give it one with `--name`, or in the definition";
        return Err(bad(output, "the flow has no name", help));
    }
    let kind = match source.format() {
        Format::Json => "application/json",
        Format::Yaml => "application/yaml",
    };
    let body = Body::Text(kind, source.text().to_owned());
    let new_limits = [("newLimits", "true".to_owned())];
    let asked = match how {
        Put::Check => client.ask(Method::POST, &["flows", &name, "check"], &[], body)?,
        Put::Plain => client.ask(Method::PUT, &["flows", &name], &[], body)?,
        Put::WithNewLimits => client.ask(Method::PUT, &["flows", &name], &new_limits, body)?,
    };
    let answer = match asked {
        Ok(answer) => answer,
        Err(problem) => {
            let undone = format!("`{}` was not put", source.name());
            let said = problem.say_about(&source, &undone, output);
            return Err(said.unwrap_or_else(|| client.say(&problem)));
        }
    };
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let put = answer.object();
    let warnings = diagnostics(&source, &put);
    if !warnings.is_empty() && !output.quiet() {
        show(&source, warnings, output);
    }
    if how == Put::Check {
        let line = match put.get("same") {
            Some(Value::Bool(true)) => format!("{name}: version {} is the same", plain(&put, "latestVersion")),
            _ => format!("{name}: it can be put"),
        };
        return finish(output, &line, Ok(()));
    }
    let unchanged = if answer.status == 200 { ", unchanged" } else { "" };
    let line = format!("{name}: version {}{unchanged}", plain(&put, "version"));
    finish(output, &line, Ok(()))
}

fn get(client: &Client, name: &str, version: Option<u64>) -> Result<(), Exit> {
    let output = client.output();
    let query = version.map(|version| ("version", version.to_string()));
    let answer = client.get(&["flows", name], query.as_slice())?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let flow = answer.object();
    let definition = flow.get("definition").cloned().unwrap_or_default();
    if flow.get("paused") == Some(&Value::Bool(true)) {
        output.note("it is paused: none begins until `starbridge flow set --resume`");
    }
    if let Some(limit) = flow.get("maxRunning").filter(|limit| **limit != Value::Null) {
        output.note(&format!("at most {} of it run at a time", limit.to_plain_text()));
    }
    let pretty = serde_json::to_string_pretty(&definition).unwrap_or_default();
    finish(output, &pretty, Ok(()))
}

fn set(client: &Client, options: &SetOptions) -> Result<(), Exit> {
    let output = client.output();
    let mut changes = Object::new();
    if let Some(limit) = options.max_running {
        changes.insert("maxRunning".into(), limit.into());
    }
    if options.no_max_running {
        changes.insert("maxRunning".into(), Value::Null);
    }
    if options.pause || options.resume {
        changes.insert("paused".into(), options.pause.into());
    }
    if changes.is_empty() {
        let help = "`--max-running`, `--no-max-running`, `--pause` and `--resume` set something";
        return Err(bad(output, "there is nothing to set", help));
    }
    let answer = client.patch(&["flows", &options.name], &changes)?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let flow = answer.object();
    let rows = [("name", "name"), ("max-running", "maxRunning"), ("paused", "paused")];
    let entries: Vec<(&str, String)> = rows.into_iter().map(|(head, key)| (head, plain(&flow, key))).collect();
    output.print(&listing(&entries))
}

fn cells(flow: &Object) -> Vec<String> {
    let hash = text(flow, "hash").unwrap_or_default();
    vec![
        plain(flow, "name"),
        plain(flow, "version"),
        time(text(flow, "createdTime")),
        hash.chars().take(12).collect(),
    ]
}

fn versions(client: &Client, name: &str) -> Result<(), Exit> {
    let heads = ["NAME", "VERSION", "PUT", "HASH"];
    whole(client, &["flows", name, "versions"], "there are none", &heads, cells)
}

fn list(client: &Client) -> Result<(), Exit> {
    let governed = governed(client);
    let row = |flow: &Object| {
        let mut row = cells(flow);
        let key = governed.iter().find(|key| text(key, "key") == text(flow, "name"));
        let limit = key.map_or_else(|| NOTHING.to_owned(), |key| plain(key, "setLimit"));
        let paused = key.is_some_and(|key| key.get("paused") == Some(&Value::Bool(true)));
        row.push(limit);
        row.push(if paused { "yes" } else { NOTHING }.to_owned());
        row
    };
    let none = "there are no flows: `starbridge flow put FILE` puts one";
    let heads = ["NAME", "VERSION", "PUT", "HASH", "MAX-RUNNING", "PAUSED"];
    whole(client, &["flows"], none, &heads, row)
}

/// The keys that stand for flows, which come before all others. None of a server without admission.
fn governed(client: &Client) -> Vec<Object> {
    let query = [("limit", "1000".to_owned())];
    let page = client.look(&["keys"], &query).unwrap_or_default();
    let keys = page.get("items").and_then(Value::as_array);
    let keys = keys.into_iter().flat_map(|keys| keys.values());
    let keys = keys.filter_map(|key| key.as_object().cloned());
    keys.filter(|key| text(key, "pool") == Some("@flow")).collect()
}
