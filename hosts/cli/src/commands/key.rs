//! `key`: the concurrency keys of a server.

use crate::client::lists::whole;
use crate::client::{Answer, Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use crate::table::listing;
use crate::views::plain;
use clap::{Args, Subcommand};
use starbridge_flow::value::{Object, Value};

/// Shows the concurrency keys of a server and sets their limits
///
/// At most as many executions as its limit says hold a slot of a key at a time; the others wait. The pool of a key is the
/// flow's name, unless the flow names another one.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge key list\n  starbridge key show deploy cluster-7\n  starbridge key set deploy cluster-7 --limit 2"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the keys that are held, waited for or set
    List,
    /// Shows a key, and who holds slots of it
    Show(KeyName),
    /// Sets the limit of a key, in place of the definition's
    Set {
        #[command(flatten)]
        name: KeyName,
        /// So many hold a slot at a time; 0 admits nobody, and what runs goes on
        #[arg(long, value_name = "N")]
        limit: u64,
    },
    /// Unsets the limit of a key: that of the definition holds again
    Unset(KeyName),
}

#[derive(Debug, Args)]
struct KeyName {
    /// The pool: the flow's name, unless the flow names another one
    pool: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    key: String,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if let Action::Show(name) | Action::Set { name, .. } | Action::Unset(name) = &options.action {
        check(name, output)?;
    }
    match &options.action {
        Action::List => list(&client),
        Action::Show(KeyName { pool, key }) => show(&client.get(&["keys", pool, key], &[])?, output),
        Action::Set { name, limit } => {
            let body: Object = [("limit".into(), Value::from(*limit))].into_iter().collect();
            show(&client.put(&["keys", &name.pool, &name.key], &body)?, output)
        }
        Action::Unset(KeyName { pool, key }) => {
            client.delete(&["keys", pool, key])?;
            output.note(&format!("the limit of `{key}` in `{pool}` is that of the definition"));
            Ok(())
        }
    }
}

/// A path can't contain a name that means a folder, or a line break: it would be the path of
/// another key.
fn check(name: &KeyName, output: Output) -> Result<(), Exit> {
    for (what, text) in [("pool", &name.pool), ("key", &name.key)] {
        if text.is_empty() || matches!(text.as_str(), "." | "..") || text.contains(char::is_control) {
            let message = format!("`{}` can't be asked for as a {what}", text.escape_debug());
            return Err(bad(
                output,
                &message,
                "it must have a letter or digit, and no line breaks; `PUT /v1/keys/{pool}/{key}` takes one with line breaks, written as `%0A`",
            ));
        }
    }
    Ok(())
}

fn show(answer: &Answer, output: Output) -> Result<(), Exit> {
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let key = answer.object();
    let rows = [
        ("pool", "pool"),
        ("key", "key"),
        ("limit", "limit"),
        ("defined", "definedLimit"),
        ("set", "setLimit"),
        ("held", "held"),
        ("waiting", "waiting"),
    ];
    let mut entries: Vec<(&str, String)> = rows
        .into_iter()
        .map(|(head, member)| (head, plain(&key, member)))
        .collect();
    let holders = key.get("holders").and_then(Value::as_array);
    let holders = holders.into_iter().flat_map(|holders| holders.values());
    let holders: Vec<&str> = holders.filter_map(Value::as_str).collect();
    entries.push(("holders", holders.join(", ")));
    output.print(&listing(&entries))
}

fn list(client: &Client) -> Result<(), Exit> {
    let members = ["pool", "key", "limit", "held", "waiting", "setLimit"];
    let row = |key: &Object| members.iter().map(|member| plain(key, member)).collect();
    let heads = ["POOL", "KEY", "LIMIT", "HELD", "WAITING", "SET"];
    let none = "there are no keys: a flow has them with `concurrency`";
    whole(client, &["keys"], none, &heads, row)
}
