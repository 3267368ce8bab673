//! The common fields of every step, and the reader for each type.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::kind::Kind;
use super::local::MappingContext;
use super::named_entries::STEPS;
use super::outline::{Entry, Slot, entries};
use super::resource::Reach;
use super::retry::Policies;
use crate::diagnostics::{Code, Nearest};
use crate::graph::{InputMode, NumberSource, OutputMode, Step, StepId, StepKind};

/// Types of steps of other languages that wait for somebody.
const WAITING: [&str; 10] = [
    "signal",
    "event",
    "human",
    "human_task",
    "user_task",
    "usertask",
    "approval",
    "callback",
    "wait_for_event",
    "wait_for_signal",
];

impl Checker<'_> {
    /// Reads one step; `None` if too much of it is missing. That is then reported.
    pub(super) fn step(&self, id: StepId) -> Option<Step> {
        let entry = self.outline.entry(id)?;
        let cursor = Cursor::step(entry.node, &self.outline, id);
        if !self.is_object(&cursor) {
            return None;
        }
        let Some(kind) = entry.kind else {
            self.unknown_kind(&cursor);
            return None;
        };
        self.check_kind(&cursor, kind);
        let ends = matches!(kind, Kind::Succeed | Kind::Fail);
        let told: &[&str] = if ends { &["end"] } else { &[] };
        self.check_fields(&cursor, fields::of_step(kind), told);
        self.check_end(&cursor, kind, ends);
        if let Some(description) = cursor.member("description") {
            self.text(&description);
        }
        let enter = self.mappings(&cursor, "inputMappings", MappingContext::StepInput);
        let leave = self.mappings(&cursor, "outputMappings", MappingContext::StepOutput(kind));
        let own = self.own_fields(&cursor, id, kind, entry);
        if let Some(StepKind::Task(task)) = &own {
            self.check_token(&cursor, &task.call, enter.as_deref());
        }
        let mut step = Step {
            name: entry.name.cloned().unwrap_or_default(),
            list: entry.list,
            position: entry.position,
            kind: StepKind::Pass,
            enter: enter.map_or(InputMode::Merged, InputMode::Program),
            leave: leave.map_or_else(|| default_leave(kind), OutputMode::Program),
            failed: None,
            next: if ends || is_end(entry) { None } else { self.after(entry) },
            retry: Vec::new(),
            catch: Vec::new(),
            timeout: None,
            settings: None,
        };
        if matches!(kind, Kind::Task | Kind::Parallel | Kind::Foreach | Kind::Choice) {
            self.failures(&cursor, &mut step, kind, own.as_ref());
        }
        step.kind = own?;
        Some(step)
    }

    fn own_fields(&self, cursor: &Cursor<'_>, id: StepId, kind: Kind, entry: &Entry<'_>) -> Option<StepKind> {
        match kind {
            Kind::Task => self.task(cursor),
            Kind::Pass => Some(StepKind::Pass),
            Kind::Wait => self.wait(cursor),
            Kind::Choice => self.choice(cursor, id, entry.list),
            Kind::Parallel => self.parallel(cursor, id),
            Kind::Foreach => self.foreach(cursor, id),
            Kind::Succeed => Some(StepKind::Succeed),
            Kind::Fail => self.fail(cursor),
        }
    }

    /// `retry`, `catch`, `errorMappings` and `timeoutSeconds`.
    fn failures(&self, cursor: &Cursor<'_>, step: &mut Step, kind: Kind, own: Option<&StepKind>) {
        // A composite, or a step that can't be read, may contain calls of child flows.
        let child = match own {
            Some(StepKind::Task(task)) => Reach::of(&task.call.resource).may_be(Reach::Child),
            _ => true,
        };
        let whose = if child { Policies::ChildTask } else { Policies::Step };
        step.retry = self.retry(cursor, whose);
        step.catch = self.catches(cursor, step.list, !child);
        step.failed = self.mappings(cursor, "errorMappings", MappingContext::Errors);
        step.settings = self.settings(cursor);
        step.timeout = self
            .fixed(cursor, "timeoutSeconds")
            .and_then(|field| self.timeout(&field))
            .map(NumberSource::Fixed);
        if let Some(mappings) = cursor
            .member("errorMappings")
            .filter(|_| cursor.node.get("catch").is_none())
        {
            let message = format!("`errorMappings` has no effect: this {} catches nothing", kind.as_str());
            let found = mappings.problem_of_key(Code::ErrorMappingsUnused, message);
            self.report(found.help("they make the step's output after an error that its `catch` matched"));
        }
    }

    fn check_end(&self, cursor: &Cursor<'_>, kind: Kind, ends: bool) {
        let Some(end) = cursor.member("end") else {
            return;
        };
        self.flag(&end);
        if ends {
            let message = format!("`end` is not allowed on a `{}` step", kind.as_str());
            let found = end.problem_of_key(Code::EndNotAllowed, message);
            self.report(found.help("nothing goes on after it anyway: leave `end` out"));
        }
    }

    fn unknown_kind(&self, cursor: &Cursor<'_>) {
        for field in ["type", "name"] {
            if cursor.node.get(field).is_none() {
                let message = format!("a step needs `{field}`");
                self.report(cursor.problem_of_whole(Code::MissingField, message));
            }
        }
        let Some(field) = cursor.member("type") else {
            return;
        };
        let Some(word) = self.text(&field) else {
            return;
        };
        if word == "loop" {
            let found = field.problem(Code::LoopStep, "there is no `loop` step");
            self.report(found.help("use `foreach` for a list of items, or a `choice` whose `goto` leads back"));
            return;
        }
        let found = field.problem(Code::UnknownStepType, format!("there is no step of type `{word}`"));
        if WAITING.contains(&word.to_lowercase().as_str()) {
            let help = "a `task` with `pattern: waitForCallback` waits for a report; with `resourceArn: \"queue:NAME\"` for a worker";
            self.report(found.help(help));
            return;
        }
        let words = Kind::ALL.map(Kind::as_str);
        self.report(found.help(format!("the types are {}", super::read::in_words(&words))));
    }

    /// Whether the type is written exactly.
    fn check_kind(&self, cursor: &Cursor<'_>, kind: Kind) {
        let Some(field) = cursor.member("type") else {
            return;
        };
        let Some(word) = field.str().filter(|word| *word != kind.as_str()) else {
            return;
        };
        let alone = Kind::meant(word).is_some_and(|(_, alone)| alone);
        let found = field.problem(Code::UnknownStepType, format!("there is no step of type `{word}`"));
        let near = Nearest {
            word: kind.as_str(),
            alone,
        };
        self.report(self.did_you_mean(found, &field, near));
    }

    /// The step after this one in its list.
    pub(super) fn after(&self, entry: &Entry<'_>) -> Option<StepId> {
        let list = self.outline.listing(entry.list)?;
        list.steps.get(entry.position as usize + 1).copied()
    }

    /// The steps of the flow itself; otherwise a diagnostic.
    pub(super) fn check_top_list(&self, root: &Cursor<'_>) {
        let Some(steps) = root.member("steps") else {
            return;
        };
        if !self.is_by_name(&steps, &STEPS) && self.is_list(&steps, "steps") && entries(steps.node).is_empty() {
            let found = steps.problem(Code::NoSteps, "`steps` is empty");
            self.report(found.help("put at least one step in; a `pass` step does nothing"));
        }
    }
}

/// Whether the list ends after it.
pub(super) fn is_end(entry: &Entry<'_>) -> bool {
    matches!(
        entry.node.get("end").map(|end| &end.kind),
        Some(crate::syntax::NodeKind::Bool(true))
    )
}

fn default_leave(kind: Kind) -> OutputMode {
    match kind {
        Kind::Parallel | Kind::Foreach => OutputMode::Nothing,
        _ => OutputMode::Local,
    }
}

/// The slots of a choice's arms with their nodes, the default last.
pub(super) fn arms<'t>(entry: &Entry<'t>) -> impl Iterator<Item = (Slot, &'t crate::syntax::Node)> {
    let choices = entry.node.get("choices").map_or(&[][..], entries);
    choices
        .iter()
        .enumerate()
        .map(|(index, arm)| (Slot::Arm(index), arm))
        .chain(entry.node.get("default").map(|arm| (Slot::Default, arm)))
}

/// The name in a member of a node, if it is a text.
pub(super) fn named<'t>(node: &'t crate::syntax::Node, field: &str) -> Option<&'t str> {
    node.get(field).and_then(crate::syntax::Node::as_str)
}
