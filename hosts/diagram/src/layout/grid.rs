//! The items of one list in columns, before the ways beside them are known.

use super::LineKind;
use super::card::Side;

/// The space between a column and the first lane beside it.
pub(super) const BESIDE: i32 = 14;

/// The size of a step, or of the flow's beginning or end.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    pub(super) w: i32,
    pub(super) h: i32,
    /// The height at which lines arrive at its sides.
    pub(super) arrival: i32,
    /// Whether it leads to the next item; if so, whether that way was taken.
    pub(super) falls: Option<bool>,
    pub(super) ports: Vec<Port>,
}

/// An exit at a side of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) y: i32,
    /// The item it leads to.
    pub(super) to: usize,
    pub(super) side: Side,
    pub(super) kind: LineKind,
    pub(super) taken: bool,
}

/// A column; `x` is its left, beside which the left lanes run, and `y` is 0 at its first item.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) x: i32,
    pub(super) w: i32,
    pub(super) h: i32,
    /// Where the line up to the next column runs.
    pub(super) turn: i32,
}

/// Items in columns before the lanes beside them are known, so the `x` of items is not known either.
#[derive(Clone, Debug)]
pub(super) struct Grid<'a> {
    pub(super) items: &'a [Item],
    pub(super) columns: Vec<Column>,
    /// The column of each item, and its top.
    pub(super) at: Vec<(usize, i32)>,
}

impl Grid<'_> {
    /// The middle of a column.
    pub(super) fn axis(&self, column: usize) -> i32 {
        self.columns.get(column).map_or(0, |column| column.x + column.w / 2)
    }

    /// The left or right side of an item.
    pub(super) fn side(&self, item: usize, side: Side) -> i32 {
        let left = self.axis(self.at[item].0) - self.items[item].w / 2;
        match side {
            Side::Left => left,
            Side::Right => left + self.items[item].w,
        }
    }

    /// The height of the highest column.
    pub(super) fn height(&self) -> i32 {
        self.columns.iter().map(|column| column.h).max().unwrap_or(0)
    }
}
