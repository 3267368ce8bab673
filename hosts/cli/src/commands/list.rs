//! `list`: the executions of a server.

use super::start::split_label;
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::shown::{failure, plain, text};
use crate::table::{NOTHING, table, time};
use clap::Args;
use starbridge_fdl::value::Object;

/// Most executions the server puts on a page.
const PAGE: u64 = 1_000;
/// So many are shown where nobody says.
const USUAL: u64 = 100;

/// Lists the executions of a server, the newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge list --flow order --status Failed\n  starbridge list --label team=billing --from 2026-01-01T00:00:00Z --all --json"
)]
pub struct Options {
    /// Of this flow
    #[arg(long)]
    pub flow: Option<String>,
    /// In this state; may be given several times
    #[arg(long, value_name = "STATUS")]
    pub status: Vec<String>,
    /// Whose name begins so
    #[arg(long)]
    pub name: Option<String>,
    /// With this label; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Started at this time or after (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Started before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// So many at most; otherwise 100
    #[arg(long, value_name = "N", conflicts_with = "all", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// All of them
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let query = query(options, output)?;
    let mut left = if options.all {
        u64::MAX
    } else {
        options.limit.unwrap_or(USUAL)
    };
    let mut rows = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = query.clone();
        query.push(("limit", left.min(PAGE).to_string()));
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        let answer = client.get(&["executions"], &query)?;
        let (items, next) = answer.page();
        if output.json() {
            output.result(&format!("{}\n", answer.text))?;
        }
        left = left.saturating_sub(items.len() as u64);
        rows.extend(items.iter().map(row));
        cursor = next;
        if cursor.is_none() || left == 0 || items.is_empty() {
            break;
        }
    }
    if output.json() {
        return Ok(());
    }
    if rows.is_empty() {
        output.note("there are none");
        return Ok(());
    }
    const HEADS: [&str; 7] = ["ID", "FLOW", "NAME", "STATUS", "STARTED", "ENDED", "ERROR"];
    output.print(&table(&HEADS, &rows))?;
    if cursor.is_some() {
        output.note("there are more: `--all` shows them, or `--limit N`");
    }
    Ok(())
}

fn query(options: &Options, output: Output) -> Result<Vec<(&'static str, String)>, Exit> {
    let single = [
        ("flow", &options.flow),
        ("name", &options.name),
        ("from", &options.from),
        ("to", &options.to),
    ];
    let mut query: Vec<(&'static str, String)> = single
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.clone()?)))
        .collect();
    query.extend(options.status.iter().map(|status| ("status", status.clone())));
    for label in &options.labels {
        let (key, value) = split_label(label, output)?;
        query.push(("label", format!("{key}:{value}")));
    }
    Ok(query)
}

fn row(execution: &Object) -> Vec<String> {
    let id = plain(execution, "id");
    let name = plain(execution, "name");
    let error = text(execution, "error").map(|error| failure(error, text(execution, "cause")));
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
