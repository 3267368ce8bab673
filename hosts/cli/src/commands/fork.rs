//! `fork`: a new execution from any event of an old one.

use crate::client::{Body, Client, ServerOptions};
use crate::definitions::{flow_file, read, read_given};
use crate::exit::Exit;
use crate::output::{Output, finish};
use crate::views::{id_of, plain};
use clap::Args;
use reqwest::Method;
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
    let file = options.definition.as_ref();
    let source = file.map(|file| read(&flow_file(file), output)).transpose()?;
    if let Some(source) = &source {
        body.insert("definition".into(), source.text().into());
    }
    let id = id_of(&client, &options.execution)?;
    let path = ["executions", &id, "fork"];
    let answer = client.ask(Method::POST, &path, &[], Body::Json(&body))?;
    let answer = answer.map_err(|problem| {
        let about = source
            .as_ref()
            .and_then(|source| problem.say_about(source, "nothing was forked", output));
        about.unwrap_or_else(|| client.say_near(&problem, &path, None))
    })?;
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    finish(output, &plain(&answer.object(), "id"), Ok(()))
}
