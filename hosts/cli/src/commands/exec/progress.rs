//! What a run shows on stderr while it goes on: a live tree on a terminal, plain lines otherwise.

use crate::output::Output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use starbridge_flow::graph::{Flow, StepId, StepKind};
use starbridge_machine::{Child, Event, EventKind, Exit as ChildExit, Failure, StepPath};
use starbridge_node::escaping::{escaped, escaped_but_colours};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is shown of a run.
pub(super) struct Progress {
    live: Option<MultiProgress>,
    quiet: bool,
    /// Open steps, by execution part, step and path.
    bars: BTreeMap<String, ProgressBar>,
    /// Iterations done, by foreach.
    iterations: BTreeMap<String, (u64, u64)>,
    entered: BTreeMap<String, starbridge_flow::time::Timestamp>,
}

impl Progress {
    pub(super) fn new(output: Output) -> Self {
        let live = (!output.quiet() && output.is_live())
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Self {
            live,
            quiet: output.quiet(),
            bars: BTreeMap::new(),
            iterations: BTreeMap::new(),
            entered: BTreeMap::new(),
        }
    }

    /// Shows a turn.
    pub(super) fn turn(&mut self, flow: &Flow, events: &[Event], is_main: bool) {
        if self.quiet {
            return;
        }
        for event in events {
            self.event(flow, event, is_main);
        }
    }

    /// Shows a line of its own; of what a terminal would obey only colours.
    pub(super) fn line(&self, line: &str) {
        let line = &*escaped_but_colours(line);
        match &self.live {
            Some(live) => {
                let _ = live.println(line);
            }
            None if self.quiet => {}
            None => anstream::eprintln!("{line}"),
        }
    }

    /// Takes the live part away.
    pub(super) fn end(&mut self) {
        for bar in std::mem::take(&mut self.bars).into_values() {
            bar.finish_and_clear();
        }
        if let Some(live) = &self.live {
            let _ = live.clear();
        }
    }

    fn event(&mut self, flow: &Flow, event: &Event, is_main: bool) {
        let name = event
            .step
            .and_then(|step| flow.step(step))
            .map(|step| escaped(&step.name).into_owned())
            .unwrap_or_default();
        let key = format!("{is_main}{name}{:?}", event.path.items());
        let depth = event.path.items().len() + usize::from(!is_main);
        let indent = "  ".repeat(depth);
        // Thousands of iterations are a bar or a count, not lines.
        let crowded = event
            .path
            .items()
            .iter()
            .any(|item| matches!(item.child, Child::Iteration(_)));
        match &event.detail {
            EventKind::StepEntered => {
                self.entered.insert(key.clone(), event.time);
                self.open(&key, &indent, &name, is_foreach(flow, event.step), crowded);
            }
            EventKind::StepExited { caught: None, .. } => {
                let done = self.done_note(&key, event);
                self.close(&key, &format!("{indent}✓ {name}{done}"), crowded);
            }
            EventKind::StepExited {
                caught: Some(_), goto, ..
            } => {
                let target = goto
                    .and_then(|goto| flow.step(goto))
                    .map(|step| escaped(&step.name).into_owned());
                self.entered.remove(&key);
                self.close(
                    &key,
                    &format!("{indent}⤳ {name} caught, goes on at {}", target.unwrap_or_default()),
                    crowded,
                );
            }
            EventKind::StepFailed { failure, attempt } => {
                let what = if event.rollback { "undoing " } else { "" };
                let place = place(flow, &event.path);
                let failure = shown(failure);
                self.line(&format!("{indent}✗ {what}{name}{place}, attempt {attempt}: {failure}"));
            }
            EventKind::RetryScheduled { attempt, delay_ms, .. } => {
                self.line(&format!(
                    "{indent}↻ {name}: attempt {attempt} in {}",
                    seconds(*delay_ms)
                ));
            }
            EventKind::WaitStarted { until } if !crowded => self.line(&format!("{indent}… {name} waits until {until}")),
            EventKind::ChoiceTaken { arm } if !crowded => {
                self.line(&format!("{indent}◇ {name}: {}", arm_name(*arm)));
            }
            EventKind::IterationExited(exit) => self.iteration(flow, event, exit, is_main, &indent),
            EventKind::RollbackStarted { .. } => self.line(&format!("{indent}↺ undoing {name}")),
            EventKind::RollbackSucceeded => self.line(&format!("{indent}↺ undone {name}")),
            EventKind::RollbackFailed { failure, .. } => {
                self.line(&format!("{indent}✗ {name} can't be undone: {}", shown(failure)));
            }
            EventKind::ExecutionTimedOut if is_main => self.line("✗ the execution took too long"),
            _ => {}
        }
    }

    /// How long a step took, and how many iterations it had.
    fn done_note(&mut self, key: &str, event: &Event) -> String {
        let since = self.entered.remove(key).map_or(0, |from| event.time.millis_since(from));
        let iterations = match self.iterations.remove(key) {
            None => String::new(),
            Some((done, failed)) => format!(", {done} iterations{}", failed_note(failed)),
        };
        format!("{}{iterations}", took(since))
    }

    fn iteration(&mut self, flow: &Flow, event: &Event, exit: &ChildExit, is_main: bool, indent: &str) {
        let outer: Vec<_> = event.path.items().iter().rev().skip(1).rev().copied().collect();
        let name = event
            .step
            .and_then(|step| flow.step(step))
            .map(|step| escaped(&step.name).into_owned());
        let key = format!("{is_main}{}{outer:?}", name.clone().unwrap_or_default());
        let (done, failed) = self.iterations.entry(key.clone()).or_insert((0, 0));
        *done += 1;
        *failed += u64::from(matches!(exit, ChildExit::Failed(_)));
        let (done, failed) = (*done, *failed);
        if let Some(bar) = self.bars.get(&key) {
            bar.set_position(done);
            bar.set_message(format!("{indent}{}{}", name.unwrap_or_default(), failed_note(failed)));
        } else if self.live.is_none() && done % 1000 == 0 {
            self.line(&format!(
                "{indent}⟳ {}: {done} iterations{}",
                name.unwrap_or_default(),
                failed_note(failed)
            ));
        }
    }

    fn open(&mut self, key: &str, indent: &str, name: &str, foreach: bool, crowded: bool) {
        match &self.live {
            None if crowded => {}
            None => self.line(&format!("{indent}→ {name}")),
            Some(_) if crowded => {}
            Some(live) => {
                let bar = live.add(if foreach {
                    ProgressBar::no_length()
                } else {
                    ProgressBar::new_spinner()
                });
                let template = if foreach {
                    "{spinner} {msg}: {pos} iterations ({elapsed})"
                } else {
                    "{spinner} {msg} ({elapsed})"
                };
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style);
                }
                bar.set_message(format!("{indent}{name}"));
                bar.enable_steady_tick(Duration::from_millis(120));
                self.bars.insert(key.to_owned(), bar);
            }
        }
    }

    fn close(&mut self, key: &str, line: &str, crowded: bool) {
        if let Some(bar) = self.bars.remove(key) {
            bar.finish_and_clear();
        }
        if !crowded {
            self.line(line);
        }
    }
}

fn arm_name(arm: Option<Option<u32>>) -> String {
    match arm {
        None => "no arm".to_owned(),
        Some(None) => "default".to_owned(),
        Some(Some(number)) => format!("arm {number}"),
    }
}

/// An error with its cause, if it has one.
fn shown(failure: &Failure) -> String {
    let text = match failure.cause.as_str() {
        "" => failure.error.to_string(),
        cause => format!("{}: {cause}", failure.error),
    };
    escaped(&text).into_owned()
}

fn is_foreach(flow: &Flow, step: Option<StepId>) -> bool {
    step.and_then(|step| flow.step(step))
        .is_some_and(|step| matches!(step.kind, StepKind::Foreach(_)))
}

fn failed_note(failed: u64) -> String {
    if failed == 0 {
        String::new()
    } else {
        format!(", {failed} failed")
    }
}

/// Where in iterations and branches a step stands: ` (each[3])`.
fn place(flow: &Flow, path: &StepPath) -> String {
    let parts: Vec<String> = path
        .items()
        .iter()
        .filter_map(|item| {
            let step = flow.step(item.step)?;
            let name = escaped(&step.name);
            match item.child {
                Child::Branch(number) | Child::Iteration(number) => Some(format!("{name}[{number}]")),
                Child::Arm(_) => None,
            }
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(" › "))
    }
}

fn took(millis: u64) -> String {
    if millis == 0 {
        String::new()
    } else {
        format!(" ({})", seconds(millis))
    }
}

fn seconds(millis: u64) -> String {
    format!("{} s", millis as f64 / 1000.0)
}
