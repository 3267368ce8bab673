//! `view`: the named filters of a server.

use crate::client::lists::whole;
use crate::client::{Answer, Client, ServerOptions};
use crate::exit::Exit;
use crate::filter::Filter;
use crate::output::{Output, bad, finish};
use crate::table::{listing, time};
use crate::views::{plain, text};
use clap::{Args, Subcommand};
use starbridge_flow::value::{Object, Value};
use starbridge_node::node::filter_pairs;

/// Keeps filters for executions under a name, for all who use a server
///
/// The console shows them over its list; `starbridge list --view NAME` lists the same.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge view set 'failed in Berlin' --status Failed --label shop=berlin\n  starbridge list --view 'failed in Berlin'\n  starbridge view list"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the views
    List,
    /// Shows a view
    Show {
        /// The view's name
        name: String,
    },
    /// Saves a view, in place of an earlier one of this name
    Set {
        /// The view's name
        #[arg(id = "view", value_name = "NAME")]
        name: String,
        #[command(flatten)]
        filter: Box<Filter>,
    },
    /// Deletes a view
    Delete {
        /// The view's name
        name: String,
    },
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    match &options.action {
        Action::List => list(&client),
        Action::Show { name } => show(&client.get(&["views", checked(name, output)?], &[])?, output),
        Action::Set { name, filter } => {
            let filter = Value::from(filter.object(&client)?);
            let body: Object = [("filter".into(), filter)].into_iter().collect();
            show(&client.put(&["views", checked(name, output)?], &body)?, output)
        }
        Action::Delete { name } => {
            client.delete(&["views", checked(name, output)?])?;
            output.note(&format!("the view `{name}` is deleted"));
            Ok(())
        }
    }
}

/// What a list is asked for, so that it is this view.
pub(super) fn query(client: &Client, name: &str) -> Result<Vec<(String, String)>, Exit> {
    let view = client.get(&["views", checked(name, client.output())?], &[])?.object();
    let filter = view.get("filter").and_then(Value::as_object);
    Ok(filter.map(filter_pairs).unwrap_or_default())
}

/// A path can't contain a name that means a folder, or a line break.
fn checked(name: &str, output: Output) -> Result<&str, Exit> {
    if name.is_empty() || matches!(name, "." | "..") || name.contains(char::is_control) {
        let message = format!("`{}` is no name of a view", name.escape_debug());
        return Err(bad(output, &message, "it has 1 to 64 characters, and no line breaks"));
    }
    Ok(name)
}

/// A filter as the options of `list`.
fn options_of(view: &Object) -> String {
    let filter = view.get("filter").and_then(Value::as_object);
    let pairs = filter.map(filter_pairs).unwrap_or_default();
    let options = pairs.iter().map(|(key, value)| match key.as_str() {
        "label" => format!("label {}", value.replacen(':', "=", 1)),
        key => format!("{key} {value}"),
    });
    options.collect::<Vec<_>>().join(", ")
}

fn show(answer: &Answer, output: Output) -> Result<(), Exit> {
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let view = answer.object();
    let entries = [
        ("name", plain(&view, "name")),
        ("filter", options_of(&view)),
        ("by", plain(&view, "by")),
        ("time", time(text(&view, "time"))),
    ];
    output.print(&listing(&entries))
}

fn list(client: &Client) -> Result<(), Exit> {
    let row = |view: &Object| {
        vec![
            plain(view, "name"),
            options_of(view),
            plain(view, "by"),
            time(text(view, "time")),
        ]
    };
    let none = "there are no views: `starbridge view set NAME` saves one";
    whole(client, &["views"], none, &["NAME", "FILTER", "BY", "TIME"], row)
}
