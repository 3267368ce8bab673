//! `bulk`: one action on many executions of a server.

use crate::client::lists::{ListLimit, Paged};
use crate::client::{Answer, Client, ServerOptions};
use crate::definitions::{read_given, read_text, without_mark};
use crate::exit::Exit;
use crate::filter::{FAILED_IN, FAILED_WITH, Filter, OPTIONS};
use crate::output::{Output, bad, finish};
use crate::table::{listing, table, time};
use crate::views::{id_of, plain, text};
use clap::{Args, Subcommand};
use starbridge_flow::value::{Object, Value};
use std::path::PathBuf;

/// Stops, redrives, skips, pauses, resolves or deletes many executions of a server
///
/// The server keeps it as a job over the executions that match now, and goes on with it after a restart. Each of them is dealt
/// with once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge bulk redrive --flow order --status Failed --dry-run\n  starbridge bulk redrive --error HTTP.503 --step charge --ended-from 2h\n  starbridge bulk stop --label team=billing --cause 'moved' --rate 50\n  starbridge bulk delete --flow order --status Succeeded --to 2026-01-01T00:00:00Z\n  starbridge bulk list"
)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Stops executions
    ///
    /// `--error` is the error they end with; `--with-error` chooses those that have one.
    #[command(mut_arg(FAILED_WITH, |arg| arg.long("with-error")), mut_arg(FAILED_IN, |arg| arg.long("in-step")))]
    Stop {
        /// The error they end with; otherwise `FnF.Stopped`
        #[arg(long, value_name = "NAME")]
        error: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        cause: Option<String>,
        /// Undoes what they did
        #[arg(long)]
        rollback: bool,
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Lets executions that ended unsuccessfully go on where they failed
    Redrive {
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Leaves out the undo that failed
    Skip {
        /// Why
        #[arg(long, value_name = "TEXT")]
        cause: Option<String>,
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Lets nothing new begin in executions until they are unpaused
    Pause {
        /// Why
        #[arg(long, value_name = "TEXT")]
        cause: Option<String>,
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Lets paused executions go on
    Unpause {
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Decides for the step that waits for an operator
    ///
    /// `--step` and `--error` are parts of the decision; `--in-step` and `--with-error` choose executions.
    #[command(mut_arg(FAILED_WITH, |arg| arg.long("with-error")), mut_arg(FAILED_IN, |arg| arg.long("in-step")))]
    Resolve(ResolveOptions),
    /// Deletes executions that have ended
    Delete {
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Lists the jobs, the newest first
    List {
        #[command(flatten)]
        most: ListLimit,
    },
    /// Shows a job
    Show {
        /// The job's id
        job: String,
    },
    /// Lists the executions of a job, and what became of each
    Items {
        /// The job's id
        job: String,
        /// Only those with this result
        #[arg(long, value_parser = ["open", "done", "skipped", "failed"])]
        result: Option<String>,
        #[command(flatten)]
        most: ListLimit,
    },
    /// Lets a job begin nothing more until it is resumed
    Suspend {
        /// The job's id
        job: String,
    },
    /// Lets a suspended job go on
    Resume {
        /// The job's id
        job: String,
    },
    /// Ends a job; what was done stays done
    Cancel {
        /// The job's id
        job: String,
    },
}

#[derive(Debug, Args)]
struct ResolveOptions {
    /// What is decided
    #[arg(value_parser = ["retry", "succeed", "fail"])]
    decision: String,
    /// The step, where several of an execution wait
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// The output of a step that succeeds: a JSON object, or a file with it; `-` reads stdin
    #[arg(long, value_name = "JSON|FILE")]
    output: Option<String>,
    /// The error of a step that fails; otherwise its own
    #[arg(long, value_name = "NAME")]
    error: Option<String>,
    /// The cause of that error
    #[arg(long, value_name = "TEXT")]
    cause: Option<String>,
    /// A note for the history
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    chosen: Chosen,
}

/// Which executions, and how fast.
#[derive(Debug, Args)]
struct Chosen {
    /// These executions: their ids, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    executions: Vec<String>,
    /// The executions that this file names, one a line; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    filter: Filter,
    /// Those that this view shows: see `starbridge view`
    #[arg(long, value_name = "NAME", conflicts_with_all = OPTIONS, conflicts_with = "all")]
    view: Option<String>,
    /// Every execution there is
    #[arg(long)]
    all: bool,
    /// Does nothing: says how many it would be for
    #[arg(long)]
    dry_run: bool,
    /// So many executions a second at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rate: Option<u64>,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    let change = |job: &str, to: &str| show(&client, &client.post(&["bulk", job, to], &[], &Object::new())?);
    match &options.action {
        Action::Stop {
            error,
            cause,
            rollback,
            chosen,
        } => {
            let mut arguments = texts(&[("error", error), ("cause", cause)]);
            if *rollback {
                arguments.insert("rollback".into(), true.into());
            }
            begin(&client, "stop", arguments, chosen)
        }
        Action::Redrive { chosen } => begin(&client, "redrive", Object::new(), chosen),
        Action::Skip { cause, chosen } => begin(&client, "skip", texts(&[("cause", cause)]), chosen),
        Action::Pause { cause, chosen } => begin(&client, "pause", texts(&[("cause", cause)]), chosen),
        // The program's `resume` is for a job.
        Action::Unpause { chosen } => begin(&client, "resume", Object::new(), chosen),
        Action::Resolve(options) => resolve(&client, options),
        Action::Delete { chosen } => begin(&client, "delete", Object::new(), chosen),
        Action::List { most } => list(&client, *most),
        Action::Show { job } => show(&client, &client.get(&["bulk", job], &[])?),
        Action::Items { job, result, most } => items(&client, job, result.as_deref(), *most),
        Action::Suspend { job } => change(job, "suspend"),
        Action::Resume { job } => change(job, "resume"),
        Action::Cancel { job } => change(job, "cancel"),
    }
}

fn texts(members: &[(&str, &Option<String>)]) -> Object {
    let given = members
        .iter()
        .filter_map(|(key, value)| Some(((*key).into(), value.as_deref()?.into())));
    given.collect()
}

fn resolve(client: &Client, options: &ResolveOptions) -> Result<(), Exit> {
    let decision = Some(options.decision.clone());
    let mut arguments = texts(&[
        ("action", &decision),
        ("step", &options.step),
        ("error", &options.error),
        ("cause", &options.cause),
        ("note", &options.note),
    ]);
    if let Some(given) = &options.output {
        let given = read_given(given, "a step's output", client.output())?;
        arguments.insert("output".into(), given.into());
    }
    begin(client, "resolve", arguments, &options.chosen)
}

/// Makes a job, or prints how many executions it would be for.
fn begin(client: &Client, action: &str, arguments: Object, chosen: &Chosen) -> Result<(), Exit> {
    let mut body = Object::new();
    body.insert("action".into(), action.into());
    if !arguments.is_empty() {
        body.insert("arguments".into(), arguments.into());
    }
    let mut filter = chosen.filter.object(client)?;
    if let Some(view) = &chosen.view {
        filter.insert("view".into(), view.as_str().into());
    }
    let output = client.output();
    let listed = listed(chosen, output)?;
    if chosen.ids.is_some() || !listed.is_empty() {
        if listed.is_empty() {
            return Err(bad(
                output,
                "no execution is named",
                "write ids, or FLOW/NAME, one a line",
            ));
        }
        if !filter.is_empty() || chosen.all {
            return Err(bad(
                output,
                "give either executions or what they must match, not both",
                "",
            ));
        }
        let ids = listed.iter().map(|meant| id_of(client, meant).map(Value::from));
        body.insert("executions".into(), ids.collect::<Result<Vec<_>, _>>()?.into());
    } else if filter.is_empty() && !chosen.all {
        let help = "name executions, say what they must match (`--flow`, `--status`, `--view`, …), or `--all` if every one is meant";
        return Err(bad(output, "this would be for every execution there is", help));
    } else {
        body.insert("filter".into(), filter.into());
    }
    for (key, set) in [("all", chosen.all), ("dryRun", chosen.dry_run)] {
        if set {
            body.insert(key.into(), true.into());
        }
    }
    if let Some(rate) = chosen.rate {
        body.insert("ratePerSecond".into(), rate.into());
    }
    let answer = client.post(&["bulk"], &[], &body)?;
    match chosen.dry_run {
        true => show_preview(client, &answer),
        false => show(client, &answer),
    }
}

/// The executions that are named one by one.
fn listed(chosen: &Chosen, output: Output) -> Result<Vec<String>, Exit> {
    let mut listed = chosen.executions.clone();
    if let Some(file) = &chosen.ids {
        let text = read_text(file, output)?;
        let lines = without_mark(&text).lines().map(str::trim);
        listed.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
    }
    Ok(listed)
}

fn show_preview(client: &Client, answer: &Answer) -> Result<(), Exit> {
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let preview = answer.object();
    let rows = |key: &str, columns: &[&str]| -> Vec<Vec<String>> {
        let list = preview.get(key).and_then(Value::as_array);
        let entries = list.into_iter().flat_map(|list| list.values());
        let entries = entries.filter_map(Value::as_object);
        entries
            .map(|entry| columns.iter().map(|column| plain(entry, column)).collect())
            .collect()
    };
    let counts = rows("counts", &["flow", "status", "executions"]);
    if counts.is_empty() {
        output.note("no execution matches");
        return Ok(());
    }
    output.print(&table(&["FLOW", "STATUS", "EXECUTIONS"], &counts))?;
    output.print("\n")?;
    let examples = rows("examples", &["id", "flow", "name", "status"]);
    output.print(&table(&["FOR EXAMPLE", "FLOW", "NAME", "STATUS"], &examples))?;
    output.note(&format!(
        "executions that match: {}; nothing was done",
        plain(&preview, "executions")
    ));
    Ok(())
}

fn show(client: &Client, answer: &Answer) -> Result<(), Exit> {
    let output = client.output();
    if output.json() {
        return finish(output, &answer.text, Ok(()));
    }
    let job = answer.object();
    let json = |key: &str| job.get(key).map(Value::to_json).unwrap_or_default();
    let mut entries = vec![
        ("id", plain(&job, "id")),
        ("action", plain(&job, "action")),
        ("arguments", json("arguments")),
        ("filter", json("filter")),
        ("by", plain(&job, "by")),
        ("state", state(&job)),
    ];
    if let Some(wait) = text(&job, "waitsFor") {
        let why = match wait {
            "collection" => "jobs collect their executions one after the other, in the order in which they were made",
            _ => "as many jobs run as may at a time: this one goes on when one ends, is suspended or is cancelled",
        };
        entries.push(("why", why.to_owned()));
    }
    for key in ["items", "open", "done", "skipped", "failed"] {
        entries.push((key, plain(&job, key)));
    }
    if job.get("ratePerSecond").is_some() {
        entries.push(("rate", format!("{} a second", plain(&job, "ratePerSecond"))));
    }
    entries.push(("created", time(text(&job, "createdTime"))));
    if text(&job, "endedTime").is_some() {
        entries.push(("ended", time(text(&job, "endedTime"))));
    }
    entries.retain(|(_, value)| value != "{}");
    output.print(&listing(&entries))
}

/// The state of a job, and whether it waits for others.
fn state(job: &Object) -> String {
    let state = plain(job, "state");
    match text(job, "waitsFor") {
        Some(_) => format!("{state}, waits"),
        None => state,
    }
}

fn list(client: &Client, most: ListLimit) -> Result<(), Exit> {
    let list = Paged {
        path: &["bulk"],
        query: &[],
        heads: &[
            "ID", "ACTION", "STATE", "ITEMS", "DONE", "SKIPPED", "FAILED", "BY", "CREATED",
        ],
        more: "there are more: `--all` shows them, or `--limit N`",
        flow: None,
    };
    list.show(client, most, |job| {
        let columns = ["items", "done", "skipped", "failed", "by"];
        let mut row = vec![plain(job, "id"), plain(job, "action"), state(job)];
        row.extend(columns.iter().map(|key| plain(job, key)));
        row.push(time(text(job, "createdTime")));
        row
    })
}

fn items(client: &Client, job: &str, result: Option<&str>, most: ListLimit) -> Result<(), Exit> {
    let query: Vec<(&str, String)> = result.map(|result| ("result", result.to_owned())).into_iter().collect();
    let path = ["bulk", job, "items"];
    let list = Paged {
        path: &path,
        query: &query,
        heads: &["ITEM", "EXECUTION", "RESULT", "CODE"],
        more: "there are more: `--all` shows them, or `--limit N`",
        flow: None,
    };
    list.show(client, most, |item| {
        let columns = ["item", "execution", "result"].iter().map(|key| plain(item, key));
        columns
            .chain([text(item, "code").unwrap_or_default().to_owned()])
            .collect()
    })
}
