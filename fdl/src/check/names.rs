//! Names: of steps, unique in the whole definition; of branches, queues and child flows.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::{Code, Diagnostic};
use crate::graph::StepId;
use crate::limits::{NAME_CHARS, is_name};

impl Checker<'_> {
    /// Numbers of steps and levels, and names of steps.
    pub(super) fn check_outline(&self) {
        self.check_size();
        for id in (0..self.outline.steps.len()).map(super::outline::number).map(StepId) {
            if self.is_hopeless() {
                return;
            }
            self.check_name(id);
        }
    }

    fn check_size(&self) {
        let outline = &self.outline;
        for &id in &outline.too_deep {
            let message = format!(
                "`{}` is nested too deep: the limit is {}",
                outline.name(id),
                self.limits.nesting
            );
            self.report(
                Diagnostic::new(Code::TooManyLevels, outline.name_span(id), outline.pointer(id), message)
                    .help("move inner steps into a child flow (`flow:NAME`)"),
            );
        }
        let id = StepId(super::outline::number(self.limits.steps));
        if outline.steps.len() > self.limits.steps {
            let message = format!(
                "the definition has {} steps, more than the {} allowed",
                outline.steps.len(),
                self.limits.steps
            );
            self.report(
                Diagnostic::new(Code::TooManySteps, outline.name_span(id), outline.pointer(id), message)
                    .help("move steps into child flows (`flow:NAME`)"),
            );
        }
    }

    fn check_name(&self, id: StepId) {
        let outline = &self.outline;
        let Some(entry) = outline.entry(id) else {
            return;
        };
        let step = Cursor::step(entry.node, outline, id);
        // A value that is not an object, and a missing name, are reported where the step is read.
        let Some(cursor) = step.member("name") else {
            return;
        };
        let Some(name) = self.filled(&cursor) else {
            return;
        };
        if name.chars().count() > NAME_CHARS {
            let message = format!(
                "the name has {} characters, at most {NAME_CHARS} are allowed",
                name.chars().count()
            );
            self.report(cursor.problem(Code::BadName, message));
        }
        if let Some(&first) = outline.names.get(name.as_str()).filter(|first| **first != id) {
            self.report(
                cursor
                    .problem(Code::DuplicateName, format!("there is another step named `{name}`"))
                    .label(outline.name_span(first), "the first one is here")
                    .help("names are unique in the whole definition, at any depth"),
            );
        }
    }

    /// A name of a branch.
    pub(super) fn check_identifier(&self, cursor: &Cursor<'_>, name: &str) {
        if !is_name(name) {
            self.report(
                cursor.problem(Code::BadName, format!("`{name}` is not a name"))
                    .help(format!(
                        "such a name is made of A-Z, a-z, 0-9, `_` and `-`, begins with a letter or `_`, and has {NAME_CHARS} of them at most"
                    )),
            );
        }
    }
}
