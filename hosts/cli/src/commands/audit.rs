//! `audit`: what operators did on a server.

use crate::arguments::read_time;
use crate::client::lists::{ListLimit, Paged};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::time;
use crate::views::{plain, text};
use clap::Args;
use clap::builder::PossibleValuesParser;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::AuditKind;

/// Lists what operators did on a server, the newest first
///
/// Starts, and what workers report, are in the histories of executions.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge audit --by ann --from 2026-01-01T00:00:00Z\n  starbridge audit --kind queue --object photos"
)]
pub struct Options {
    /// By whoever has the token of this name; `local` where none is asked for
    #[arg(long, value_name = "TOKEN")]
    pub by: Option<String>,
    /// What was done, in one word, for example `stop`
    #[arg(long, value_name = "WORD")]
    pub action: Option<String>,
    /// Done to an object of this kind
    #[arg(long, value_parser = PossibleValuesParser::new(AuditKind::ALL.map(AuditKind::as_str)))]
    pub kind: Option<String>,
    /// Done to the object of this name; an execution's is its id
    #[arg(long, value_name = "NAME")]
    pub object: Option<String>,
    /// At this time or after (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    pub from: Option<String>,
    /// Before this time (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time)]
    pub to: Option<String>,
    #[command(flatten)]
    most: ListLimit,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let wanted = [
        ("by", &options.by),
        ("action", &options.action),
        ("kind", &options.kind),
        ("object", &options.object),
        ("from", &options.from),
        ("to", &options.to),
    ];
    let wanted = wanted
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.clone()?)));
    let query: Vec<(&str, String)> = wanted.collect();
    let list = Paged {
        path: &["audit"],
        query: &query,
        heads: &["TIME", "BY", "ACTION", "KIND", "OBJECT", "DETAIL"],
        more: "there are more: `--all` shows them, or `--limit N`",
        flow: None,
    };
    list.show(&client, options.most, row)
}

fn row(entry: &Object) -> Vec<String> {
    let detail = entry.get("detail").and_then(Value::as_object);
    let detail = detail.filter(|detail| !detail.is_empty());
    vec![
        time(text(entry, "time")),
        plain(entry, "by"),
        plain(entry, "action"),
        plain(entry, "kind"),
        plain(entry, "object"),
        detail
            .map(|detail| Value::from(detail.clone()).to_json())
            .unwrap_or_default(),
    ]
}
