//! `history`: shows the events of an execution of a server.

use crate::arguments::read_time;
use crate::client::{Client, ServerOptions, follow};
use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::views::{self, event_line, id_of, plain, text};
use clap::{Args, ValueEnum};
use starbridge_flow::graph::Flow;
use starbridge_flow::syntax::{Format, Source};
use starbridge_flow::value::{Object, Value};
use starbridge_machine::history::HISTORY_FORMAT;
use starbridge_node::export::{ExportedHistory, export_head};
use starbridge_node::system::reason;
use starbridge_node::test_case::{pretty, test_file};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest number of events on a page of the server.
const PAGE_EVENTS: u64 = 1_000;

/// Shows the history of an execution of a server
///
/// --export writes the file that `replay` and `graph --history` read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge history order/order-7 --follow\n  starbridge history order/order-7 --step pay --failed\n  starbridge history order/order-7 --export run.jsonl && starbridge replay run.jsonl\n  starbridge history order/order-7 --as-test order-7.test.json && starbridge test order-7.test.json"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// From this event on; with `--order desc` backwards from it
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    pub from: Option<u64>,
    /// So many events at most; otherwise all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Oldest or newest first
    #[arg(long, value_enum, default_value_t = Order::Asc)]
    pub order: Order,
    /// Also shows the input and local data that events of steps had to do with
    #[arg(long, conflicts_with_all = ["follow", "export", "types", "step", "failed"])]
    pub expand: bool,
    /// From the first event on that came at this time or later (RFC 3339), or so long ago: `2h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = read_time, conflicts_with = "from")]
    pub at: Option<String>,
    /// Only events of this type, such as `StepFailed`; several are several types
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only events of the step of this name
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Only events that tell of an error
    #[arg(long)]
    pub failed: bool,
    /// Goes on until the execution has ended
    #[arg(long, conflicts_with_all = ["limit", "order", "at", "types", "step", "failed"])]
    pub follow: bool,
    /// Writes the whole history to a file; `-` writes it to stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "from", "limit", "order", "at", "types", "step", "failed"])]
    pub export: Option<PathBuf>,
    /// Writes a test file with what its tasks answered and how it ended; `-` writes it to stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "from", "limit", "order", "at", "types", "step", "failed", "export", "expand"])]
    pub as_test: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Which events come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// The oldest
    Asc,
    /// The newest
    Desc,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if let Some(file) = &options.export {
        return export(&client, &options.execution, file);
    }
    if let Some(file) = &options.as_test {
        return as_test(&client, &options.execution, file);
    }
    let id = id_of(&client, &options.execution)?;
    if options.follow {
        return follow(&client, &id, options.from.unwrap_or(1), &mut |text, event| {
            let line = if output.json() {
                text.to_owned()
            } else {
                event_line(event)
            };
            output.result(&format!("{line}\n"))
        });
    }
    let order = match options.order {
        Order::Asc => "asc",
        Order::Desc => "desc",
    };
    let left = options.limit.unwrap_or(u64::MAX);
    let mut wanted = vec![("order", order.to_owned())];
    wanted.extend(options.expand.then(|| ("expand", "true".to_owned())));
    wanted.extend(options.at.clone().map(|at| ("at", at)));
    wanted.extend(options.types.iter().map(|word| ("type", word.clone())));
    wanted.extend(options.step.clone().map(|step| ("step", step)));
    wanted.extend(options.failed.then(|| ("failed", "true".to_owned())));
    pages(&client, &id, options.from, left, &wanted, &mut |page, events| {
        if output.json() {
            return output.result(&format!("{page}\n"));
        }
        let lines: String = events.iter().map(|event| event_line(event) + "\n").collect();
        output.result(&lines)
    })
}

/// Receives the pages of a history: the text of each, and its events.
type Seen<'a> = dyn FnMut(&str, &[Object]) -> Result<(), Exit> + 'a;

fn pages(
    client: &Client,
    id: &str,
    from: Option<u64>,
    mut left: u64,
    wanted: &[(&str, String)],
    see: &mut Seen<'_>,
) -> Result<(), Exit> {
    let mut from = from.map(|from| from.to_string());
    loop {
        let mut query = wanted.to_vec();
        query.push(("limit", left.min(PAGE_EVENTS).to_string()));
        query.extend(from.map(|from| ("from", from)));
        let answer = client.get(&["executions", id, "history"], &query)?;
        let (events, next) = answer.page();
        see(&answer.text, &events)?;
        left = left.saturating_sub(events.len() as u64);
        // A page of selected events may be empty although others follow.
        if next.is_none() || left == 0 {
            return Ok(());
        }
        from = next;
    }
}

/// Writes the history in the form of `exec --history`.
fn export(client: &Client, meant: &str, file: &Path) -> Result<(), Exit> {
    let output = client.output();
    let execution = views::execution(client, meant)?.object();
    let id = plain(&execution, "id");
    let head = head(client, &execution, &id)?;
    let failed = |error: &std::io::Error| {
        let message = format!("can't write `{}`: {}", file.display(), reason(error));
        bad(output, &message, "")
    };
    let mut out: Box<dyn Write> = if file.as_os_str() == "-" {
        Box::new(std::io::stdout().lock())
    } else {
        let opened = std::fs::File::create(file).map_err(|error| failed(&error))?;
        Box::new(std::io::BufWriter::new(opened))
    };
    let mut count = 0;
    let mut gone = false;
    let mut write = |lines: Vec<String>| {
        let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
        match written.and_then(|()| out.flush()) {
            // The reader has read all it wanted.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                gone = true;
                Err(Exit::Found)
            }
            written => written.map_err(|error| failed(&error)),
        }
    };
    let written = write(vec![head]).and_then(|()| {
        pages(client, &id, None, u64::MAX, &[], &mut |_, events| {
            count += events.len();
            write(
                events
                    .iter()
                    .map(|event| Value::from(event.clone()).to_json())
                    .collect(),
            )
        })
    });
    if gone {
        return Ok(());
    }
    written?;
    output.note(&format!("{count} events"));
    Ok(())
}

/// Writes an execution as a test file.
fn as_test(client: &Client, meant: &str, file: &Path) -> Result<(), Exit> {
    let output = client.output();
    let history = ExportedHistory::parse(&exported(client, meant)?)
        .map_err(|error| bad(output, &format!("the history can't be read: {error}"), ""))?;
    let test = test_file(&history).map_err(|why| {
        let message = format!("`{meant}` can't be a test case: {why}");
        bad(output, &message, "`--export` writes the history itself")
    })?;
    let text = pretty(&test);
    if file.as_os_str() == "-" {
        return output.result(&text);
    }
    std::fs::write(file, text).map_err(|error| {
        let message = format!("can't write `{}`: {}", file.display(), reason(&error));
        bad(output, &message, "")
    })?;
    output.note(&format!("`starbridge test {}` runs it", file.display()));
    Ok(())
}

/// The whole history of an execution, in the form of a file.
pub(super) fn exported(client: &Client, meant: &str) -> Result<String, Exit> {
    let execution = views::execution(client, meant)?.object();
    let id = plain(&execution, "id");
    let mut text = head(client, &execution, &id)? + "\n";
    pages(client, &id, None, u64::MAX, &[], &mut |_, events| {
        let lines = events.iter().map(|event| Value::from(event.clone()).to_json() + "\n");
        text.extend(lines);
        Ok(())
    })?;
    Ok(text)
}

/// The first line: the execution, and the definition that it runs.
fn head(client: &Client, execution: &Object, id: &str) -> Result<String, Exit> {
    let flow = definition(client, execution)?;
    let state = client.look(&["executions", id, "state"], &[]);
    let needed = state.and_then(|state| state.get("machine")?.as_number()?.as_u64());
    let needed = needed.and_then(|needed| u32::try_from(needed).ok());
    Ok(export_head(
        id,
        needed.unwrap_or(HISTORY_FORMAT),
        &flow,
        &BTreeMap::new(),
    ))
}

/// The flow that an execution runs.
pub(super) fn definition(client: &Client, execution: &Object) -> Result<Arc<Flow>, Exit> {
    let output = client.output();
    let name = text(execution, "flow").unwrap_or_default();
    let version = plain(execution, "version");
    let flow = client.get(&["flows", name], &[("version", version.clone())])?.object();
    let definition = flow.get("definition").map(Value::to_json).unwrap_or_default();
    let source = Source::new(name, definition).with_format(Format::Json);
    let limits = starbridge_flow::limits::Limits::default();
    let checked = starbridge_fdl::check(&source, &limits);
    match checked.flow {
        Some(flow) => Ok(flow),
        None => {
            let message = format!("this command can't read version {version} of `{name}`");
            Err(bad(output, &message, "is the server of a later version?"))
        }
    }
}
