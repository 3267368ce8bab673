//! `store`: what is done with a store while nobody serves it.

use crate::definitions::server_config;
use crate::exit::Exit;
use crate::output::{Output, bad, fault, finish_value};
use crate::table::table;
use clap::{Args, Subcommand};
use starbridge_flow::value::{Object, Value};
use starbridge_node::store_care::{Prepared, prepare, restored};
use starbridge_node::store_copy::{CopyPlace, copy};
use std::path::PathBuf;

/// Makes, upgrades and copies stores, and deals with a restored one
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge store copy flows.db copy.db\n  PGPASSWORD=… starbridge store init postgres://owner@db/flows"
)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(InitOptions),
    Upgrade(UpgradeOptions),
    Copy(CopyOptions),
    Restored(RestoredOptions),
}

/// Makes the schema and the tables of a store in a database
///
/// For nodes whose role may not make tables: then this is run by a role that may. It prints what to grant to the other one.
/// Where there is a store, nothing changes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  PGPASSWORD=… starbridge store init postgres://owner@db/flows --role starbridge | psql …"
)]
struct InitOptions {
    #[command(flatten)]
    options: PrepareOptions,
}

/// Brings a store in a database up to the format of this program
///
/// Nodes may go on meanwhile. Those of the former version can't take the store any more.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  PGPASSWORD=… starbridge store upgrade postgres://owner@db/flows --print")]
struct UpgradeOptions {
    #[command(flatten)]
    options: PrepareOptions,
}

/// Which store in a database is prepared, for whom, and whether it is only shown how.
#[derive(Debug, Args)]
struct PrepareOptions {
    #[command(flatten)]
    place: Place,
    /// The role of the nodes, for what is printed
    #[arg(long, value_name = "NAME", default_value = "ROLE", value_parser = role)]
    role: String,
    /// Prints the statements that would be run, and changes nothing
    #[arg(long)]
    print: bool,
}

/// Sets aside what had begun and not ended in a backup that was put back, and lists it
///
/// What these executions did after the backup is not known. Nothing goes on with them until `starbridge redrive` says so;
/// `starbridge list --reason broken` lists them again. No server may have the store open.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge store restored flows.db")]
struct RestoredOptions {
    #[command(flatten)]
    place: Place,
}

/// Which store.
#[derive(Debug, Args)]
struct Place {
    /// The store: the URL of a PostgreSQL database, or a file; otherwise the one of the configuration
    #[arg(value_name = "STORE")]
    store: Option<PathBuf>,
    /// The configuration with `store.schema` and `store.password`, a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A name of a role that needs no quotes.
fn role(text: &str) -> Result<String, String> {
    let fits = |each: char| each.is_ascii_alphanumeric() || each == '_';
    match !text.is_empty() && text.len() <= 63 && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("a role has letters, digits and `_`".to_owned()),
    }
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
        Command::Init(options) => run_prepare(&options.options, false, output),
        Command::Upgrade(options) => run_prepare(&options.options, true, output),
        Command::Copy(options) => run_copy(options, output),
        Command::Restored(options) => run_restored(&options.place, output),
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

fn run_prepare(options: &PrepareOptions, upgrade: bool, output: Output) -> Result<(), Exit> {
    let PrepareOptions { place, role, print } = options;
    let print = *print;
    let config = server_config(place.config.as_deref(), output)?;
    let done = prepare(place.store.as_deref(), &config, upgrade, !print).map_err(|error| fault(output, &error, ""))?;
    for warning in &done.warnings {
        output.note(&format!("warning: {warning}"));
    }
    let rights: Vec<String> = done
        .rights
        .iter()
        .map(|right| right.replace("to ROLE;", &format!("to {role};")))
        .collect();
    if output.json() {
        return finish_value(output, &shown(&done, &rights, print), Ok(()));
    }
    output.note(&said(&done, print));
    let text = match print {
        true => done.sql,
        false => {
            output.note("a role that may not make tables needs these rights:");
            rights.join("\n") + "\n"
        }
    };
    output.print(&text)
}

/// What was done, or is to be, in a line.
fn said(done: &Prepared, print: bool) -> String {
    let (shown, had, has) = (&done.shown, done.had, done.has);
    match (print, done.sql.is_empty(), had) {
        (_, true, _) => format!("there is a store in {shown}, of the current format {has}: nothing to do"),
        (true, false, 0) => format!("these statements make a store in {shown}"),
        (true, false, _) => format!("these statements bring the store in {shown} from format {had} to {has}"),
        (false, false, 0) => format!("made a store in {shown}, of format {has}"),
        (false, false, _) if had == has => {
            format!(
                "there is a store in {shown} already, of the earlier format {had}: `starbridge store upgrade` brings it up"
            )
        }
        (false, false, _) => format!("brought the store in {shown} from format {had} to {has}"),
    }
}

fn shown(done: &Prepared, rights: &[String], print: bool) -> Value {
    let mut shown = Object::new();
    shown.insert("store".into(), done.shown.clone().into());
    shown.insert("hadFormat".into(), Value::from(done.had as u64));
    shown.insert("format".into(), Value::from(done.has as u64));
    let rights = rights.iter().map(|right| Value::from(right.as_str()));
    shown.insert("rights".into(), rights.collect::<Vec<_>>().into());
    if print {
        shown.insert("statements".into(), done.sql.clone().into());
    }
    shown.into()
}

fn run_restored(place: &Place, output: Output) -> Result<(), Exit> {
    let config = server_config(place.config.as_deref(), output)?;
    let done = restored(place.store.as_deref(), &config);
    let done = done.map_err(|error| fault(output, &error, "a server that has it open is stopped first"))?;
    let (shown, all) = (&done.place, &done.aside);
    if output.json() {
        let items = all.iter().map(|one| {
            let mut item = Object::new();
            item.insert("id".into(), one.id.clone().into());
            item.insert("flow".into(), one.flow.clone().into());
            item.insert("name".into(), one.name.clone().into());
            item.insert("startedTime".into(), one.started.to_string().into());
            Value::from(item)
        });
        let mut result = Object::new();
        result.insert("store".into(), shown.as_str().into());
        result.insert("items".into(), items.collect::<Vec<_>>().into());
        result.insert("waiting".into(), done.waiting.into());
        return finish_value(output, &result.into(), Ok(()));
    }
    if done.waiting > 0 {
        output.note(&format!("waiting to begin in {shown}, and will: {}", done.waiting));
    }
    if all.is_empty() {
        output.note(&format!(
            "nothing had begun and not ended in {shown}: there is nothing to set aside"
        ));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            vec![
                one.id.to_string(),
                one.flow.to_string(),
                one.name.to_string(),
                one.started.to_string(),
            ]
        })
        .collect();
    output.print(&table(&["ID", "FLOW", "NAME", "STARTED"], &rows))?;
    output.note(&format!(
        "set aside in {shown}: {}; each waits until `starbridge redrive` lets it go on, or `starbridge stop` ends it; `starbridge bulk redrive \
         --reason broken` lets all go on",
        all.len()
    ));
    Ok(())
}
