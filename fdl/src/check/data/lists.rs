//! The ways through a list: the local that each step finds, and the local that the list leaves.

use super::DataCheck;
use super::find::Data;
use super::shape::{Members, Room, Shape};
use crate::graph::{CatchTarget, ListId, Step, StepId, StepKind};
use crate::syntax::Node;
use crate::value::Text;
use std::rc::Rc;

/// The maximum number of ways into one step that are merged. With more, nothing is known there.
const MAX_WAYS: usize = 64;
/// The maximum number of names that a loop sets. A loop with more may set any name.
const MAX_SET: usize = 64;

/// The possible locals of a list at its steps and at its end.
struct Locals {
    /// By position; the last is the end of the list.
    at: Vec<(Option<Rc<Members>>, usize)>,
}

/// The target of a step, and what the step puts into the list's local on the way.
pub(super) struct Edge {
    /// The next step of the list, or its end.
    pub(super) target: Option<StepId>,
    pub(super) output: Rc<Members>,
}

/// The names that steps of a list with a backward `goto` may have set.
enum Set<'n> {
    Anything,
    Names(Vec<&'n Text>),
}

impl DataCheck<'_, '_> {
    /// Walks a list whose steps see `input`. Returns what the list leaves, if it can come to its
    /// end.
    // The recursion list → composite → list is bounded by how deep steps may be nested.
    pub(super) fn list(&self, list: ListId, input: &Data) -> Option<Rc<Members>> {
        let ids = self.checker.outline.listing(list).map_or(&[][..], |list| &list.steps);
        let mut locals = Locals::new(ids.len());
        let back = self.led_back_to(ids);
        let set = back.iter().any(|back| *back).then(|| self.set_in(ids));
        for (position, &id) in ids.iter().enumerate() {
            let mut local = locals.take(position);
            if back.get(position) == Some(&true) {
                // An edge back brings only what the steps of the list set.
                let mut looped = local.unwrap_or_else(|| Rc::new(Members::none()));
                set.iter()
                    .for_each(|set| self.loop_into(Rc::make_mut(&mut looped), set));
                local = Some(looped);
            }
            let (Some(mut local), Some(step)) = (local, self.steps.get(id.0 as usize)) else {
                continue;
            };
            if !self.works(0) {
                return Some(Rc::new(Members::open()));
            }
            let (caught, edges) = self.step(id, step, &local, input);
            if let Some(caught) = caught {
                for target in caught_at(step) {
                    let mut left = local.clone();
                    self.lay(&mut left, &caught);
                    self.lead(&mut locals, step, Some(target), left);
                }
            }
            let mut edges = edges.into_iter().peekable();
            while let Some(edge) = edges.next() {
                let mut left = match edges.peek() {
                    Some(_) => local.clone(),
                    None => std::mem::replace(&mut local, Rc::new(Members::none())),
                };
                self.lay(&mut left, &edge.output);
                self.lead(&mut locals, step, edge.target, left);
            }
        }
        locals.take(ids.len())
    }

    fn lay(&self, local: &mut Rc<Members>, output: &Members) {
        if output.is_nothing() {
            return;
        }
        let copied = if Rc::strong_count(local) > 1 { local.len() } else { 0 };
        self.works(copied + output.len());
        let mut room = Room::new();
        Rc::make_mut(local).lay(output, &mut room);
        self.works(room.taken());
    }

    /// Merges the data of one way with the data of other ways to the same place.
    fn lead(&self, locals: &mut Locals, from: &Step, target: Option<StepId>, local: Rc<Members>) {
        let end = locals.at.len() - 1;
        let place = match target.and_then(|id| self.steps.get(id.0 as usize)) {
            // A way back: see `set_in`.
            Some(target) if target.position <= from.position => return,
            Some(target) => target.position as usize,
            None => end,
        };
        let Some((there, ways)) = locals.at.get_mut(place) else {
            return;
        };
        *ways += 1;
        *there = Some(match there.take() {
            None => local,
            Some(_) if *ways > MAX_WAYS => {
                let mut any = Members::open();
                any.quiet = true;
                Rc::new(any)
            }
            Some(other) => {
                let mut room = Room::new();
                let both = other.or(&local, &mut room);
                self.works(local.len() + other.len() + room.taken());
                both
            }
        });
    }

    /// For each step of a list, whether a later step or the step itself leads to it.
    fn led_back_to(&self, ids: &[StepId]) -> Vec<bool> {
        let mut back = vec![false; ids.len()];
        for step in ids.iter().filter_map(|id| self.steps.get(id.0 as usize)) {
            let gotos = match &step.kind {
                StepKind::Choice(choice) => choice
                    .arms
                    .iter()
                    .chain(&choice.default)
                    .filter_map(|arm| arm.goto)
                    .collect(),
                _ => Vec::new(),
            };
            for target in gotos.into_iter().chain(caught_at(step)) {
                let position = self.steps.get(target.0 as usize).map(|target| target.position);
                if let Some(position) = position.filter(|position| *position <= step.position)
                    && let Some(flag) = back.get_mut(position as usize)
                {
                    *flag = true;
                }
            }
        }
        back
    }

    /// The names that the steps of a list put into its local, by their mappings.
    fn set_in(&self, ids: &[StepId]) -> Set<'_> {
        let mut names: Vec<&Text> = Vec::new();
        for &id in ids {
            let (Some(step), Some(entry)) = (self.steps.get(id.0 as usize), self.checker.outline.entry(id)) else {
                continue;
            };
            for field in ["outputMappings", "errorMappings"] {
                if let Some(mappings) = entry.node.get(field).and_then(|node| self.mappings_at(node)) {
                    names.extend(mappings.list.iter().map(|mapping| &mapping.target));
                }
            }
            let inside =
                |choice: &crate::graph::Choice| choice.arms.iter().chain(&choice.default).any(|arm| arm.list.is_some());
            let unmapped = entry.node.get("outputMappings").is_none();
            let unknown = match &step.kind {
                StepKind::Task(_) => unmapped,
                StepKind::Choice(choice) => unmapped && inside(choice),
                _ => false,
            };
            if unknown || names.len() > MAX_SET {
                return Set::Anything;
            }
        }
        Set::Names(names)
    }

    fn loop_into(&self, local: &mut Members, set: &Set<'_>) {
        let Set::Names(names) = set else {
            local.lay_unknown();
            return;
        };
        self.works(names.len());
        for &name in names {
            match local.get(name) {
                Some(member) => local.set(name.clone(), member.shape.doubted(), member.sure, member.said),
                None => local.set(name.clone(), Shape::default(), false, None),
            }
        }
    }

    /// The mappings that were read at this node.
    pub(super) fn mappings_at(&self, node: &Node) -> Option<&crate::expression::Mappings> {
        self.noted.mappings.get(&node.span.start).map(|mappings| &**mappings)
    }
}

impl Locals {
    /// Before the first step there is nothing yet.
    fn new(steps: usize) -> Self {
        let mut at = vec![(None, 0); steps + 1];
        if let Some((first, _)) = at.first_mut() {
            *first = Some(Rc::new(Members::none()));
        }
        Self { at }
    }

    fn take(&mut self, position: usize) -> Option<Rc<Members>> {
        self.at.get_mut(position).and_then(|(local, _)| local.take())
    }
}

/// Where a step's catches go on.
fn caught_at(step: &Step) -> impl Iterator<Item = StepId> {
    step.catch.iter().filter_map(|catch| match catch.target {
        CatchTarget::Goto(id) => Some(id),
        CatchTarget::Manual => None,
    })
}
