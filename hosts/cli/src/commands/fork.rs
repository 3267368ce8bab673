//! `fork`: a new execution from any event of an old one.

use crate::acts::act;
use crate::client::{Client, ServerOptions};
use crate::definitions::{flow_file, read, read_given};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::views::plain;
use clap::Args;
use starbridge_flow::value::Object;
use std::path::PathBuf;

/// Starts a new execution from any event of an old one
///
/// The new one has the old one's history up to there and goes on by itself; the old one stays as it is. Its id is printed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge fork order/order-7 --event 12 --name order-7-again")]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// The event after whose turn the new one goes on
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    pub event: u64,
    /// The new execution's name
    #[arg(long)]
    pub name: Option<String>,
    /// The version of the flow that the new one runs; it must do the same up to there
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub version: Option<u64>,
    /// A definition that the new one runs; it must do the same up to there. It becomes the flow's latest version; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "version")]
    pub definition: Option<PathBuf>,
    /// The input it is as if started with, which must lead to the same up to there: a JSON object, or a file with it; `-`
    /// reads stdin
    #[arg(long, value_name = "JSON|FILE")]
    pub input: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let mut body = Object::new();
    body.insert("event".into(), options.event.into());
    if let Some(name) = &options.name {
        body.insert("name".into(), name.as_str().into());
    }
    if let Some(given) = &options.input {
        let input = read_given(given, "an execution's input", output)?;
        body.insert("input".into(), input.into());
    }
    if let Some(version) = options.version {
        body.insert("version".into(), version.into());
    }
    if let Some(file) = &options.definition {
        let source = read(&flow_file(file), output)?;
        body.insert("definition".into(), source.text().into());
    }
    let answer = act(&client, &options.execution, "fork", &body)?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    finish(output, &plain(&answer.object(), "id"), Ok(()))
}
