//! `graph`: draws a flow.

use crate::definitions::{load_flow, read_text};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use clap::{Args, ValueEnum};
use starbridge_diagram::{Coloring, dot, mermaid, svg};
use starbridge_flow::graph::Flow;
use starbridge_node::export::ExportedHistory;
use starbridge_node::system::reason;
use std::path::{Path, PathBuf};

/// Draws a flow
///
/// With a history the picture shows what happened: by colour, shape and text.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge graph order.json -o order.svg\n  starbridge graph order.json --history run.jsonl -o run.svg"
)]
pub struct Options {
    /// The flow's file (JSON or YAML)
    pub flow: PathBuf,
    /// The form of the picture
    #[arg(long, value_enum, default_value_t = Form::Svg)]
    pub format: Form,
    /// A history of this flow, as `exec --history` writes it
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Where the picture goes; stdout where nothing is given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A picture browsers show
    Svg,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
}

/// Does it.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let (_, flow) = load_flow(&options.flow, output)?;
    let coloring = match &options.history {
        Some(file) => Some(coloring(&flow, file, output)?),
        None => None,
    };
    let picture = match options.format {
        Form::Svg => svg(&flow, coloring.as_ref()),
        Form::Mermaid => mermaid(&flow, coloring.as_ref()),
        Form::Dot => dot(&flow, coloring.as_ref()),
    };
    match &options.output {
        None => finish(output, picture.trim_end(), Ok(())),
        Some(file) => std::fs::write(file, picture).map_err(|error| {
            bad(
                output,
                &format!("can't write `{}`: {}", file.display(), reason(&error)),
                "",
            )
        }),
    }
}

fn coloring(flow: &Flow, file: &Path, output: Output) -> Result<Coloring, Exit> {
    let text = read_text(file, output)?;
    let history = ExportedHistory::parse(&text).map_err(|error| {
        let message = format!("{}: {error}", file.display());
        bad(output, &message, "a history is what `exec --history` writes")
    })?;
    if history.flow.hash != flow.hash {
        let message = format!("`{}` is a history of another definition", file.display());
        return Err(bad(output, &message, "draw it with the flow it was made with"));
    }
    Ok(Coloring::from_history(flow, &history.events))
}
