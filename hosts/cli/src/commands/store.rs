//! `store`: what is done with a store while nobody serves it.

use crate::definitions::server_config;
use crate::exit::Exit;
use crate::output::{Output, bad, fault, finish_value};
use crate::table::table;
use clap::{Args, Subcommand};
use starbridge_flow::value::{Object, Value};
use starbridge_node::store_copy::{CopyPlace, copy};
use std::path::PathBuf;

/// Copies a store, for example from a file into a database
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge store copy flows.db copy.db")]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Copy(CopyOptions),
}

/// Copies everything from one store into another, empty one
///
/// No server may have either open. All is copied or nothing. Then both are read and compared.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge store copy flows.db copy.db\n  PGPASSWORD=… starbridge store copy flows.db postgres://starbridge@db/flows"
)]
struct CopyOptions {
    /// The store that is copied: a file, or the URL of a PostgreSQL database
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The empty store, or where to make one
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// The configuration with `store.schema` and `store.password`, a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    match &options.command {
        Command::Copy(options) => run_copy(options, output),
    }
}

fn run_copy(options: &CopyOptions, output: Output) -> Result<(), Exit> {
    let config = server_config(options.config.as_deref(), output)?;
    let help = "a server that has it open is stopped first";
    let from = CopyPlace::source(&options.from, &config).map_err(|error| bad(output, &error, help))?;
    let to = CopyPlace::target(&options.to, &config).map_err(|error| bad(output, &error, help))?;
    let copied = copy(&from, &to, &mut |table| output.note(&format!("copying `{table}`")));
    let copied = copied.map_err(|error| fault(output, &error, ""))?;
    if output.json() {
        let rows = copied.iter().map(|copied| (copied.table, Value::from(copied.rows)));
        let mut result = Object::new();
        result.insert("from".into(), from.shown().into());
        result.insert("to".into(), to.shown().into());
        result.insert(
            "rows".into(),
            rows.map(|(name, rows)| (name.into(), rows)).collect::<Object>().into(),
        );
        return finish_value(output, &result.into(), Ok(()));
    }
    let rows: Vec<Vec<String>> = copied
        .iter()
        .filter(|copied| copied.rows > 0)
        .map(|copied| vec![copied.table.to_owned(), copied.rows.to_string()])
        .collect();
    output.print(&table(&["TABLE", "ROWS"], &rows))?;
    output.note(&format!("{} has all that {} has", to.shown(), from.shown()));
    Ok(())
}
