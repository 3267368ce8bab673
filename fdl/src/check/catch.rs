//! `catch` and `goto`.

use super::Checker;
use super::cursor::Cursor;
use super::errors::Taken;
use super::fields;
use crate::diagnostics::Code;
use crate::graph::{Catch, CatchTarget, ListId, StepId};

impl Checker<'_> {
    /// The catch clauses of a step in `list`. `fixed`: no step has the execution's own errors here.
    pub(super) fn catches(&self, owner: &Cursor<'_>, list: ListId, fixed: bool) -> Vec<Catch> {
        let Some(cursor) = owner.member("catch") else {
            return Vec::new();
        };
        if !self.is_listed(&cursor, "catches") {
            return Vec::new();
        }
        let mut taken = Taken::default();
        cursor
            .entries()
            .take_while(|_| !self.is_hopeless())
            .filter_map(|item| self.catch(&item, list, &mut taken, fixed))
            .collect()
    }

    fn catch(&self, cursor: &Cursor<'_>, list: ListId, taken: &mut Taken, fixed: bool) -> Option<Catch> {
        if !self.check_fields(cursor, &fields::CATCH, &["steps"]) {
            return None;
        }
        let steps = cursor.member("steps");
        if let Some(steps) = &steps {
            let found = steps.problem_of_key(Code::CatchSteps, "a catch has no steps of its own");
            self.report(found.help("put them behind this step and go there with `goto`"));
        }
        let errors = self.errors(cursor, taken, Code::UnreachableCatch, fixed);
        let target = match self.one_of(cursor, &["goto", "manual"], steps.is_none())? {
            ("goto", target) => CatchTarget::Goto(self.goto(&target, list)?),
            (_, manual) => {
                if self.flag(&manual) == Some(false) {
                    let found = manual.problem(Code::OutOfRange, "`manual` can only be true");
                    self.report(found.help("leave it out and say where to go with `goto`"));
                }
                CatchTarget::Manual
            }
        };
        Some(Catch { errors, target })
    }

    /// The step a `goto` leads to from `list`.
    pub(super) fn goto(&self, cursor: &Cursor<'_>, list: ListId) -> Option<StepId> {
        let name = self.filled(cursor)?;
        let outline = &self.outline;
        if let Some(id) = outline.sibling(list, &name) {
            return Some(id);
        }
        if let Some(&id) = outline.names.get(name.as_str()) {
            let there = outline.entry(id).map_or(list, |entry| entry.list);
            let message = format!(
                "`{name}` stands {}, this `goto` {}",
                outline.whereabouts(there),
                outline.whereabouts(list)
            );
            self.report(
                cursor
                    .problem(Code::TargetElsewhere, message)
                    .label(outline.name_span(id), format!("`{name}` is here"))
                    .help("a `goto` leads to a step of the same list only"),
            );
            return None;
        }
        let siblings = outline.listing(list).map_or(&[][..], |list| &list.steps);
        let found = cursor.problem(Code::UnknownTarget, format!("there is no step named `{name}`"));
        let near = self.near(&name, siblings.len(), || siblings.iter().map(|&id| outline.name(id)));
        self.report(match near {
            Some(near) => self.did_you_mean(found, cursor, Self::perhaps(near)),
            None => found,
        });
        None
    }
}
