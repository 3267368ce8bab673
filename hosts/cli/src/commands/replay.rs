//! `replay`: folds a history, shows its state, or feeds its signals to another definition.

use crate::definitions::{STDIN, load_flow, read_text};
use crate::exit::Exit;
use crate::output::{Output, bad, fault, finish, finish_value};
use clap::Args;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::EventId;
use starbridge_node::export::ExportedHistory;
use starbridge_node::json::describe_state;
use starbridge_node::replay::{Divergence, Replayed, fold, replay};
use starbridge_node::stores::open_store;
use std::path::{Path, PathBuf};

/// Folds a history file and says whether it leads to the state it records
///
/// The recorded signals are fed back: the same events must come, one by one.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge exec flow.json --history run.jsonl\n  starbridge replay run.jsonl --until 12\n  starbridge replay --db runs.db --execution order/order-7"
)]
pub struct Options {
    /// The history, as `exec --history` writes it; `-` reads stdin
    #[arg(value_name = "FILE", required_unless_present = "db", conflicts_with = "db")]
    pub history: Option<PathBuf>,
    /// The store's file, where the history is to be read from a store; no server may have it open
    #[arg(long, value_name = "FILE", requires = "execution")]
    pub db: Option<PathBuf>,
    /// The execution in that store: its id, or FLOW/NAME
    #[arg(long, value_name = "ID|FLOW/NAME", requires = "db")]
    pub execution: Option<String>,
    /// Shows input, local and open steps after the turn this event belongs to
    #[arg(long, value_name = "EVENT", conflicts_with = "against")]
    pub until: Option<u64>,
    /// Says at which event this definition would have gone another way
    #[arg(long, value_name = "FLOW")]
    pub against: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let history = history(options, output)?;
    if let Some(until) = options.until {
        return look(&history, until, output);
    }
    if let Some(other) = &options.against {
        let (_, other) = load_flow(other, output)?;
        let replayed = replay(&history, &other, Limits::default());
        return report(&history, &replayed, output, "the other definition goes another way");
    }
    let replayed = replay(&history, &history.flow, Limits::default());
    report(&history, &replayed, output, "the history and this program part")
}

fn history(options: &Options, output: Output) -> Result<ExportedHistory, Exit> {
    if let (Some(db), Some(execution)) = (&options.db, &options.execution) {
        return stored(db, execution, output);
    }
    let file = options.history.as_deref().unwrap_or(Path::new(STDIN));
    let text = read_text(file, output)?;
    ExportedHistory::parse(&text).map_err(|error| {
        let message = format!("{}: {error}", file.display());
        bad(output, &message, "a history is what `exec --history` writes")
    })
}

/// The history of an execution in a store.
fn stored(db: &Path, execution: &str, output: Output) -> Result<ExportedHistory, Exit> {
    // Opening it would create one.
    if !db.exists() {
        return Err(bad(output, &format!("there is no store `{}`", db.display()), ""));
    }
    let help =
        "a server that has it open is asked with `starbridge history ID --export FILE`, and `replay` reads that file";
    let store = open_store(db).map_err(|error| fault(output, &error, help))?;
    let found = ExportedHistory::of_stored(store.as_ref(), execution);
    let found = found.map_err(|error| fault(output, &error.to_string(), ""))?;
    found.ok_or_else(|| {
        let message = format!("`{}` has no execution `{execution}`", db.display());
        bad(output, &message, "an execution is given by its id or as FLOW/NAME")
    })
}

/// The state at the end of the turn that an event belongs to.
fn look(history: &ExportedHistory, until: u64, output: Output) -> Result<(), Exit> {
    let last = history.events.len() as u64;
    if until == 0 || until > last {
        let help = format!("the history has events 1 to {last}");
        return Err(bad(output, &format!("there is no event {until}"), &help));
    }
    let state = match fold(history, Some(EventId(until))) {
        Ok(state) => state,
        Err(at) => {
            let message = format!("the history does not fit its definition from event {at} on");
            return Err(output.fail(Exit::Found, &message, None));
        }
    };
    finish_value(output, &describe_state(&history.flow, &state), Ok(()))
}

fn report(history: &ExportedHistory, replayed: &Replayed, output: Output, parted: &str) -> Result<(), Exit> {
    let Some(divergence) = &replayed.divergence else {
        let status = replayed.state.status().as_str();
        let result = object([
            ("same", true.into()),
            ("status", status.into()),
            ("events", (history.events.len() as u64).into()),
            ("turns", (replayed.turns as u64).into()),
        ]);
        if output.json() {
            return finish(output, &result.to_json(), Ok(()));
        }
        let text = format!(
            "the same: {} events in {} turns lead to {status}",
            history.events.len(),
            replayed.turns
        );
        return finish(output, &text, Ok(()));
    };
    if output.json() {
        return finish(output, &divergence_value(divergence).to_json(), Err(Exit::Found));
    }
    finish(output, &side_by_side(divergence, parted), Err(Exit::Found))
}

fn divergence_value(divergence: &Divergence) -> Value {
    let side = |side: &Option<Object>| side.clone().map(Value::from).unwrap_or_default();
    object([
        ("same", false.into()),
        ("event", divergence.event.0.into()),
        ("recorded", side(&divergence.recorded)),
        ("expected", side(&divergence.expected)),
        (
            "refused",
            divergence.refused.clone().map(Value::from).unwrap_or_default(),
        ),
    ])
}

/// The two events, member by member, with differences marked.
fn side_by_side(divergence: &Divergence, parted: &str) -> String {
    let mut text = format!("{parted} at event {}\n", divergence.event);
    if let Some(refused) = &divergence.refused {
        text.push_str(&format!("  what was recorded there can't happen: {refused}\n"));
    }
    text.push_str(&format!("    {:<10} {:<44} {}\n", "", "recorded", "now"));
    let empty = Object::new();
    let recorded = divergence.recorded.as_ref().unwrap_or(&empty);
    let expected = divergence.expected.as_ref().unwrap_or(&empty);
    for key in ["id", "causedBy", "time", "step", "path", "type", "detail", "rollback"] {
        let show = |side: &Object| {
            side.get(key)
                .map(Value::to_plain_text)
                .unwrap_or_else(|| "–".to_owned())
        };
        let (was, is) = (show(recorded), show(expected));
        if was == "–" && is == "–" {
            continue;
        }
        let mark = if was == is { " " } else { "≠" };
        if was.chars().count() > 43 {
            text.push_str(&format!("  {mark} {key:<10} {was}\n    {:<10} {:<44} {is}\n", "", ""));
        } else {
            text.push_str(&format!("  {mark} {key:<10} {was:<44} {is}\n"));
        }
    }
    text.pop();
    text
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members
        .into_iter()
        .map(|(key, value)| (key.into(), value))
        .collect::<Object>()
        .into()
}
