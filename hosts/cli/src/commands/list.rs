//! `list`: the executions of a server.

use super::start::split_label;
use crate::arguments::read_time;
use crate::client::lists::{ListLimit, Paged};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{NOTHING, table, time};
use crate::views::{error_of, id_of, plain, text, waiting};
use clap::Args;
use clap::builder::PossibleValuesParser;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Status;

/// Lists the executions of a server, the newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge list --flow order --status Failed\n  starbridge list --label team=billing --from 2026-01-01T00:00:00Z --all --json\n  starbridge list --parent order/order-7 --status Failed"
)]
pub struct Options {
    /// Of this flow
    #[arg(long)]
    pub flow: Option<String>,
    /// In this state; may be given several times
    #[arg(long, value_name = "STATUS", value_parser = statuses(), ignore_case = true)]
    pub status: Vec<String>,
    /// That do not go on for this reason: broken (set aside), manual, paused, startTime, dependency, key, flowLimit, flowPaused,
    /// admission, queue, worker, callback, child, retry, poll, timer or running
    #[arg(long, value_name = "REASON")]
    pub reason: Option<String>,
    /// That wait for this key, flow, queue, step or execution (FLOW/NAME; of a child its id)
    #[arg(long, value_name = "KEY", requires = "reason")]
    pub of: Option<String>,
    /// How many there are: by status, and by the reason why they do not go on
    #[arg(long, conflicts_with_all = ["flow", "status", "reason", "of", "name", "parent", "root", "labels", "from", "to", "error", "step", "ended_from", "ended_to"])]
    pub counts: bool,
    /// Whose name begins so
    #[arg(long)]
    pub name: Option<String>,
    /// Started by this execution: its id, or FLOW/NAME
    #[arg(long, value_name = "ID|FLOW/NAME")]
    pub parent: Option<String>,
    /// Of the family that began with this execution: its id, or FLOW/NAME
    #[arg(long, value_name = "ID|FLOW/NAME")]
    pub root: Option<String>,
    /// With this label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Started at this time or after (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    pub from: Option<String>,
    /// Started before this time (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    pub to: Option<String>,
    /// That ended with the error of this name
    #[arg(long, value_name = "NAME")]
    pub error: Option<String>,
    /// Whose error arose in the step of this name
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Ended at this time or after (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    pub ended_from: Option<String>,
    /// Ended before this time (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    pub ended_to: Option<String>,
    #[command(flatten)]
    most: ListLimit,
    #[command(flatten)]
    server: ServerOptions,
}

/// The words for statuses.
fn statuses() -> PossibleValuesParser {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
}

/// A status in the server's form, from any form on the command line.
fn canonical(word: &str) -> &str {
    let statuses = Status::ALL.into_iter().map(Status::as_str);
    statuses
        .into_iter()
        .find(|status| status.eq_ignore_ascii_case(word))
        .unwrap_or(word)
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if options.counts {
        return show_counts(&client, output);
    }
    let mut query = query(options, output)?;
    for (key, meant) in [("parent", &options.parent), ("root", &options.root)] {
        if let Some(meant) = meant {
            query.push((key, id_of(&client, meant)?));
        }
    }
    let path = ["executions"];
    let heads = ["ID", "FLOW", "NAME", "STATUS", "STARTED", "ENDED", "WHY"];
    let list = Paged {
        path: &path,
        query: &query,
        heads: &heads,
        more: "there are more: `--all` shows them, or `--limit N`",
    };
    list.show(&client, options.most, row)
}

/// How many executions have each status, and each reason.
fn show_counts(client: &Client, output: Output) -> Result<(), Exit> {
    let answer = client.get(&["executions", "counts"], &[])?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let answer = answer.object();
    let mut rows = Vec::new();
    for (member, kind) in [("statuses", "status"), ("reasons", "reason")] {
        let counts = answer.get(member).and_then(Value::as_object);
        for (word, count) in counts.into_iter().flat_map(Object::iter) {
            rows.push(vec![kind.to_owned(), word.to_string(), count.to_plain_text()]);
        }
    }
    output.print(&table(&["", "", "EXECUTIONS"], &rows))
}

fn query(options: &Options, output: Output) -> Result<Vec<(&'static str, String)>, Exit> {
    let single = [
        ("flow", &options.flow),
        ("reason", &options.reason),
        ("reasonOf", &options.of),
        ("name", &options.name),
        ("from", &options.from),
        ("to", &options.to),
        ("error", &options.error),
        ("step", &options.step),
        ("endedFrom", &options.ended_from),
        ("endedTo", &options.ended_to),
    ];
    let mut query: Vec<(&'static str, String)> = single
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.clone()?)))
        .collect();
    query.extend(
        options
            .status
            .iter()
            .map(|status| ("status", canonical(status).to_owned())),
    );
    for label in &options.labels {
        let (key, value) = split_label(label, output)?;
        query.push(("label", format!("{key}:{value}")));
    }
    Ok(query)
}

fn row(execution: &Object) -> Vec<String> {
    let id = plain(execution, "id");
    let name = plain(execution, "name");
    let error = error_of(execution).or_else(|| waiting(execution));
    let shown = if name == id { NOTHING.to_owned() } else { name };
    vec![
        id,
        plain(execution, "flow"),
        shown,
        plain(execution, "status"),
        time(text(execution, "startedTime")),
        time(text(execution, "endedTime")),
        error.unwrap_or_default(),
    ]
}
