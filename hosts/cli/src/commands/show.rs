//! `show`: an execution of a server.

mod attempts;
mod family;
mod iterations;
mod steps;
mod timeline;
mod tree;

use super::history::definition;
use crate::client::{Client, ServerOptions, follow};
use crate::exit::Exit;
use crate::output::{Output, finish_value};
use crate::progress::Progress;
use crate::views::{self, event_line, outcome, plain};
use clap::Args;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::read_event;

/// Shows an execution of a server: where it stands, and what came of it
///
/// --follow shows on stderr what happens as it happens, over restarts of the server, until it has ended.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  starbridge show order/order-7 --steps\n  starbridge show order/order-7 --steps --failed\n  starbridge show order/order-7 --steps --step pay --at 20\n  starbridge show order/order-7 --attempts 12\n  starbridge show order/order-7 --timeline\n  starbridge show order/order-7 --iterations 9 --status failed\n  starbridge show order/order-7 --tree\n  starbridge show order/order-7 --state=12\n  starbridge show order/order-7 --follow"
)]
pub struct Options {
    /// The execution: its id, or FLOW/NAME
    #[arg(value_name = "ID|FLOW/NAME")]
    pub execution: String,
    /// Shows its steps instead: how far each foreach is, then a line for each visit
    #[arg(long, group = "parts", conflicts_with = "follow")]
    pub steps: bool,
    /// Of the steps only those that failed
    #[arg(long, requires = "steps", conflicts_with_all = ["timeline", "iterations", "tree", "state", "attempts"])]
    pub failed: bool,
    /// Of the steps only those that are not over
    #[arg(long, requires = "steps", conflicts_with_all = ["timeline", "iterations", "tree", "state", "attempts"])]
    pub running: bool,
    /// Of the steps only visits of the one of this name
    #[arg(long, value_name = "NAME", requires = "steps", conflicts_with_all = ["timeline", "iterations", "tree", "state", "attempts"])]
    pub step: Option<String>,
    /// The steps, the time line or the iterations as they were after this event
    #[arg(long, value_name = "EVENT", requires = "parts", conflicts_with_all = ["tree", "state", "attempts"], value_parser = clap::value_parser!(u64).range(1..))]
    pub at: Option<u64>,
    /// Shows each attempt of a visit instead, given by the `event` of its row in `--steps --json`
    #[arg(long, value_name = "EVENT", conflicts_with_all = ["steps", "tree", "follow"])]
    pub attempts: Option<u64>,
    /// Shows a time line instead: a lane for each visit, with attempts (=), failed ones (x), undoing (u) and pauses (.)
    #[arg(long, group = "parts", conflicts_with_all = ["attempts", "tree", "state", "follow"])]
    pub timeline: bool,
    /// The time line from this time on (RFC 3339)
    #[arg(long, value_name = "TIME", requires = "timeline", conflicts_with_all = ["steps", "iterations", "tree", "state", "attempts"])]
    pub from: Option<String>,
    /// The time line up to this time (RFC 3339)
    #[arg(long, value_name = "TIME", requires = "timeline", conflicts_with_all = ["steps", "iterations", "tree", "state", "attempts"])]
    pub to: Option<String>,
    /// Shows the iterations of a foreach instead, or the branches of a parallel, given by the `event` of its row in `--steps --json`
    #[arg(long, value_name = "EVENT", group = "parts", conflicts_with_all = ["attempts", "tree", "state", "follow"])]
    pub iterations: Option<u64>,
    /// Of the iterations only those that stand so: running, succeeded, failed, cancelled or notBegun
    #[arg(long, value_name = "STATUS", requires = "iterations", conflicts_with_all = ["steps", "timeline", "tree", "state", "attempts"])]
    pub status: Option<String>,
    /// Shows it with the executions that it started, and those that they started
    #[arg(long, conflicts_with_all = ["steps", "follow"])]
    pub tree: bool,
    /// Shows its data and its open steps instead, as JSON: as they are, or as they were after this event
    #[arg(long, value_name = "EVENT", num_args = 0..=1, require_equals = true, default_missing_value = "0", conflicts_with_all = ["steps", "tree", "follow", "attempts"])]
    pub state: Option<u64>,
    /// Goes on until it has ended; the exit code then says how
    #[arg(long)]
    pub follow: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let client = Client::new(&options.server, output)?;
    if options.steps {
        let wanted = steps::Wanted {
            failed: options.failed,
            running: options.running,
            step: options.step.as_deref(),
            at: options.at,
        };
        return steps::show(&client, &options.execution, wanted);
    }
    if options.timeline {
        let wanted = timeline::Wanted {
            from: options.from.as_deref(),
            to: options.to.as_deref(),
            at: options.at,
        };
        return timeline::show(&client, &options.execution, wanted);
    }
    if let Some(event) = options.iterations {
        let wanted = iterations::Wanted {
            event,
            status: options.status.as_deref(),
            at: options.at,
        };
        return iterations::show(&client, &options.execution, wanted);
    }
    if let Some(event) = options.attempts {
        return attempts::show(&client, &options.execution, event);
    }
    if options.tree {
        return tree::show(&client, &options.execution);
    }
    if let Some(event) = options.state {
        return show_state(&client, &options.execution, event);
    }
    let answer = views::execution(&client, &options.execution)?;
    if !options.follow {
        return views::show_with(&client, &answer, |execution| family::children(&client, execution));
    }
    let execution = answer.object();
    let id = plain(&execution, "id");
    follow_live(&client, &execution, &id)?;
    let answer = client.get(&["executions", &id], &[])?;
    views::show(&client, &answer)?;
    outcome(&answer.object()).unwrap_or(Ok(()))
}

/// Shows where it stood after an event, or where it stands; 0 is no event.
fn show_state(client: &Client, execution: &str, event: u64) -> Result<(), Exit> {
    let id = views::id_of(client, execution)?;
    let at = (event > 0).then(|| ("at", event.to_string()));
    let query: Vec<(&str, String)> = at.into_iter().collect();
    let answer = client.get(&["executions", &id, "state"], &query)?;
    finish_value(client.output(), &answer.object().into(), Ok(()))
}

/// Shows progress like `exec`. Events that can't be read, because the server is of a later version,
/// are shown unchanged.
fn follow_live(client: &Client, execution: &Object, id: &str) -> Result<(), Exit> {
    let output = client.output();
    let flow = definition(client, execution)?;
    let name = Text::from(id);
    let mut progress = Progress::new(output, false);
    let followed = follow(client, id, 1, &mut |_, event: &Object| {
        match read_event(&flow, &Value::from(event.clone())) {
            Ok(event) => progress.turn(&name, &flow, std::slice::from_ref(&event), true),
            Err(_) => progress.line(&event_line(event)),
        }
        Ok(())
    });
    progress.end();
    followed
}
