//! The layout of a picture, as data: boxes with their text, and lines between them. All sizes are in pixels.
//!
//! Lists run from top to bottom ([`arrange`]); composites are boxes around their content ([`composite`]). Sizes are
//! computed from the inside out, as a tree of [`Block`]s whose places are relative to their parents. One walk then
//! gives everything its place.

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

use super::icon::Icon;
use super::status::{FlowStatus, Status, Way};
use super::text::Font;
use super::words::Words;
pub(super) use card::BADGE;
use starbridge_flow::graph::{Flow, ListId, StepId};

/// How many levels of composites are drawn. Deeper ones are closed boxes.
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
    Step(StepId),
    /// A branch of a parallel.
    Branch(StepId, u32),
    /// An arm of a choice; `None` is its default.
    Arm(StepId, Option<u32>),
    /// The beginning of the flow.
    Begin,
    /// The end of the flow, after its last step.
    End,
    /// The end of a list before its last step.
    Stop,
    /// Text alone.
    Note,
}

/// The outline of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A step without steps inside.
    Card,
    /// Round ends: it ends its list with success.
    Pill,
    /// Cut corners: it fails.
    Octagon,
    /// A step with steps inside.
    Frame,
    /// A step whose inner steps run once for each item.
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

/// The importance of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// A name.
    Strong,
    /// A detail.
    Quiet,
    /// The status.
    State,
}

/// How a text is aligned at its x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Something inside a box. Its place is relative to the box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A text; `y` is its middle.
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
    /// An icon of 14 by 14; `x` and `y` are its corner.
    Icon { x: i32, y: i32, icon: Icon },
}

/// The look of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) shape: Shape,
    /// The icon of its kind of step.
    pub(super) icon: Option<Icon>,
    pub(super) status: Option<Status>,
    /// Whether the history took this way.
    pub(super) taken: bool,
    pub(super) marks: Vec<Mark>,
    /// The tooltip, one item a line.
    pub(super) tip: Vec<String>,
}

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LineKind {
    /// To the next step.
    Next,
    /// A `goto`.
    Goto,
    /// A caught error.
    Catch,
    /// A dependency between branches.
    Depends,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) points: Vec<(i32, i32)>,
    pub(super) kind: LineKind,
    pub(super) taken: bool,
    /// Whether it ends with an arrow.
    pub(super) arrow: bool,
}

/// A box in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) what: What,
    pub(super) rect: Rect,
    /// The index of the box around it.
    pub(super) parent: Option<usize>,
    pub(super) face: Face,
}

/// A complete picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// The boxes, each after the one around it.
    pub(super) boxes: Vec<Placed>,
    pub(super) lines: Vec<Line>,
    /// The points where lines meet; elsewhere they only cross.
    pub(super) joints: Vec<(i32, i32, LineKind)>,
}

/// A part of a picture whose content is settled. Places are relative to its corner.
#[derive(Clone, Debug, Default)]
struct Block {
    w: i32,
    h: i32,
    /// The box that it draws around itself; `None` if it only holds others together.
    outline: Option<(What, Face)>,
    inside: Vec<(i32, i32, Block)>,
    lines: Vec<Line>,
    joints: Vec<(i32, i32, LineKind)>,
}

/// What measuring needs to know.
struct Drawing<'a> {
    flow: &'a Flow,
    status: Option<&'a FlowStatus>,
    words: Words,
    /// Whether a step has only its name, its state and its ways.
    compact: bool,
    /// The lists that are drawn. Each is drawn once, even if several steps lead to it.
    drawn: Vec<bool>,
}

/// Lays out a flow. `compact`: a step has only its name, its state and its ways.
pub(super) fn layout(flow: &Flow, status: Option<&FlowStatus>, words: Words, compact: bool) -> Layout {
    let mut drawing = Drawing {
        flow,
        status,
        words,
        compact,
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

/// Puts a block and its content into the layout. It recurses as deep as composites are drawn.
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
        self.status.is_some_and(|status| status.taken(way) > 0)
    }
}
