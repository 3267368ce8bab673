//! `list`: the executions of a server.

use crate::client::lists::{ListLimit, Paged};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::filter::{Filter, OPTIONS};
use crate::output::{Output, finish};
use crate::table::{NOTHING, table, time};
use crate::views::{error_of, plain, started, text, waiting};
use clap::Args;
use starbridge_flow::value::{Object, Value};

/// Lists the executions of a server, the newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge list --flow order --status Failed\n  starbridge list --label team=billing --from 2026-01-01T00:00:00Z --all --json\n  starbridge list --parent order/order-7 --status Failed\n  starbridge list --view 'failed in Berlin'"
)]
pub struct Options {
    #[command(flatten)]
    filter: Filter,
    /// Those that this view shows: see `starbridge view`
    #[arg(long, value_name = "NAME", conflicts_with_all = OPTIONS)]
    view: Option<String>,
    /// How many there are: by status, and by the reason why they do not go on
    #[arg(long, conflicts_with = "view", conflicts_with_all = OPTIONS)]
    counts: bool,
    #[command(flatten)]
    most: ListLimit,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if options.counts {
        return show_counts(&client, output);
    }
    let kept = match &options.view {
        None => Vec::new(),
        Some(view) => super::view::query(&client, view)?,
    };
    let mut query: Vec<(&str, String)> = options.filter.query(&client)?;
    query.extend(kept.iter().map(|(key, value)| (key.as_str(), value.clone())));
    let path = ["executions"];
    let heads = ["ID", "FLOW", "NAME", "STATUS", "STARTED", "ENDED", "WHY"];
    let list = Paged {
        path: &path,
        query: &query,
        heads: &heads,
        more: "there are more: `--all` shows them, or `--limit N`",
        flow: options.filter.flow(),
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

fn row(execution: &Object) -> Vec<String> {
    let id = plain(execution, "id");
    let name = plain(execution, "name");
    // A redrive that waits to be admitted still has the old error.
    let waits_to_go_on = matches!(text(execution, "status"), Some("Queued" | "Blocked"));
    let why = match waits_to_go_on {
        true => waiting(execution).or_else(|| error_of(execution)),
        false => error_of(execution).or_else(|| waiting(execution)),
    };
    let shown = if name == id { NOTHING.to_owned() } else { name };
    vec![
        id,
        plain(execution, "flow"),
        shown,
        plain(execution, "status"),
        time(started(execution)),
        time(text(execution, "endedTime")),
        why.unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_column_says_why_a_redrive_waits() {
        let why = |status: &str| {
            let execution: Object = serde_json::from_str(&format!(
                r#"{{"id": "1", "name": "1", "status": "{status}", "error": "No.Money", "cause": "none left",
                    "waitingFor": {{"reason": "key", "text": "it stands in line"}}}}"#
            ))
            .unwrap();
            row(&execution).pop().unwrap()
        };
        assert_eq!(why("Queued"), "key: it stands in line");
        assert_eq!(why("Blocked"), "key: it stands in line");
        assert_eq!(why("RollingBack"), "No.Money: none left");
    }
}
