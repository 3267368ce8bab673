//! The progress of a run on stderr: a live tree on a terminal, plain lines otherwise.

mod counts;
mod screen;
mod words;

use crate::output::Output;
use counts::Counts;
use screen::Screen;
use starbridge_flow::graph::{Budget, Choice, Flow, Root, StepId, StepKind, Undo};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Child, Event, EventKind, Exit as ChildExit, PathItem, State};
use starbridge_node::escaping::escaped;
use std::collections::BTreeMap;
use std::sync::Arc;
use words::mark;
pub use words::place;

/// Without a terminal, progress of iterations is printed once for this many.
const ITERATIONS_PER_LINE: u64 = 1000;

/// The view of a run.
pub struct Progress {
    screen: Screen,
    verbose: bool,
    /// Whether the next events have been shown before, so that only the steps open at the end
    /// matter.
    before: bool,
    limits: Arc<Limits>,
    /// The states of executions, as far as their events have been seen.
    states: BTreeMap<Text, State>,
    /// Open steps that are not iterations: their lines, by execution, step and path.
    open: BTreeMap<String, (u64, String)>,
    /// When they were entered.
    entered: BTreeMap<String, Timestamp>,
    /// Iterations by foreach.
    iterations: BTreeMap<String, Counts>,
    /// Targets that got no value, by step.
    nothing: BTreeMap<String, Vec<Text>>,
    /// Completed tasks that can be undone: their names, and what undoes them.
    done: Vec<(String, String, String)>,
}

/// An event and its step.
struct EventView<'a> {
    flow: &'a Flow,
    event: &'a Event,
    execution: &'a Text,
    /// The step in its place.
    key: String,
    name: String,
    indent: String,
    /// Whether it is inside a foreach: thousands of iterations are shown as a bar or a count, not
    /// as lines.
    in_foreach: bool,
    is_main: bool,
}

impl<'a> EventView<'a> {
    fn of(flow: &'a Flow, execution: &'a Text, event: &'a Event, is_main: bool) -> Self {
        let items = event.path.items();
        let name = event
            .step
            .and_then(|step| flow.step(step))
            .map(|step| escaped(&step.name));
        Self {
            flow,
            event,
            execution,
            key: key(execution, event.step, items),
            name: name.unwrap_or_default().into_owned(),
            indent: "  ".repeat(items.len() + usize::from(!is_main)),
            in_foreach: items.iter().any(|item| matches!(item.child, Child::Iteration(_))),
            is_main,
        }
    }

    fn kind(&self) -> Option<&'a StepKind> {
        let step = self.event.step.and_then(|step| self.flow.step(step));
        step.map(|step| &step.kind)
    }

    fn choice(&self) -> Option<&'a Choice> {
        match self.kind() {
            Some(StepKind::Choice(choice)) => Some(choice),
            _ => None,
        }
    }

    /// The key of the outermost foreach around it.
    fn outermost_foreach(&self) -> Option<String> {
        let items = self.event.path.items();
        let at = items
            .iter()
            .position(|item| matches!(item.child, Child::Iteration(_)))?;
        let foreach = items.get(at)?.step;
        Some(key(self.execution, Some(foreach), items.get(..at).unwrap_or_default()))
    }

    fn place(&self) -> String {
        place(self.flow, &self.event.path)
    }
}

fn key(execution: &Text, step: Option<StepId>, path: &[PathItem]) -> String {
    format!("{execution} {step:?} {path:?}")
}

impl Progress {
    /// A view without content. `verbose`: also shows inputs and outputs.
    pub fn new(output: Output, verbose: bool) -> Self {
        Self {
            screen: Screen::new(output),
            verbose,
            before: false,
            limits: Arc::new(Limits::default()),
            states: BTreeMap::new(),
            open: BTreeMap::new(),
            entered: BTreeMap::new(),
            iterations: BTreeMap::new(),
            nothing: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// Shows a turn.
    pub fn turn(&mut self, execution: &Text, flow: &Flow, events: &[Event], is_main: bool) {
        if self.screen.is_quiet() {
            return;
        }
        for event in events {
            let scene = EventView::of(flow, execution, event, is_main);
            let nothing = self.nothing_in_conditions(&scene);
            self.fold(&scene);
            self.event(&scene, &nothing);
        }
    }

    /// Shows the open steps of an execution after these earlier events.
    pub fn take_up(&mut self, execution: &Text, flow: &Flow, events: &[Event]) {
        self.before = true;
        self.turn(execution, flow, events, true);
        self.before = false;
        if !self.screen.is_live() {
            let mut open: Vec<&(u64, String)> = self.open.values().collect();
            open.sort_unstable();
            open.into_iter().for_each(|(_, line)| self.line(line));
        }
    }

    /// Shows a line of its own, without control sequences other than colours.
    pub fn line(&self, line: &str) {
        if !self.before {
            self.screen.line(line);
        }
    }

    /// Removes the live part.
    pub fn end(&mut self) {
        self.screen.clear();
    }

    /// Completed tasks that could be undone: their names, each with what undoes it, the last one
    /// first.
    pub fn done(&self) -> impl Iterator<Item = (&str, &str)> {
        let done = self.done.iter().rev();
        done.map(|(_, name, undo)| (name.as_str(), undo.as_str()))
    }

    /// Follows the execution's state, if its events have been seen from the first on.
    fn fold(&mut self, scene: &EventView<'_>) {
        let event = scene.event;
        if event.id.0 == 1 {
            let state = State::new(scene.execution.clone(), self.limits.clone());
            self.states.insert(scene.execution.clone(), state);
        }
        if let Some(state) = self.states.get_mut(scene.execution) {
            let follows = state.last_event().next() == event.id;
            if follows {
                state.apply(scene.flow, event);
            }
            // The state of an ended execution is not needed.
            if !follows || state.status().is_ended() {
                self.states.remove(scene.execution);
            }
        }
    }

    /// The input of an event's step, if it is known.
    fn input(&self, scene: &EventView<'_>) -> Option<Value> {
        let open = self.states.get(scene.execution)?.open_steps();
        let found = open
            .into_iter()
            .find(|open| Some(open.step) == scene.event.step && open.path == scene.event.path);
        found.map(|open| open.input)
    }

    fn nothing_in_conditions(&self, scene: &EventView<'_>) -> Vec<Text> {
        let EventKind::ChoiceTaken { arm } = &scene.event.detail else {
            return Vec::new();
        };
        let found = scene.choice().filter(|_| !scene.in_foreach).zip(self.input(scene));
        found.map_or_else(Vec::new, |(choice, input)| words::unfound(choice, *arm, &input))
    }

    fn event(&mut self, scene: &EventView<'_>, nothing: &[Text]) {
        let EventView {
            event,
            key,
            name,
            indent,
            in_foreach,
            ..
        } = scene;
        match &event.detail {
            EventKind::StepEntered { .. } => self.entered(scene),
            EventKind::StepStarted { missing, .. } => self.started(scene, missing),
            EventKind::StepSucceeded { output, missing } => self.succeeded(scene, output.as_ref(), missing),
            EventKind::TaskSucceeded { result, .. } if self.verbose => self.data(scene, "result", result),
            EventKind::StepExited { goto, caught, missing } => {
                self.note_missing(scene, missing);
                self.exited(scene, *goto, caught.is_some());
            }
            EventKind::StepFailed { failure, attempt } => {
                let what = if event.rollback { "undoing " } else { "" };
                let (place, failure) = (scene.place(), words::failure(failure));
                let cross = mark('✗');
                self.line(&format!(
                    "{indent}{cross} {what}{name}{place}, attempt {attempt}: {failure}"
                ));
            }
            EventKind::RetryScheduled { attempt, delay, .. } => {
                let (again, place, delay) = (mark('↻'), scene.place(), *delay);
                self.line(&format!("{indent}{again} {name}{place}: attempt {attempt} in {delay}"));
            }
            EventKind::WaitStarted { until } if !in_foreach => {
                let (dots, wait) = (mark('…'), words::wait(event.time, *until, self.screen.is_live()));
                self.line(&format!("{indent}{dots} {name} {wait}"));
            }
            EventKind::ChoiceTaken { arm } if !in_foreach => {
                let (way, arm) = (mark('◇'), words::arm(scene.choice(), *arm));
                let nothing = words::not_found(nothing);
                self.line(&format!("{indent}{way} {name}: {arm}{nothing}"));
            }
            EventKind::IterationExited(exit) => self.iteration(scene, exit),
            EventKind::RollbackStarted { .. } => self.line(&format!("{indent}{} undoing {name}", mark('↺'))),
            EventKind::RollbackSucceeded => {
                self.done.retain(|(done, ..)| done != key);
                self.line(&format!("{indent}{} undone {name}", mark('↺')));
            }
            EventKind::RollbackFailed { failure, .. } => {
                let (cross, failure) = (mark('✗'), words::failure(failure));
                self.line(&format!("{indent}{cross} {name} can't be undone: {failure}"));
            }
            EventKind::ExecutionTimedOut { drain } if scene.is_main => {
                let more = if *drain { "; what is out may end" } else { "" };
                self.line(&format!("{} the execution took too long{more}", mark('✗')));
            }
            act => self.operator_act(scene, act),
        }
    }

    /// The question to an operator, and the decision.
    fn operator_act(&self, scene: &EventView<'_>, act: &EventKind) {
        let EventView { name, indent, .. } = scene;
        match act {
            EventKind::RollbackSkipped { cause, .. } => {
                let why = match cause.as_str() {
                    "" => String::new(),
                    cause => format!(": {}", escaped(cause)),
                };
                self.line(&format!("{indent}{} {name} stays done{why}", mark('↺')));
            }
            EventKind::ManualRequested(failure) => {
                let (place, failure) = (scene.place(), words::failure(failure));
                self.line(&format!(
                    "{indent}{} {name}{place} waits for an operator: {failure}",
                    mark('…')
                ));
            }
            EventKind::ManualResolved(resolution) => {
                let (place, by) = (scene.place(), escaped(&resolution.by));
                let action = resolution.decision.action().as_str();
                self.line(&format!("{indent}{} {name}{place}: {by} decides: {action}", mark('↻')));
            }
            EventKind::ExecutionPaused { cause, .. } if scene.is_main => {
                let why = match cause.as_str() {
                    "" => String::new(),
                    cause => format!(": {}", escaped(cause)),
                };
                self.line(&format!("{} paused{why}", mark('⏸')));
            }
            EventKind::ExecutionResumed { .. } if scene.is_main => {
                self.line(&format!("{} goes on after the pause", mark('▶')));
            }
            EventKind::ExecutionReordered {
                priority, order_time, ..
            } if scene.is_main => {
                let priority = priority.map(|priority| format!(", priority {priority}"));
                let order = order_time.map(|order| format!(", order {order}"));
                let (priority, order) = (priority.unwrap_or_default(), order.unwrap_or_default());
                self.line(&format!("{} goes in another order{priority}{order}", mark('↻')));
            }
            EventKind::ExecutionRedriven { .. } if scene.is_main => {
                let names = scene.flow.name.as_deref().unwrap_or("the flow");
                self.line(&format!("{} {} goes on", mark('↻'), escaped(names)));
            }
            _ => {}
        }
    }

    fn entered(&mut self, scene: &EventView<'_>) {
        let EventView {
            event,
            key,
            name,
            indent,
            in_foreach,
            ..
        } = scene;
        self.nothing.remove(key);
        if *in_foreach {
            return;
        }
        self.entered.insert(key.clone(), event.time);
        let line = format!("{indent}{} {name}", mark('→'));
        if !self.screen.is_live() {
            self.line(&line);
        }
        self.open.insert(key.clone(), (event.id.0, line));
        self.screen.open(key, format!("{indent}{name}"));
    }

    fn started(&mut self, scene: &EventView<'_>, missing: &[Text]) {
        self.note_missing(scene, missing);
        let foreach = match scene.kind() {
            Some(StepKind::Foreach(foreach)) if !scene.in_foreach => Some(foreach),
            _ => None,
        };
        if foreach.is_none() && !self.verbose {
            return;
        }
        let Some(input) = self.input(scene) else {
            return;
        };
        if let Some(foreach) = foreach {
            let found = foreach.collection.find(Root::from(&input), &Budget::unlimited());
            let items = found.ok().flatten();
            let total = items.as_ref().and_then(Value::as_array).map(|items| items.len() as u64);
            self.iterations.entry(scene.key.clone()).or_default().total = total;
        }
        if self.verbose {
            self.data(scene, "input", &input);
        }
    }

    fn succeeded(&mut self, scene: &EventView<'_>, output: Option<&Value>, missing: &[Text]) {
        self.note_missing(scene, missing);
        if let (true, Some(output)) = (self.verbose, output) {
            self.data(scene, "output", output);
        }
        if scene.event.rollback {
            return;
        }
        if let Some(StepKind::Task(task)) = scene.kind()
            && let Some(rollback) = &task.rollback
        {
            let undo = match &rollback.undo {
                Undo::Call(call) => call.resource.to_string(),
                Undo::Child => "the rollback of its child".to_owned(),
            };
            let name = format!("{}{}", scene.name, scene.place());
            self.done.push((scene.key.clone(), name, escaped(&undo).into_owned()));
        }
    }

    fn exited(&mut self, scene: &EventView<'_>, goto: Option<StepId>, caught: bool) {
        let EventView {
            flow,
            event,
            key,
            name,
            indent,
            ..
        } = scene;
        self.screen.close(key);
        self.open.remove(key);
        let nothing = words::not_set(&self.nothing.remove(key).unwrap_or_default());
        let since = self
            .entered
            .remove(key)
            .map_or(Millis::ZERO, |from| event.time.since(from));
        let iterations = self.iterations.remove(key);
        if scene.in_foreach {
            return;
        }
        if caught {
            let target = goto.and_then(|goto| flow.step(goto)).map(|step| escaped(&step.name));
            let target = target.unwrap_or_default();
            return self.line(&format!(
                "{indent}{} {name} caught, goes on at {target}{nothing}",
                mark('⤳')
            ));
        }
        let iterations = iterations.map_or_else(String::new, |counts| {
            format!(", {}{}", counts.iterations(), counts.failed_words())
        });
        let took = words::took(since);
        self.line(&format!("{indent}{} {name}{took}{iterations}{nothing}", mark('✓')));
    }

    /// Records the targets that got no value. They are shown when the step is left; for iterations,
    /// when all are over.
    fn note_missing(&mut self, scene: &EventView<'_>, missing: &[Text]) {
        if missing.is_empty() {
            return;
        }
        if scene.event.step.is_none() {
            let nothing = words::not_set(missing);
            let what = match scene.event.detail {
                EventKind::StepStarted { .. } => "input",
                _ => "output",
            };
            return self.line(&format!("{} the flow's {what}{nothing}", mark('…')));
        }
        let (at, missing) = match scene.outermost_foreach() {
            None => (scene.key.clone(), missing.to_vec()),
            Some(outermost_foreach) => {
                let of = |target: &Text| Text::from(format!("{} of {}", target, scene.name));
                (outermost_foreach, missing.iter().map(of).collect())
            }
        };
        let noted = self.nothing.entry(at).or_default();
        for target in missing {
            if !noted.contains(&target) {
                noted.push(target);
            }
        }
    }

    fn iteration(&mut self, scene: &EventView<'_>, exit: &ChildExit) {
        let EventView { event, name, .. } = scene;
        let items = event.path.items();
        let outer = items.get(..items.len().saturating_sub(1)).unwrap_or_default();
        let key = key(scene.execution, event.step, outer);
        let counts = self.iterations.entry(key.clone()).or_default();
        counts.done += 1;
        counts.failed += u64::from(matches!(exit, ChildExit::Failed(_)));
        let counts = *counts;
        let indent = "  ".repeat(outer.len() + usize::from(!scene.is_main));
        if self.screen.is_live() {
            let since = self.entered.get(&key).copied().unwrap_or(event.time);
            let left = counts.left(since, event.time);
            let message = format!("{indent}{name}: {}{left}", counts.words());
            self.screen.update(&key, message);
        } else if counts.done.is_multiple_of(ITERATIONS_PER_LINE) {
            self.line(&format!("{indent}{} {name}: {}", mark('⟳'), counts.words()));
        }
    }

    /// The input or output of a step.
    fn data(&self, scene: &EventView<'_>, what: &str, value: &Value) {
        let EventView { name, indent, .. } = scene;
        let (place, data) = (scene.place(), words::data(value));
        self.line(&format!("{indent}  \x1b[2m{name}{place} {what}: {data}\x1b[0m"));
    }
}
