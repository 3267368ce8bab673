//! `why`: explains why an execution of a server does not go on.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{listing, time};
use crate::views::{how_it_failed, id_of, place, plain, text, waited_for};
use clap::Args;
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped;

/// Says why an execution of a server does not go on, and what can be done
///
/// What needs somebody comes first. Then a line for each step that is open.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge why order/order-7")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let id = id_of(&client, &options.execution)?;
    let answer = client.get(&["executions", &id, "why"], &[])?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let answer = answer.object();
    match answer.get("waitingFor").and_then(Value::as_object) {
        Some(first) => output.print(&shown(&answer, first)),
        None => output.print(&ended(&client.get(&["executions", &id], &[])?.object())),
    }
}

/// How an execution ended, and what lets it go on.
fn ended(execution: &Object) -> String {
    let status = plain(execution, "status");
    let acts: &[&str] = match status.as_str() {
        "RollbackFailed" => &["starbridge redrive", "starbridge skip --cause TEXT"],
        "Failed" | "TimedOut" | "Stopped" => &["starbridge redrive"],
        _ => &[],
    };
    let mut entries = vec![("status", status), ("reason", "it has ended".to_owned())];
    entries.extend(how_it_failed(execution));
    let id = plain(execution, "id");
    entries.extend(acts.iter().map(|act| ("act", format!("{act} {id}"))));
    listing(&entries)
}

fn shown(answer: &Object, first: &Object) -> String {
    let status = plain(answer, "status");
    let mut entries = vec![
        ("status", status),
        ("reason", plain(first, "reason")),
        ("why", plain(first, "text")),
    ];
    entries.extend(waited_for(first));
    if first.contains_key("position") {
        entries.push(("position", plain(first, "position")));
    }
    let times = [
        ("since", "since"),
        ("until", "until"),
        ("leaseUntil", "held until"),
        ("waitUntil", "waits until"),
        ("timeoutAt", "times out"),
    ];
    for (key, head) in times {
        if let Some(at) = text(first, key) {
            entries.push((head, time(Some(at))));
        }
    }
    if let Some(error) = text(first, "error") {
        entries.push(("error", error.to_owned()));
    }
    if let Some(act) = text(first, "act") {
        entries.push(("act", act.to_owned()));
    }
    let waits = answer.get("waits").and_then(Value::as_array);
    let waits = waits.into_iter().flat_map(|waits| waits.values().iter().skip(1));
    let mut all = listing(&entries);
    for wait in waits.filter_map(Value::as_object) {
        let place = place(wait.get("path"));
        let (reason, why) = (plain(wait, "reason"), plain(wait, "text"));
        all.push_str(&escaped(&format!("also {reason}{place}: {why}")));
        all.push('\n');
    }
    all
}
