//! Arranges the items of one list in columns, with lines from each to the next and room for the ways beside them.

use super::card::Side;
use super::columns::divide;
use super::grid::{BESIDE, Column, Grid, Item};
use super::gutter::{Gutters, route};
use super::{Line, LineKind};

/// The space between an item and the next.
const GAP_PX: i32 = 26;
/// The space between a column's last item and the line to the next column.
const TURN_PX: i32 = 16;
/// The items in their places.
#[derive(Clone, Debug, Default)]
pub(super) struct Arranged {
    pub(super) w: i32,
    pub(super) h: i32,
    /// The corner of each item.
    pub(super) places: Vec<(i32, i32)>,
    pub(super) lines: Vec<Line>,
    pub(super) joints: Vec<(i32, i32, LineKind)>,
}

/// Arranges the items of a list.
pub(super) fn arrange(items: &[Item]) -> Arranged {
    let mut grid = grid(items);
    let gutters = Gutters::new(&grid);
    let turns = grid.columns.len() > 1;
    let (mut x, mut width) = (0, 0);
    for (number, column) in grid.columns.iter_mut().enumerate() {
        column.x = x + gutters.width(number, Side::Left);
        x = column.x + column.w + gutters.width(number, Side::Right);
        width = x;
        // The line to the next column has a lane of its own.
        column.turn = x + BESIDE;
        x += 2 * BESIDE;
    }
    let mut routed = route(&grid, gutters);
    let top = routed.above + if turns { TURN_PX } else { 0 };
    let bottom = routed.below + if turns { TURN_PX } else { 0 };
    routed.lines.extend(falls(&grid));
    let height = grid.height() + top + bottom;
    for line in &mut routed.lines {
        for point in &mut line.points {
            point.1 += top;
        }
    }
    Arranged {
        w: width,
        h: height,
        places: (0..items.len())
            .map(|item| (grid.side(item, Side::Left), grid.at[item].1 + top))
            .collect(),
        lines: routed.lines,
        joints: routed
            .joints
            .into_iter()
            .map(|(x, y, kind)| (x, y + top, kind))
            .collect(),
    }
}

fn grid(items: &[Item]) -> Grid<'_> {
    let sizes: Vec<(i32, i32)> = items.iter().map(|item| (item.w, item.h + GAP_PX)).collect();
    let mut at = Vec::with_capacity(items.len());
    let mut columns = Vec::new();
    for range in divide(&sizes) {
        let mut y = 0;
        for item in &items[range.clone()] {
            at.push((columns.len(), y));
            y += item.h + GAP_PX;
        }
        let w = items[range].iter().map(|item| item.w).max().unwrap_or(0);
        columns.push(Column {
            x: 0,
            w,
            h: (y - GAP_PX).max(0),
            turn: 0,
        });
    }
    Grid { items, columns, at }
}

/// The lines from each item to the next.
fn falls(grid: &Grid<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, item) in grid.items.iter().enumerate() {
        let (Some(taken), Some(&(next, next_top))) = (item.falls, grid.at.get(index + 1)) else {
            continue;
        };
        let (column, top) = grid.at[index];
        let (from, to) = ((grid.axis(column), top + item.h), (grid.axis(next), next_top));
        let points = if column == next {
            vec![from, to]
        } else {
            let (down, between, up) = (from.1 + TURN_PX, grid.columns[column].turn, to.1 - TURN_PX);
            vec![from, (from.0, down), (between, down), (between, up), (to.0, up), to]
        };
        lines.push(Line {
            points,
            kind: LineKind::Next,
            taken,
            arrow: true,
        });
    }
    lines
}
