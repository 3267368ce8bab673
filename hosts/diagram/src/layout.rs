//! Where everything stands in a picture, as data: boxes with their text, and lines between them. Pixels throughout.
//!
//! Lists run from top to bottom ([`arrange`]), composites are boxes around what is inside ([`composite`]). Sizes are found
//! from the inside out as a tree of [`Block`]s with places relative to their parents, then put down in one walk.

mod arrange;
mod branches;
mod card;
mod choice;
mod columns;
mod composite;
mod grid;
mod gutter;
mod list;
#[cfg(test)]
mod tests;

use super::coloring::{Coloring, Status, Way};
use super::icon::Icon;
use super::text::Font;
pub(super) use card::BADGE;
use starbridge_flow::graph::{Flow, ListId, StepId};

/// Composites inside each other that are drawn; deeper ones are closed boxes.
const DEPTH: usize = 48;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) w: i32,
    pub(super) h: i32,
}

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A step.
    Step(StepId),
    /// A branch of a parallel.
    Branch(StepId, u32),
    /// An arm of a choice; none: its default.
    Arm(StepId, Option<u32>),
    /// Where the flow begins.
    Begin,
    /// Where the flow ends after its last step.
    End,
    /// Where a list ends before its last step.
    Stop,
    /// Text alone.
    Note,
}

/// The outline of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A step without others inside.
    Card,
    /// Round ends: it ends its list well.
    Pill,
    /// Cut corners: it fails.
    Octagon,
    /// Steps inside.
    Frame,
    /// Steps inside that run once for each item.
    Stack,
    /// A branch or an arm.
    Lane,
    /// A filled circle.
    Dot,
    /// A circle around a dot.
    Ring,
    /// No outline.
    Bare,
}

/// How much a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// It names something.
    Strong,
    /// It tells more.
    Quiet,
    /// It names the state.
    State,
}

/// Where a text stands from its x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Something inside a box; places are relative to the box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Text; `y` is its middle.
    Text {
        x: i32,
        y: i32,
        anchor: Anchor,
        font: Font,
        tone: Tone,
        text: String,
    },
    /// A few words with a border, as high as [`card::BADGE`]; `y` is the top.
    Badge { x: i32, y: i32, w: i32, text: String },
    /// A sign of 14 by 14; `x` and `y` are its corner.
    Icon { x: i32, y: i32, icon: Icon },
}

/// What a box looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) shape: Shape,
    /// The kind of step it is.
    pub(super) icon: Option<Icon>,
    pub(super) status: Option<Status>,
    /// Whether what it stands for was taken.
    pub(super) taken: bool,
    pub(super) marks: Vec<Mark>,
    /// All there is to say, one item a line.
    pub(super) tip: Vec<String>,
}

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineKind {
    /// To the next step.
    Next,
    /// A `goto`.
    Goto,
    /// A caught error.
    Catch,
    /// A branch waits for another.
    Depends,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) points: Vec<(i32, i32)>,
    pub(super) kind: LineKind,
    pub(super) taken: bool,
    /// Whether it ends in an arrow.
    pub(super) arrow: bool,
}

/// A box in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) what: What,
    pub(super) rect: Rect,
    /// The box around it, by its index.
    pub(super) parent: Option<usize>,
    pub(super) face: Face,
}

/// A whole picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// Boxes, each after the one around it.
    pub(super) boxes: Vec<Placed>,
    pub(super) lines: Vec<Line>,
    /// Where lines meet, in contrast to where they cross.
    pub(super) joints: Vec<(i32, i32, LineKind)>,
}

/// A part of a picture whose inside is settled, in places relative to its corner.
#[derive(Clone, Debug, Default)]
struct Block {
    w: i32,
    h: i32,
    /// The box it draws around itself; none: it only holds others together.
    outline: Option<(What, Face)>,
    inside: Vec<(i32, i32, Block)>,
    lines: Vec<Line>,
    joints: Vec<(i32, i32, LineKind)>,
}

/// What measuring needs to know.
struct Drawing<'a> {
    flow: &'a Flow,
    coloring: Option<&'a Coloring>,
    /// Lists that are drawn: a list is drawn once, whatever leads to it.
    drawn: Vec<bool>,
}

/// Lays a flow out.
pub(super) fn layout(flow: &Flow, coloring: Option<&Coloring>) -> Layout {
    let mut drawing = Drawing {
        flow,
        coloring,
        drawn: vec![false; flow.lists.len()],
    };
    let block = drawing.whole(ListId(0));
    let mut layout = Layout {
        width: block.w,
        height: block.h,
        ..Layout::default()
    };
    put(&mut layout, block, (0, 0), None);
    layout
}

/// Puts a block and what is inside down. As deep as composites are drawn.
fn put(layout: &mut Layout, block: Block, (x, y): (i32, i32), parent: Option<usize>) {
    let around = match block.outline {
        Some((what, face)) => {
            let rect = Rect {
                x,
                y,
                w: block.w,
                h: block.h,
            };
            layout.boxes.push(Placed {
                what,
                rect,
                parent,
                face,
            });
            Some(layout.boxes.len() - 1)
        }
        None => parent,
    };
    layout.lines.extend(block.lines.into_iter().map(|mut line| {
        for point in &mut line.points {
            *point = (point.0 + x, point.1 + y);
        }
        line
    }));
    let joints = block
        .joints
        .into_iter()
        .map(|(at_x, at_y, kind)| (at_x + x, at_y + y, kind));
    layout.joints.extend(joints);
    for (dx, dy, inside) in block.inside {
        put(layout, inside, (x + dx, y + dy), around);
    }
}

impl Drawing<'_> {
    /// Whether a way was taken.
    fn taken(&self, way: Way) -> bool {
        self.coloring.is_some_and(|coloring| coloring.taken(way) > 0)
    }
}
