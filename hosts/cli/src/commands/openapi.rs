//! `openapi`: prints the description of the HTTP API.

use crate::exit::Exit;
use crate::output::{Output, finish};
use clap::Args;

/// Prints the description of the HTTP API (OpenAPI 3.1)
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  starbridge openapi > openapi.json")]
pub struct Options {}

/// Runs the command.
pub fn run(_: &Options, output: Output) -> Result<(), Exit> {
    let document = serde_json::to_string_pretty(&starbridge_server::openapi()).unwrap_or_default();
    finish(output, &document, Ok(()))
}
