//! `outbox`: starts that others write in their own transactions.

use crate::client::lists::{ListLimit, Paged, whole};
use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::table::time;
use crate::views::{plain, text};
use clap::{Args, Subcommand};
use starbridge_flow::value::Object;

/// Installs outboxes, and shows those of a server
///
/// `select starbridge.start_execution('order', '{"id": 7}')` in a transaction of a PostgreSQL database starts a flow if and only if
/// the transaction commits. A server takes these starts if its configuration names the database (`[[outboxes]]`).
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge outbox install postgres://admin@localhost/shop\n  starbridge outbox list\n  starbridge outbox refused shop"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Installs the functions into a database, or brings them up to date
    ///
    /// It makes the schema `starbridge`, and the roles `starbridge_client` for those who start flows and `starbridge_taker` for
    /// the server. The password is in the URL or in PGPASSWORD.
    Install {
        /// The database: `postgres://USER@HOST/DATABASE`
        #[arg(required_unless_present = "print")]
        url: Option<String>,
        /// Prints the SQL, and does nothing else
        #[arg(long)]
        print: bool,
    },
    /// Lists the outboxes of a server, and how much waits in them
    List,
    /// Lists what could not be carried out, the newest first, with the reasons
    Refused {
        /// The outbox
        name: String,
        #[command(flatten)]
        most: ListLimit,
    },
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    match &options.action {
        Action::Install { url, print } => install(url.as_deref().filter(|_| !print), output),
        Action::List => list(&Client::new(&options.server, output)?),
        Action::Refused { name, most } => refused(&Client::new(&options.server, output)?, name, *most, output),
    }
}

#[cfg(feature = "postgres")]
fn install(url: Option<&str>, output: Output) -> Result<(), Exit> {
    use crate::output::fault;
    use starbridge_node::config::{OUTBOX_SQL, install_outbox};
    let Some(url) = url else {
        return output.result(OUTBOX_SQL);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| fault(output, &format!("the runtime can't be started: {error}"), ""))?;
    let place = runtime
        .block_on(install_outbox(url))
        .map_err(|error| fault(output, &error, ""))?;
    output.note(&format!("the outbox is installed in {place}"));
    output.note(
        "next: `grant starbridge_client` to the role that starts flows, `grant starbridge_taker` to the server's,",
    );
    output.note("and name the database under `[[outboxes]]` in the configuration of `starbridge serve`");
    Ok(())
}

#[cfg(not(feature = "postgres"))]
fn install(_: Option<&str>, output: Output) -> Result<(), Exit> {
    let message = "outboxes can't be installed: this program was built without the feature `postgres`";
    Err(bad(output, message, ""))
}

fn list(client: &Client) -> Result<(), Exit> {
    let row = |outbox: &Object| {
        vec![
            plain(outbox, "name"),
            plain(outbox, "database"),
            plain(outbox, "waiting"),
            time(text(outbox, "oldestTime")),
            plain(outbox, "started"),
            plain(outbox, "refused"),
            plain(outbox, "problem"),
        ]
    };
    let none = "the server takes from no outbox: `[[outboxes]]` in its configuration names one";
    let heads = ["NAME", "DATABASE", "WAITING", "OLDEST", "STARTED", "REFUSED", "PROBLEM"];
    whole(client, &["outboxes"], none, &heads, row)
}

fn refused(client: &Client, name: &str, most: ListLimit, output: Output) -> Result<(), Exit> {
    if name.is_empty() || matches!(name, "." | "..") || name.contains(char::is_control) {
        let message = format!("`{}` can't be the name of an outbox", name.escape_debug());
        return Err(bad(output, &message, "`starbridge outbox list` lists them"));
    }
    let list = Paged {
        path: &["outboxes", name, "refused"],
        query: &[],
        heads: &["TIME", "ID", "ACTION", "FLOW", "NAME", "BY", "CODE", "REASON"],
        more: "there are more: `--all` shows them, or `--limit N`",
        flow: None,
    };
    list.show(client, most, |row| {
        vec![
            time(text(row, "refusedTime")),
            plain(row, "id"),
            plain(row, "action"),
            plain(row, "flow"),
            plain(row, "name"),
            plain(row, "by"),
            plain(row, "code"),
            plain(row, "reason"),
        ]
    })
}
