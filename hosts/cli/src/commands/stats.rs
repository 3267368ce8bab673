//! `stats`: what happened on a server in the last hour.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{NOTHING, listing, table, time};
use crate::views::{plain, text};
use clap::Args;
use starbridge_flow::value::{Object, Value};

/// Says what happened on a server in the last hour: starts, ends, and what failed
///
/// The server counts since it was started; it does not read histories for it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge stats\n  starbridge stats --flow order --json")]
pub struct Options {
    /// Failures and figures of this flow only, and of each of its steps
    #[arg(long)]
    pub flow: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let query: Vec<(&str, String)> = options.flow.iter().map(|flow| ("flow", flow.clone())).collect();
    let answer = client.get(&["stats"], &query)?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    output.print(&shown(&answer.object()))
}

fn shown(answer: &Object) -> String {
    let counts = answer
        .get("counts")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut entries = vec![
        ("since", time(text(answer, "since"))),
        ("started", plain(&counts, "started")),
    ];
    let ended = counts.get("ended").and_then(Value::as_object);
    for (status, count) in ended.into_iter().flat_map(Object::iter) {
        if count.as_number().and_then(serde_json::Number::as_u64) != Some(0) {
            entries.push((status.as_str(), count.to_plain_text().to_string()));
        }
    }
    entries.push(("failed attempts", plain(&counts, "failedAttempts")));
    entries.push(("turns", plain(&counts, "turns")));
    let mut all = listing(&entries);
    let mut tables = |member: &str, heads: &[&str], keys: &[&str]| {
        let items = answer.get(member).and_then(Value::as_array);
        let items = items.into_iter().flat_map(|items| items.values().iter());
        let row = |item: &Object| -> Vec<String> {
            let cell = |key: &&str| match item.get(key) {
                None | Some(Value::Null) => NOTHING.to_owned(),
                Some(_) => plain(item, key),
            };
            keys.iter().map(cell).collect()
        };
        let rows: Vec<Vec<String>> = items.filter_map(Value::as_object).map(row).collect();
        if !rows.is_empty() {
            all.push('\n');
            all.push_str(&table(heads, &rows));
        }
    };
    tables(
        "flows",
        &["FLOW", "STARTED", "ENDED", "FAILED", "MEDIAN MS", "P95 MS"],
        &["flow", "started", "ended", "failed", "medianMs", "p95Ms"],
    );
    tables(
        "steps",
        &["STEP", "ATTEMPTS", "FAILED", "MEDIAN MS", "P95 MS", "SINCE"],
        &["step", "attempts", "failed", "medianMs", "p95Ms", "since"],
    );
    tables(
        "failures",
        &["FLOW", "STEP", "ERROR", "EXECUTIONS", "ATTEMPTS"],
        &["flow", "step", "error", "executions", "attempts"],
    );
    all
}
