//! The ways through each list: unreachable steps, and error handlers that the normal course runs
//! into.

use super::Checker;
use super::kind::Kind;
use super::outline::{Entry, Listing, Slot, entries};
use super::step::{arms, is_end, named};
use crate::diagnostics::{Code, Diagnostic};
use crate::graph::{ListId, StepId};
use crate::syntax::Node;
use rustc_hash::FxHashSet;

/// Where a step leads, as positions in its list.
#[derive(Default)]
struct Successors {
    /// The next step in the list, or the end of the list after the last one.
    falls: bool,
    /// Whether it leads to the end of the list.
    ends: bool,
    gotos: Vec<u32>,
    catches: Vec<u32>,
    /// Whether it leads somewhere unknown, so that nothing can be said about the list.
    broken: bool,
}

impl Checker<'_> {
    /// Walks all lists, inner ones first, because a composite's successors depend on whether its
    /// lists can come to their end.
    pub(super) fn check_edges(&self) {
        let mut completes = vec![true; self.outline.lists.len()];
        for index in (0..self.outline.lists.len()).rev() {
            let Some(list) = self.outline.lists.get(index) else {
                continue;
            };
            let ways: Vec<Successors> = list
                .steps
                .iter()
                .filter_map(|&id| self.outline.entry(id))
                .map(|entry| self.successors(entry, &completes))
                .collect();
            let reached = reached(&ways);
            let last = ways.len().saturating_sub(1);
            let ends = ways
                .iter()
                .zip(&reached)
                .enumerate()
                .any(|(position, (way, &there))| there && (way.ends || (way.falls && position == last)));
            let broken = ways.iter().any(|way| way.broken);
            if let Some(flag) = completes.get_mut(index) {
                *flag = ends || broken || ways.is_empty();
            }
            if !broken {
                self.check_reached(list, &reached);
                self.check_handlers(list, &ways, &reached);
            }
        }
    }

    fn successors(&self, entry: &Entry<'_>, completes: &[bool]) -> Successors {
        let mut ways = Successors::default();
        let completes = |list: Option<ListId>| {
            list.and_then(|list| completes.get(list.0 as usize))
                .is_none_or(|completes| *completes)
        };
        let goes_on = match entry.kind {
            None => {
                ways.broken = true;
                true
            }
            Some(Kind::Fail) => false,
            Some(Kind::Succeed) => {
                ways.ends = true;
                false
            }
            Some(Kind::Choice) => self.choice_successors(entry, &completes, &mut ways),
            Some(Kind::Parallel) => {
                let branches = entry.node.get("branches").map_or(0, |branches| entries(branches).len());
                entry.node.get("waitFor").is_some()
                    || (0..branches).all(|index| completes(entry.list_in(Slot::Branch(index))))
            }
            Some(_) => true,
        };
        if goes_on && is_end(entry) {
            ways.ends = true;
        } else {
            ways.falls = goes_on;
        }
        for catch in entry.node.get("catch").map_or(&[][..], entries) {
            if let Some(goto) = catch.get("goto") {
                self.lead(entry, goto, &mut ways.catches, &mut ways.broken);
            }
        }
        ways
    }

    /// The gotos of a choice, and whether the step after the choice can be next.
    fn choice_successors(
        &self,
        entry: &Entry<'_>,
        completes: &impl Fn(Option<ListId>) -> bool,
        ways: &mut Successors,
    ) -> bool {
        let mut goes_on = false;
        let mut sure = false;
        for (slot, arm) in arms(entry) {
            sure |= slot == Slot::Default || named(arm, "condition").is_some_and(|text| text.trim() == "true");
            let through = completes(entry.list_in(slot));
            // A default may be just the name, by mistake.
            match arm.get("goto").or_else(|| arm.as_str().map(|_| arm)) {
                Some(goto) if through => self.lead(entry, goto, &mut ways.gotos, &mut ways.broken),
                Some(_) => {}
                None => goes_on |= through,
            }
        }
        goes_on || !sure
    }

    fn lead(&self, entry: &Entry<'_>, goto: &Node, into: &mut Vec<u32>, broken: &mut bool) {
        let target = goto
            .as_str()
            .and_then(|name| self.outline.sibling(entry.list, name))
            .and_then(|id| self.outline.entry(id));
        match target {
            Some(target) => into.push(target.position),
            None => *broken = true,
        }
    }

    /// Warns of unreachable steps, once for each run of consecutive ones.
    fn check_reached(&self, list: &Listing, reached: &[bool]) {
        let outline = &self.outline;
        let named = |position: usize| list.steps.get(position).map_or("", |&id| outline.name(id));
        let mut position = 0;
        while let Some(&id) = list.steps.get(position) {
            let run = reached.iter().skip(position).take_while(|reached| !**reached).count();
            let message = match run {
                0 => {
                    position += 1;
                    continue;
                }
                1 => format!("`{}` can never run: nothing leads to it", named(position)),
                _ => format!(
                    "`{}` and what follows up to `{}` can never run: nothing leads there",
                    named(position),
                    named(position + run - 1)
                ),
            };
            let found = Diagnostic::new(Code::Unreachable, outline.name_span(id), outline.pointer(id), message);
            let before = position.checked_sub(1).and_then(|before| list.steps.get(before));
            self.report(match before {
                Some(&before) => found.label(outline.name_span(before), "this step does not go on to it"),
                None => found,
            });
            position += run;
        }
    }

    /// A handler is a step to which a catch leads forward, past other steps, and no choice leads.
    fn check_handlers(&self, list: &Listing, ways: &[Successors], reached: &[bool]) {
        // Steps to which a choice leads too, and later those already reported.
        let mut meant: FxHashSet<u32> = ways.iter().flat_map(|way| way.gotos.iter().copied()).collect();
        for (position, way) in ways.iter().enumerate() {
            for &target in &way.catches {
                let Some(before) = (target as usize).checked_sub(1) else {
                    continue;
                };
                let falls = ways.get(before).is_some_and(|before| before.falls) && reached.get(before) == Some(&true);
                if before > position && falls && meant.insert(target) {
                    self.falls_into(list, position, before, target as usize);
                }
            }
        }
    }

    fn falls_into(&self, list: &Listing, catcher: usize, before: usize, handler: usize) {
        let outline = &self.outline;
        let step = |position: usize| list.steps.get(position).copied().unwrap_or(StepId(0));
        let (handler, before, catcher) = (step(handler), step(before), step(catcher));
        let message = format!(
            "`{}` handles errors of `{}`, but also runs after `{}` has succeeded",
            outline.name(handler),
            outline.name(catcher),
            outline.name(before)
        );
        self.report(
            Diagnostic::new(
                Code::FallsIntoHandler,
                outline.name_span(handler),
                outline.pointer(handler),
                message,
            )
            .label(outline.name_span(before), "this step goes on to it")
            .help(format!(
                "give `{}` an `end: true` if that is not meant",
                outline.name(before)
            )),
        );
    }
}

/// The positions of a list that are reachable from the first.
fn reached(ways: &[Successors]) -> Vec<bool> {
    let mut reached = vec![false; ways.len()];
    let mut open: Vec<usize> = vec![0];
    while let Some(position) = open.pop() {
        let (Some(flag), Some(way)) = (reached.get_mut(position), ways.get(position)) else {
            continue;
        };
        if std::mem::replace(flag, true) {
            continue;
        }
        open.extend(way.falls.then_some(position + 1));
        open.extend(way.gotos.iter().chain(&way.catches).map(|&target| target as usize));
    }
    reached
}
