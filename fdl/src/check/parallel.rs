//! `parallel` steps.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::named_entries::BRANCHES;
use super::outline::{Slot, entries, number};
use crate::diagnostics::Code;
use crate::graph::{Branch, DEFAULT_PRIORITY, ListId, NumberSource, Parallel, StepId, StepKind, WaitFor};
use crate::syntax::NodeKind;

impl Checker<'_> {
    /// A parallel's own fields.
    pub(super) fn parallel(&self, cursor: &Cursor<'_>, id: StepId) -> Option<StepKind> {
        let concurrency = cursor.member("concurrency").and_then(|field| self.concurrency(&field));
        let branches = cursor.member("branches")?;
        if self.is_by_name(&branches, &BRANCHES) || !self.is_listed(&branches, "branches") {
            return None;
        }
        let count = entries(branches.node).len();
        self.check_branch_count(&branches, count);
        let depends = self.depends(&branches);
        let mut list = Vec::with_capacity(count);
        for (index, (item, (name, depends_on))) in branches.entries().zip(depends).enumerate() {
            if let NodeKind::Array(_) = item.node.kind {
                self.in_short(&item, "steps", true);
                continue;
            }
            if !self.check_fields(&item, &fields::BRANCH, &[]) {
                continue;
            }
            if let Some(steps) = self.steps(&item, id, Slot::Branch(index)) {
                list.push(Branch {
                    name,
                    depends_on,
                    list: steps,
                    priority: self.first_priority(steps),
                });
            }
        }
        let wait_for = cursor.member("waitFor").and_then(|field| self.wait_for(&field, count));
        Some(StepKind::Parallel(Parallel {
            branches: list,
            wait_for: wait_for.unwrap_or(WaitFor::All),
            concurrency: concurrency.map(NumberSource::Fixed),
        }))
    }

    /// How many may run at once.
    pub(super) fn concurrency(&self, cursor: &Cursor<'_>) -> Option<u64> {
        self.whole(cursor, 1..=u32::MAX.into())
    }

    fn check_branch_count(&self, branches: &Cursor<'_>, count: usize) {
        if count == 0 {
            let found = branches.problem(Code::NoBranches, "`branches` is empty");
            self.report(found.help("a parallel needs at least one `{steps}`"));
        }
        if count > self.limits.branches {
            let message = format!(
                "the parallel has {count} branches, more than the {} allowed",
                self.limits.branches
            );
            let found = branches.problem_of_key(Code::TooManyBranches, message);
            self.report(found.help("use a `foreach` over a list of items"));
        }
    }

    fn wait_for(&self, cursor: &Cursor<'_>, branches: usize) -> Option<WaitFor> {
        match &cursor.node.kind {
            NodeKind::String(_) => match &*self.word(cursor, &["all", "any"])? {
                "any" => Some(WaitFor::Count(1)),
                _ => Some(WaitFor::All),
            },
            NodeKind::Number(_) => {
                let count = self.whole(cursor, 1..=u64::MAX)?;
                if count > branches as u64 {
                    let message = format!("{count} branches can't succeed: the parallel has only {branches}");
                    self.report(cursor.problem(Code::WaitForTooMany, message));
                    return None;
                }
                u32::try_from(count).ok().map(WaitFor::Count)
            }
            _ => {
                self.wrong_type(cursor, "`all`, `any` or a whole number");
                None
            }
        }
    }

    fn first_priority(&self, list: ListId) -> u8 {
        let outline = &self.outline;
        let first = outline.listing(list).and_then(|list| list.steps.first());
        let given = first
            .and_then(|&step| outline.entry(step))
            .and_then(|entry| entry.node.get("priority"));
        match given.map(|given| &given.kind) {
            Some(NodeKind::Number(value)) => {
                let priority = value.as_f64().filter(|priority| (0.0..=9.0).contains(priority));
                priority.map_or(DEFAULT_PRIORITY, |priority| priority as u8)
            }
            _ => DEFAULT_PRIORITY,
        }
    }
}

/// The index of a branch, as other branches refer to it.
pub(super) fn branch_number(index: usize) -> u32 {
    number(index)
}
