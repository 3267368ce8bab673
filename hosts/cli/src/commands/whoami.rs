//! `whoami`: the name and the rights of the token, as a server sees them.

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::table::{NOTHING, listing};
use crate::views::text;
use clap::Args;
use starbridge_flow::value::Value;

/// Says whom a server takes you for, and what you may do there
///
/// The name is that of the token; a server that requires none has no name for you.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  starbridge whoami --json | jq -r '.scopes[]'\n  starbridge whoami --config")]
pub struct Options {
    /// Prints the server's configuration instead, without secrets; the token needs the scope `admin`
    #[arg(long)]
    pub config: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if options.config {
        let answer = client.get(&["config"], &[])?;
        return match output.json() {
            true => finish(output, &answer.text, Ok(())),
            false => output.result(text(&answer.object(), "config").unwrap_or_default()),
        };
    }
    let answer = client.get(&["me"], &[])?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let me = answer.object();
    let scopes = me.get("scopes").and_then(Value::as_array);
    let scopes = scopes.into_iter().flat_map(|scopes| scopes.values());
    let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
    output.print(&listing(&[
        ("server", client.remote().address().to_owned()),
        ("name", text(&me, "name").unwrap_or(NOTHING).to_owned()),
        ("scopes", scopes.join(", ")),
    ]))
}
