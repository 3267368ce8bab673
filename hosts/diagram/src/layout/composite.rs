//! Boxes around other steps; also foreach, the simplest of them.

use super::card::{Row, natural, set};
use super::list::Entry;
use super::{Block, Drawing, Face, Shape, What};
use starbridge_flow::graph::{Foreach, Step, StepId};

/// The space between a composite's border and its content.
pub(super) const INSIDE: i32 = 12;

impl Drawing<'_> {
    pub(super) fn foreach(&mut self, id: StepId, step: &Step, foreach: &Foreach, depth: usize) -> Entry {
        let list = self.list(foreach.list, depth + 1);
        self.framed(id, step, Shape::Stack, list)
    }

    /// A step's box around its content.
    pub(super) fn framed(&self, id: StepId, step: &Step, shape: Shape, inside: Block) -> Entry {
        let rows = self.rows(id, step);
        let w = natural(&rows).max(inside.w + 2 * INSIDE);
        let head = set(&rows, w);
        let top = head.h;
        let (face, exits) = self.face(id, step, shape, head);
        let block = around((What::Step(id), face), w, top, inside);
        Entry { block, exits }
    }
}

/// The box of a branch or arm: a head and a list.
pub(super) fn lane(what: What, rows: &[Row], taken: bool, tip: Vec<String>, list: Block) -> Block {
    let w = natural(rows).max(list.w + 2 * INSIDE);
    let head = set(rows, w);
    let face = Face {
        marks: head.marks,
        taken,
        tip,
        ..Face::plain(Shape::Lane)
    };
    around((what, face), w, head.h, list)
}

fn around(outline: (What, Face), w: i32, top: i32, inside: Block) -> Block {
    Block {
        w,
        h: top + inside.h + INSIDE,
        outline: Some(outline),
        inside: vec![((w - inside.w) / 2, top, inside)],
        ..Block::default()
    }
}
