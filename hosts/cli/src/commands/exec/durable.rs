//! `exec --db`: runs that go on after any interruption.

use super::{LoadedFlow, Watch};
use crate::exit::Exit;
use crate::output::{Output, fault};
use crate::progress::Progress;
use starbridge_flow::graph::Flow;
use starbridge_machine::State;
use starbridge_node::export::{export_event, export_head};
use starbridge_node::local::{LocalRun, LocalStart};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};

impl Watch {
    /// Prepares an execution to run. Prints a note if it began before, and writes its history so
    /// far.
    pub(super) fn begin(
        &mut self,
        run: &LocalRun,
        begun: &LocalStart,
        main: &LoadedFlow,
        children: &BTreeMap<String, Arc<Flow>>,
        output: Output,
    ) -> Result<(), Exit> {
        let execution = begun.id();
        self.main = Some(execution.clone());
        match begun {
            LocalStart::New(_) => {}
            LocalStart::TakenUp(_) => self.progress.line("goes on where it was"),
            LocalStart::Ended(_) => self.progress.line("it has ended before: this is its result"),
        }
        let events = run.kept_events(execution);
        let events = events.map_err(|error| fault(output, &error.to_string(), ""))?;
        if let LocalStart::TakenUp(_) = begun {
            self.progress.take_up(execution, &main.flow, &events);
        }
        if let Some(operator) = &self.operator {
            for (execution, flow, state) in run.states() {
                operator.ask(execution, flow, state, |_| true);
            }
        }
        for (execution, call) in run.reported_calls() {
            self.report_hints.call(&execution, &call, &self.progress);
        }
        let Some(history) = &mut self.history else {
            return Ok(());
        };
        let needed = run.state(execution).map_or(1, State::needed_version);
        let head = export_head(execution, needed, &main.flow, children);
        let lines = events.iter().map(|event| export_event(&main.flow, event));
        let mut lines = [head].into_iter().chain(lines);
        let written = lines
            .try_for_each(|line| writeln!(history, "{line}"))
            .and_then(|()| history.flush());
        written.map_err(|error| fault(output, &format!("the history can't be written: {error}"), ""))
    }
}

/// The receiver of interrupts, if they leave the execution as it is.
pub(super) fn interrupts(durable: bool, output: Output) -> Result<Option<Signal>, Exit> {
    if !durable {
        return Ok(None);
    }
    let heard = signal(SignalKind::interrupt());
    heard
        .map(Some)
        .map_err(|error| fault(output, &format!("interrupts can't be heard: {error}"), ""))
}

/// Prints how to continue an execution that is left as it is, and how to undo its effects.
pub(super) fn leave(output: Output, execution: &str, db: Option<&Path>, progress: &Progress) -> Exit {
    let again = command(std::env::args().skip(1), execution);
    output.say(&format!(
        "interrupted: nothing is lost; go on with\n    starbridge {again}\n"
    ));
    let done: Vec<&str> = progress.done().map(|(name, _)| name).collect();
    if let (false, Some(db)) = (done.is_empty(), db) {
        let (stay, db) = (stay(&done), quoted(&db.display().to_string()));
        output.say(&format!(
            "{stay}; a server can undo it instead:\n    starbridge serve --db {db}\n    starbridge stop {execution} --rollback\n"
        ));
    }
    Exit::Interrupted
}

/// Prints the remaining effects of an execution that was stopped, and what undoes them.
pub(super) fn stopped(output: Output, progress: &Progress) {
    output.note("interrupted: the execution was stopped, calls in flight were given up");
    let done: Vec<(&str, &str)> = progress.done().collect();
    if done.is_empty() {
        return;
    }
    let names: Vec<&str> = done.iter().map(|(name, _)| *name).collect();
    output.note(&format!(
        "{}, nothing was undone; this undoes it, in this order:",
        stay(&names)
    ));
    for (name, undo) in done {
        output.note(&format!("    {name}: {undo}"));
    }
    output.note("with `--db FILE` a run can go on after an interrupt");
}

fn stay(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "stays" } else { "stay" };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{} {verb} done", names.join(", "))
}

/// The words of the command that continues the run: the given ones without the input, plus the
/// name.
fn command(given: impl Iterator<Item = String>, execution: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut given = given.peekable();
    let mut named = false;
    while let Some(word) = given.next() {
        match word.as_str() {
            "--input" | "--input-file" => drop(given.next()),
            _ if word.starts_with("--input=") || word.starts_with("--input-file=") => {}
            _ => {
                named |= word == "--name" || word.starts_with("--name=");
                words.push(quoted(&word));
            }
        }
    }
    if !named {
        words.push(format!("--name {execution}"));
    }
    words.join(" ")
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_is_the_one_that_began() {
        for (given, expected) in [
            (vec!["exec", "a.json", "--db", "x.db"], "exec a.json --db x.db --name 7"),
            (
                vec!["exec", "my flow.json", "--input", "{}", "--db=x.db", "--name", "o'1"],
                "exec 'my flow.json' --db=x.db --name 'o'\\''1'",
            ),
            (vec!["exec", "--input-file=-", "a", "--name=b"], "exec a --name=b"),
        ] {
            assert_eq!(command(given.into_iter().map(str::to_owned), "7"), expected);
        }
    }
}
