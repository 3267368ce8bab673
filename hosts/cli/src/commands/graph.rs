//! `graph`: draws a flow.

use super::history;
use crate::client::{Client, ServerOptions};
use crate::definitions::{STDIN, load_flow, read_text};
use crate::exit::Exit;
use crate::output::{Output, bad, finish};
use clap::{Args, ValueEnum};
use starbridge_diagram::{FlowStatus, dot, mermaid, svg};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::is_name;
use starbridge_node::export::ExportedHistory;
use starbridge_node::system::reason;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Draws a flow, or an execution
///
/// With a history the picture shows what happened: by colour, shape and text. An execution's history is asked of a server.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge graph order.json -o order.svg\n  starbridge graph --history run.jsonl -o run.svg\n  starbridge graph order/order-7 --at 20 -o run.svg"
)]
pub struct Options {
    /// The flow's file (JSON or YAML), or an execution of a server: its id, or FLOW/NAME
    #[arg(value_name = "FLOW|EXECUTION", required_unless_present = "history")]
    pub flow: Option<PathBuf>,
    /// The form of the picture
    #[arg(long, value_enum, default_value_t = Form::Svg)]
    pub format: Form,
    /// A history, as `exec --history` writes it
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// As it was after this event of the history
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    pub at: Option<u64>,
    /// Where the picture goes; stdout where nothing is given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOptions,
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

/// Endings of pictures in points, and of what is made from one.
const NOT_DRAWN: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "pdf"];

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let ending = options
        .output
        .as_deref()
        .and_then(Path::extension)
        .and_then(|ending| ending.to_str());
    if let Some(ending) = ending.filter(|ending| NOT_DRAWN.contains(ending)) {
        let message = format!("no picture of the form `{ending}` can be drawn");
        let help = "name the file `….svg`: browsers show it, and other programs make such pictures from it";
        return Err(bad(output, &message, help));
    }
    let (flow, status) = drawn(options, output)?;
    let picture = match options.format {
        Form::Svg => svg(&flow, status.as_ref()),
        Form::Mermaid => mermaid(&flow, status.as_ref()),
        Form::Dot => dot(&flow, status.as_ref()),
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

/// The flow to draw, and its history if there is one.
fn drawn(options: &Options, output: Output) -> Result<(Arc<Flow>, Option<FlowStatus>), Exit> {
    let of = |history: ExportedHistory| {
        let at = options.at.unwrap_or(u64::MAX);
        let until = history.events.partition_point(|event| event.id.0 <= at);
        let events = history.events.get(..until).unwrap_or_default();
        let status = FlowStatus::from_history(&history.flow, events);
        (history.flow, Some(status))
    };
    let history = match &options.history {
        Some(file) => Some(read_history(file, output)?),
        None => None,
    };
    let Some(meant) = &options.flow else {
        // One of the two exists.
        return history.map(of).ok_or(Exit::Bad);
    };
    if let (None, Some(execution)) = (&history, execution(meant)) {
        let client = Client::new(&options.server, output)?;
        let text = history::exported(&client, execution)?;
        return parse_history(&text, execution, output).map(of);
    }
    let (_, flow) = load_flow(meant, output)?;
    let Some(history) = history else {
        return Ok((flow, None));
    };
    if history.flow.hash != flow.hash {
        let file = options.history.as_deref().unwrap_or(Path::new(STDIN));
        let message = format!("`{}` is a history of another definition", file.display());
        let help = "draw it with the flow it was made with, or without one: the history has its definition";
        return Err(bad(output, &message, help));
    }
    Ok(of(history))
}

/// The execution that is named, if the word is not a file.
fn execution(meant: &Path) -> Option<&str> {
    let text = meant.to_str().filter(|text| *text != STDIN && !meant.exists())?;
    let is_id = text.len() == 36 && text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
    let named = text.split_once('/');
    let named = named.filter(|(flow, name)| is_name(flow) && !name.is_empty() && !name.contains(['/', '.']));
    (is_id || named.is_some()).then_some(text)
}

fn read_history(file: &Path, output: Output) -> Result<ExportedHistory, Exit> {
    let text = read_text(file, output)?;
    parse_history(&text, &file.display().to_string(), output)
}

fn parse_history(text: &str, of: &str, output: Output) -> Result<ExportedHistory, Exit> {
    ExportedHistory::parse(text).map_err(|error| {
        let message = format!("{of}: {error}");
        bad(output, &message, "a history is what `exec --history` writes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_told_from_files() {
        for (meant, is_execution) in [
            ("order/order-7", true),
            ("01234567-89ab-7cde-8f01-23456789abcd", true),
            ("nowhere/flow.json", false),
            ("flow.json", false),
            ("-", false),
            ("a/b/c", false),
            ("src/lib.rs", false),
        ] {
            assert_eq!(execution(Path::new(meant)).is_some(), is_execution, "{meant}");
        }
    }
}
