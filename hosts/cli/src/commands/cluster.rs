//! `cluster`: the nodes of a cluster.

use crate::client::{Answer, Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, fault, finish};
use crate::table::{NOTHING, table};
use crate::views::{plain, text};
use clap::{Args, Subcommand};
use starbridge_flow::value::{Object, Value};
use std::time::{Duration, Instant};

/// How long the store may take to come to another node.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks whether it has.
const AGAIN: Duration = Duration::from_millis(200);

/// Shows the nodes of a cluster, or lets one leave its work to the others
///
/// Several servers over one PostgreSQL database are one: one of them has the store, the others stand by and pass on what they
/// are asked. Any of them can be asked.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge cluster --server http://a:7878,http://b:7878\n  starbridge cluster drain a"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lets a node leave its work to the others: the one that has the store hands it over, one that stands by ends
    ///
    /// A node that handed the store over stands by, and takes it again only if no other can; drained once more, it ends.
    /// Started again, it is as any other.
    Drain {
        /// The name of the node
        node: String,
    },
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    match &options.action {
        None => show(&client.get(&["cluster"], &[])?, output),
        Some(Action::Drain { node }) => drain(&client, node, output),
    }
}

fn nodes(cluster: &Object) -> impl Iterator<Item = &Object> {
    let nodes = cluster.get("nodes").and_then(Value::as_array);
    let nodes = nodes.into_iter().flat_map(|nodes| nodes.values());
    nodes.filter_map(Value::as_object)
}

fn show(answer: &Answer, output: Output) -> Result<(), Exit> {
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let cluster = answer.object();
    let is = |node: &Object, key: &str| node.get(key) == Some(&Value::from(true));
    let rows: Vec<Vec<String>> = nodes(&cluster)
        .map(|node| {
            let role = match (is(node, "owner"), is(node, "drained")) {
                (true, false) => "owner",
                (true, true) => "owner, drained",
                (false, false) => "stands by",
                (false, true) => "drained",
            };
            let silent = node.get("silentBeats").and_then(Value::as_number);
            let silent = silent.and_then(serde_json::Number::as_u64).unwrap_or_default();
            let heard = match silent {
                // Heartbeats of two nodes may cross.
                0 | 1 => "now".to_owned(),
                missed => format!("{missed} missed"),
            };
            let mut row = vec![plain(node, "name"), role.to_owned(), plain(node, "shards"), heard];
            row.extend(["version", "joined", "address"].map(|member| plain(node, member)));
            row
        })
        .collect();
    if rows.is_empty() {
        output.note("this server is not a node of a cluster");
        return Ok(());
    }
    let heads = ["NODE", "ROLE", "SHARDS", "HEARTBEAT", "VERSION", "JOINED", "ADDRESS"];
    output.print(&table(&heads, &rows))?;
    if text(&cluster, "owner").is_none() {
        output.note("no node has the store just now");
    }
    Ok(())
}

fn drain(client: &Client, node: &str, output: Output) -> Result<(), Exit> {
    let told = client.post(&["cluster", "nodes", node, "drain"], &[], &Object::new())?;
    let owned = told.object().get("owner") == Some(&Value::from(true));
    let next = match owned {
        true => Some(successor(client, node, output)?),
        false => None,
    };
    if output.json() {
        return finish(output, &told.text, Ok(()));
    }
    match next {
        Some(next) => output.note(&format!("{node} stands by, {next} has the store now")),
        None => output.note(&format!("{node} stands by, and leaves the cluster")),
    }
    Ok(())
}

/// Waits until another node has the store, and says which.
#[expect(clippy::disallowed_methods, reason = "a cluster does not say when its owner changes")]
fn successor(client: &Client, node: &str, output: Output) -> Result<String, Exit> {
    let begun = Instant::now();
    loop {
        let cluster = client.get(&["cluster"], &[])?.object();
        let owner = text(&cluster, "owner").unwrap_or(NOTHING);
        if owner != NOTHING && owner != node {
            return Ok(owner.to_owned());
        }
        if begun.elapsed() > PATIENCE {
            let message = format!("{node} still has the store");
            return Err(fault(
                output,
                &message,
                "its log says why; `starbridge cluster` shows who else could take it",
            ));
        }
        std::thread::sleep(AGAIN);
    }
}
