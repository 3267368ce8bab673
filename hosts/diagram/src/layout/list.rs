//! A list of steps, one below the other, each with its rows and exits.

use super::arrange::arrange;
use super::card::{ARRIVAL, Exit, NARROW, Row, Rows, Side, natural, set};
use super::grid::{Item, Port};
use super::{Block, DEPTH, Drawing, Face, Line, LineKind, Shape, What};
use crate::icon::Icon;
use crate::labels;
use crate::status::Way;
use crate::text::{Font, clean};
use starbridge_flow::graph::{Catch, CatchTarget, ListId, Step, StepId, StepKind};

/// The diameter of the flow's beginning and end, and of a list's.
const NODE: i32 = 18;
const STOP: i32 = 12;
/// The length of the line to a list's end.
const TAIL: i32 = 12;

/// A step in its list.
pub(super) struct Entry {
    pub(super) block: Block,
    /// The exits and their heights.
    pub(super) exits: Vec<(i32, Exit)>,
}

impl Drawing<'_> {
    /// The flow's own list with its beginning and end.
    pub(super) fn whole(&mut self, id: ListId) -> Block {
        let mut items = vec![node(NODE, Some(self.taken(Way::Begin)))];
        let mut blocks = vec![node_block(What::Begin, Shape::Dot, NODE)];
        let (steps, inside, reaches_end) = self.items(id, 0, 1, true);
        items.extend(steps);
        blocks.extend(inside);
        if reaches_end {
            items.push(node(NODE, None));
            blocks.push(node_block(What::End, Shape::Ring, NODE));
        }
        together(&items, blocks)
    }

    /// A list inside a composite, `depth` composites deep.
    pub(super) fn list(&mut self, id: ListId, depth: usize) -> Block {
        let seen = self
            .drawn
            .get_mut(id.0 as usize)
            .is_none_or(|drawn| std::mem::replace(drawn, true));
        if seen || depth > DEPTH {
            return note("… more steps".to_owned());
        }
        let (items, blocks, _) = self.items(id, depth, 0, false);
        together(&items, blocks)
    }

    /// The steps of a list, of which the first is item `first`. The last value says whether the list leads to the
    /// flow's end.
    fn items(&mut self, id: ListId, depth: usize, first: usize, whole: bool) -> (Vec<Item>, Vec<Block>, bool) {
        let flow = self.flow;
        let ids: &[StepId] = flow.list(id).map_or(&[], |list| &list.steps);
        let steps: Vec<(StepId, &Step)> = ids
            .iter()
            .filter_map(|&id| flow.step(id).map(|step| (id, step)))
            .collect();
        let card = steps
            .iter()
            .filter(|(_, step)| is_simple(step))
            .map(|(id, step)| natural(&self.rows(*id, step)))
            .max()
            .unwrap_or(NARROW);
        let (mut items, mut blocks, mut reaches_end) = (Vec::new(), Vec::new(), false);
        for (position, &(id, step)) in steps.iter().enumerate() {
            let last = position + 1 == steps.len();
            let entry = self.entry(id, step, card, depth);
            let on = goes_on(step);
            let falls = on
                && if last {
                    whole && step.next.is_none()
                } else {
                    step.next == steps.get(position + 1).map(|(id, _)| *id)
                };
            reaches_end |= last && falls;
            let stops = on && step.next.is_none() && !last;
            let taken = self.taken(Way::Next(id));
            let ports = entry.exits.iter().filter_map(|&(y, exit)| {
                let target = flow.step(exit.target).filter(|target| target.list == step.list)?;
                let to = target.position as usize;
                (to < steps.len()).then_some(Port {
                    y,
                    to: first + to,
                    side: exit.side,
                    kind: if exit.catch { LineKind::Catch } else { LineKind::Goto },
                    taken: exit.taken,
                })
            });
            let ports = ports.collect();
            let block = if stops {
                stopped(entry.block, taken)
            } else {
                entry.block
            };
            items.push(Item {
                w: block.w,
                h: block.h,
                arrival: ARRIVAL,
                falls: falls.then_some(taken),
                ports,
            });
            blocks.push(block);
        }
        (items, blocks, reaches_end)
    }

    fn entry(&mut self, id: StepId, step: &Step, card: i32, depth: usize) -> Entry {
        match &step.kind {
            StepKind::Choice(choice) => self.choice(id, step, choice, depth),
            StepKind::Parallel(parallel) => self.parallel(id, step, parallel, depth),
            StepKind::Foreach(foreach) => self.foreach(id, step, foreach, depth),
            _ => {
                let rows = set(&self.rows(id, step), card);
                let shape = match step.kind {
                    StepKind::Succeed => Shape::Pill,
                    StepKind::Fail(_) => Shape::Octagon,
                    _ => Shape::Card,
                };
                let h = rows.h;
                let (face, exits) = self.face(id, step, shape, rows);
                Entry {
                    block: Block {
                        w: card,
                        h,
                        outline: Some((What::Step(id), face)),
                        ..Block::default()
                    },
                    exits,
                }
            }
        }
    }

    /// A step's face and its exits.
    pub(super) fn face(&self, id: StepId, step: &Step, shape: Shape, rows: Rows) -> (Face, Vec<(i32, Exit)>) {
        let marks = self.status.map(|status| status.marks(id));
        let icon = Icon::of(&step.kind);
        let face = Face {
            icon: Some(icon),
            status: marks.as_ref().map(|marks| marks.status),
            taken: marks.as_ref().is_some_and(|marks| marks.visits > 0),
            marks: rows.marks,
            ..Face::plain(shape)
        };
        if self.compact {
            return (face, rows.exits);
        }
        let mut tip = vec![format!("{} {}", icon.word(), clean(&step.name))];
        if let StepKind::Task(task) = &step.kind {
            tip.push(labels::whole_resource(&task.call.resource));
        } else {
            tip.extend(labels::details(step, self.words).into_iter().map(|detail| detail.text));
        }
        tip.extend(labels::badges(step, self.words));
        for catch in &step.catch {
            let (errors, target) = self.caught(catch);
            tip.push(errors + &target);
        }
        tip.extend(marks.as_ref().map(|marks| marks.words_in(self.words)));
        (Face { tip, ..face }, rows.exits)
    }

    /// The rows of a step's card, or of the head of its composite.
    pub(super) fn rows(&self, id: StepId, step: &Step) -> Vec<Row> {
        let mut rows = vec![Row::Name(Some(Icon::of(&step.kind)), clean(&step.name))];
        if !self.compact {
            rows.extend(labels::details(step, self.words).into_iter().map(|detail| {
                let font = if detail.code { Font::Mono } else { Font::Small };
                Row::Line(font, detail.text, 1)
            }));
            let badges = labels::badges(step, self.words);
            if !badges.is_empty() {
                rows.push(Row::Badges(badges));
            }
        }
        if let Some(status) = self.status {
            let marks = status.marks(id);
            rows.push(Row::State(marks.status, marks.words_in(self.words)));
        }
        rows.extend(self.next_exit(step).map(|target| {
            let exit = self.exit(step, target, false, Way::Next(id));
            Row::Exit(String::new(), format!("→ {}", self.name(target)), Some(exit))
        }));
        rows.extend(step.catch.iter().map(|catch| {
            let exit = match catch.target {
                CatchTarget::Goto(target) => Some(self.exit(step, target, true, Way::Catch(id, target))),
                CatchTarget::Manual => None,
            };
            let (errors, target) = self.caught(catch);
            Row::Exit(errors, target, exit)
        }));
        rows
    }

    /// The errors of a catch clause, and where it leads.
    fn caught(&self, catch: &Catch) -> (String, String) {
        let target = match catch.target {
            CatchTarget::Goto(target) => self.name(target),
            CatchTarget::Manual => self.words.say("operator").to_owned(),
        };
        (
            self.words
                .fill("on {}", &[&labels::errors(catch, &self.flow.fault_names, self.words)]),
            format!(" → {target}"),
        )
    }

    /// The next step, if it is not the one after this step.
    fn next_exit(&self, step: &Step) -> Option<StepId> {
        let after = self
            .flow
            .list(step.list)?
            .steps
            .get(step.position as usize + 1)
            .copied();
        step.next.filter(|next| goes_on(step) && Some(*next) != after)
    }

    /// The exit to a step of the same list.
    pub(super) fn exit(&self, step: &Step, target: StepId, catch: bool, way: Way) -> Exit {
        let ahead = self
            .flow
            .step(target)
            .is_some_and(|target| target.position > step.position);
        Exit {
            target,
            side: if ahead { Side::Right } else { Side::Left },
            catch,
            taken: self.taken(way),
        }
    }

    /// A step's name as it is shown.
    pub(super) fn name(&self, id: StepId) -> String {
        self.flow.step(id).map_or_else(String::new, |step| clean(&step.name))
    }
}

fn is_simple(step: &Step) -> bool {
    !matches!(
        step.kind,
        StepKind::Choice(_) | StepKind::Parallel(_) | StepKind::Foreach(_)
    )
}

/// Whether something comes after a step in its list, other than by `goto` and `catch`.
fn goes_on(step: &Step) -> bool {
    match &step.kind {
        StepKind::Succeed | StepKind::Fail(_) => false,
        StepKind::Choice(choice) => {
            choice.default.is_none() || choice.arms.iter().chain(&choice.default).any(|arm| arm.goto.is_none())
        }
        _ => true,
    }
}

/// The flow's beginning or end.
fn node(size: i32, falls: Option<bool>) -> Item {
    Item {
        w: size,
        h: size,
        arrival: size / 2,
        falls,
        ports: Vec::new(),
    }
}

fn node_block(what: What, shape: Shape, size: i32) -> Block {
    Block {
        w: size,
        h: size,
        outline: Some((what, Face::plain(shape))),
        ..Block::default()
    }
}

/// A step after which its list ends, although others are below it.
fn stopped(block: Block, taken: bool) -> Block {
    let middle = block.w / 2;
    let line = Line {
        points: vec![(middle, block.h), (middle, block.h + TAIL)],
        kind: LineKind::Next,
        taken,
        arrow: false,
    };
    let stop = node_block(What::Stop, Shape::Ring, STOP);
    Block {
        w: block.w,
        h: block.h + TAIL + STOP,
        lines: vec![line],
        inside: vec![(middle - STOP / 2, block.h + TAIL, stop), (0, 0, block)],
        ..Block::default()
    }
}

/// Items in their places.
fn together(items: &[Item], blocks: Vec<Block>) -> Block {
    let arranged = arrange(items);
    let inside = arranged
        .places
        .into_iter()
        .zip(blocks)
        .map(|((x, y), block)| (x, y, block));
    Block {
        w: arranged.w,
        h: arranged.h,
        inside: inside.collect(),
        lines: arranged.lines,
        joints: arranged.joints,
        outline: None,
    }
}

/// A text in place of a list.
pub(super) fn note(text: String) -> Block {
    let rows = [Row::Note(text)];
    let w = natural(&rows);
    let set = set(&rows, w);
    let face = Face {
        marks: set.marks,
        ..Face::plain(Shape::Bare)
    };
    Block {
        w,
        h: set.h,
        outline: Some((What::Note, face)),
        ..Block::default()
    }
}
