//! Parallels: branches side by side, each below those it depends on.
//!
//! Branches are in rows. A line that leads past a row runs through a gap in it, so that no line crosses a branch.

use super::card::Row;
use super::choice::WIDEST;
use super::composite::lane;
use super::list::Entry;
use super::{Block, Drawing, Line, LineKind, Shape, What};
use crate::labels;
use crate::status::Way;
use crate::text::Font;
use starbridge_flow::graph::{Parallel, Step, StepId};

/// The space between branches.
const ROW_GAP_PX: i32 = 12;
/// The width of a gap for a line.
const PASS_PX: i32 = 10;
/// The least space between rows that lines connect, and between others.
const CHANNEL_PX: i32 = 40;
const PLAIN_PX: i32 = 14;
/// With more lines than this, none is drawn. The boxes then say what they wait for.
const MAX_LINES: usize = 3000;

/// Something in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Branch(usize),
    /// A gap for the line from a branch further up.
    Pass(usize),
}

/// The rows of the branches, and the dependencies between them.
struct Rows {
    /// The row of each branch.
    row: Vec<usize>,
    /// The branches that depend on each.
    followers: Vec<Vec<usize>>,
    /// The branches that each depends on.
    before: Vec<Vec<usize>>,
    rows: Vec<Vec<Slot>>,
}

impl Drawing<'_> {
    pub(super) fn parallel(&mut self, id: StepId, step: &Step, parallel: &Parallel, depth: usize) -> Entry {
        let mut blocks = Vec::with_capacity(parallel.branches.len());
        let mut taken = Vec::with_capacity(parallel.branches.len());
        for (index, branch) in parallel.branches.iter().enumerate() {
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            let name = labels::branch(branch, index, self.words);
            let after = labels::after(parallel, branch, self.words);
            let mut rows = vec![Row::Name(None, name.clone())];
            rows.extend(after.clone().map(|after| Row::Line(Font::Small, after, 2)));
            let tip = [name].into_iter().chain(after).collect();
            let entered = self.taken(Way::Branch(id, number));
            let list = self.list(branch.list, depth + 1);
            blocks.push(lane(What::Branch(id, number), &rows, entered, tip, list));
            taken.push(entered);
        }
        let widths: Vec<i32> = blocks.iter().map(|block| block.w).collect();
        let inside = Rows::new(parallel, &widths).put(blocks, &taken);
        self.framed(id, step, Shape::Frame, inside)
    }
}

impl Rows {
    fn new(parallel: &Parallel, widths: &[i32]) -> Self {
        let count = parallel.branches.len();
        let edges: usize = parallel.branches.iter().map(|branch| branch.depends_on.len()).sum();
        let mut rows = Self {
            row: vec![0; count],
            followers: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            rows: Vec::new(),
        };
        for (index, branch) in parallel.branches.iter().enumerate() {
            let mut before: Vec<usize> = branch
                .depends_on
                .iter()
                .map(|&on| on as usize)
                .filter(|&on| on < count)
                .collect();
            before.sort_unstable();
            before.dedup();
            for &on in &before {
                rows.followers[on].push(index);
            }
            rows.before[index] = before;
        }
        rows.place(widths);
        if edges > MAX_LINES {
            rows.followers.iter_mut().for_each(Vec::clear);
            rows.before.iter_mut().for_each(Vec::clear);
        }
        rows.fill();
        rows
    }

    /// Finds each branch's row: the first one with room below everything it depends on.
    fn place(&mut self, widths: &[i32]) {
        let mut open: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut ready: std::collections::VecDeque<usize> = (0..open.len()).filter(|&index| open[index] == 0).collect();
        let mut used: Vec<i32> = Vec::new();
        while let Some(index) = ready.pop_front() {
            let mut row = self.before[index].iter().map(|&on| self.row[on] + 1).max().unwrap_or(0);
            while used.get(row).is_some_and(|used| used + widths[index] > WIDEST) {
                row += 1;
            }
            used.resize(used.len().max(row + 1), 0);
            used[row] += widths[index] + ROW_GAP_PX;
            self.row[index] = row;
            for &follower in &self.followers[index] {
                open[follower] -= 1;
                if open[follower] == 0 {
                    ready.push_back(follower);
                }
            }
        }
    }

    /// Fills the rows with branches, and with gaps for lines that lead past them.
    fn fill(&mut self) {
        let count = self.row.iter().max().map_or(0, |last| last + 1);
        self.rows = vec![Vec::new(); count];
        for index in 0..self.row.len() {
            let row = self.row[index];
            self.rows[row].push(Slot::Branch(index));
            let last = self.followers[index]
                .iter()
                .map(|&follower| self.row[follower])
                .max()
                .unwrap_or(row);
            for past in row + 1..last {
                self.rows[past].push(Slot::Pass(index));
            }
        }
    }

    /// Puts the branches into their places, each row in an order that keeps lines short.
    fn put(&self, mut blocks: Vec<Block>, taken: &[bool]) -> Block {
        let mut all = Block {
            w: self.rows.iter().map(|row| row_width(row, &blocks)).max().unwrap_or(0),
            ..Block::default()
        };
        // The `x` at which the line from each branch leaves the row above.
        let mut from = vec![0; blocks.len()];
        for (number, row) in self.rows.iter().enumerate() {
            let bottom = all.h;
            let top = if number == 0 {
                0
            } else {
                bottom + self.channel(number, row)
            };
            let high = row
                .iter()
                .filter_map(|slot| slot.branch())
                .map(|index| blocks[index].h)
                .max()
                .unwrap_or(0);
            let mut x = (all.w - row_width(row, &blocks)) / 2;
            let mut on = Vec::with_capacity(row.len());
            for slot in self.ordered(row, &from) {
                let w = slot.width(&blocks);
                let middle = x + w / 2;
                match slot {
                    Slot::Branch(index) => {
                        let ports = self.ports(index, (x, w)).into_iter();
                        all.lines.extend(
                            ports.map(|(on, port)| depends(vec![(from[on], bottom), (port, top)], taken[index], true)),
                        );
                        let mut block = std::mem::take(&mut blocks[index]);
                        // Kept for the width of the row.
                        blocks[index].w = w;
                        // All branches of a row are as high as the highest.
                        block.h = high;
                        all.inside.push((x, top, block));
                        on.push((index, middle));
                    }
                    Slot::Pass(index) => {
                        let points = vec![(from[index], bottom), (middle, top), (middle, top + high)];
                        let later = self.followers[index]
                            .iter()
                            .any(|&follower| self.row[follower] > number && taken[follower]);
                        all.lines.push(depends(points, later, false));
                        on.push((index, middle));
                    }
                }
                x += w + ROW_GAP_PX;
            }
            for (index, middle) in on {
                from[index] = middle;
            }
            all.h = top + high;
        }
        all
    }

    /// The slots of a row, in the order of the lines that lead to them.
    fn ordered(&self, row: &[Slot], from: &[i32]) -> Vec<Slot> {
        let mut keyed: Vec<(i64, Slot)> = row
            .iter()
            .map(|&slot| {
                let sources: &[usize] = match &slot {
                    Slot::Branch(index) => &self.before[*index],
                    Slot::Pass(index) => std::slice::from_ref(index),
                };
                let sum: i64 = sources.iter().map(|&source| i64::from(from[source])).sum();
                (sum * 16 / (sources.len() as i64).max(1), slot)
            })
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, slot)| slot).collect()
    }

    /// The points at a branch's top where its lines arrive.
    fn ports(&self, index: usize, (x, w): (i32, i32)) -> Vec<(usize, i32)> {
        let before = &self.before[index];
        let count = before.len() as i32;
        let apart = (w / (count + 1)).min(18);
        let first = x + w / 2 - apart * (count - 1) / 2;
        before
            .iter()
            .zip(0..)
            .map(|(&on, number): (&usize, i32)| (on, first + apart * number))
            .collect()
    }

    /// The space between a row and the one above it.
    fn channel(&self, number: usize, row: &[Slot]) -> i32 {
        let lines: usize = row
            .iter()
            .map(|slot| slot.branch().map_or(1, |index| self.before[index].len()))
            .sum();
        if number == 0 || lines == 0 {
            PLAIN_PX
        } else {
            (CHANNEL_PX + 2 * lines as i32).min(120)
        }
    }
}

impl Slot {
    fn branch(self) -> Option<usize> {
        match self {
            Self::Branch(index) => Some(index),
            Self::Pass(_) => None,
        }
    }

    fn width(self, blocks: &[Block]) -> i32 {
        self.branch().map_or(PASS_PX, |index| blocks[index].w)
    }
}

fn row_width(row: &[Slot], blocks: &[Block]) -> i32 {
    row.iter().map(|slot| slot.width(blocks) + ROW_GAP_PX).sum::<i32>() - ROW_GAP_PX
}

fn depends(points: Vec<(i32, i32)>, taken: bool, arrow: bool) -> Line {
    Line {
        points,
        kind: LineKind::Depends,
        taken,
        arrow,
    }
}
