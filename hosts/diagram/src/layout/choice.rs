//! Choices: arms side by side in the order in which they are tried, with the default last. Below each row of arms are
//! tracks for where they lead.

use super::card::{Exit, Row, Side};
use super::composite::{INSIDE, lane};
use super::list::{Entry, note};
use super::{Block, Drawing, Line, LineKind, Shape, What};
use crate::labels;
use crate::status::Way;
use crate::text::{Font, clean};
use starbridge_flow::graph::{Arm, Choice, Step, StepId};

/// The space between arms.
const ARM_GAP_PX: i32 = 12;
/// The space between rows of arms, and between the last row and a track.
const ROW_PX: i32 = 14;
/// The space between tracks.
const TRACK_PX: i32 = 9;
/// A row of arms wider than this continues in the next row.
pub(super) const WIDEST: i32 = 1500;
/// How many lines of a condition are shown.
const MAX_LINES: usize = 3;

/// An arm and where it leads; `foot` says so at its bottom.
struct Branching {
    block: Block,
    foot: Option<Block>,
    exit: Option<Exit>,
}

/// Rows of arms as they are put down.
#[derive(Default)]
struct Rows {
    block: Block,
    /// The exits by their height in the block. The line to the side still lacks its last point.
    exits: Vec<(i32, Exit)>,
}

impl Drawing<'_> {
    pub(super) fn choice(&mut self, id: StepId, step: &Step, choice: &Choice, depth: usize) -> Entry {
        let arms = choice
            .arms
            .iter()
            .enumerate()
            .map(|(number, arm)| (u32::try_from(number).ok(), arm));
        let all: Vec<(Option<u32>, &Arm)> = arms.chain(choice.default.iter().map(|arm| (None, arm))).collect();
        let arms = all
            .into_iter()
            .map(|(number, arm)| self.arm(id, step, number, arm, depth))
            .collect();
        let Rows { block, exits } = in_rows(arms);
        let w = block.w;
        let mut entry = self.framed(id, step, Shape::Frame, block);
        let Some(&(dx, dy, _)) = entry.block.inside.first() else {
            return entry;
        };
        // The tracks begin inside and end at the box's sides.
        for (y, exit) in exits {
            let (inner, outer) = match exit.side {
                Side::Left => (dx, 0),
                Side::Right => (dx + w, entry.block.w),
            };
            entry.block.lines.push(Line {
                points: vec![(inner, y + dy), (outer, y + dy)],
                kind: LineKind::Goto,
                taken: exit.taken,
                arrow: false,
            });
            entry.exits.push((y + dy, exit));
        }
        entry
    }

    fn arm(&mut self, id: StepId, step: &Step, number: Option<u32>, arm: &Arm, depth: usize) -> Branching {
        let condition = labels::condition(&arm.text, number, self.words);
        let font = if number.is_some() { Font::Mono } else { Font::Small };
        let mut rows = vec![Row::Line(font, condition, MAX_LINES)];
        let times = self.status.map_or(0, |status| status.taken(Way::Arm(id, number)));
        if times > 0 {
            rows.push(Row::Line(
                Font::Small,
                self.words.fill("taken {}×", &[&times.to_string()]),
                1,
            ));
        }
        let exit = arm
            .goto
            .map(|target| self.exit(step, target, false, Way::Goto(id, number)));
        let leads = arm.goto.map(|target| format!("→ {}", self.name(target)));
        let list = match (arm.list, &leads) {
            (Some(list), _) => self.list(list, depth + 1),
            (None, Some(_)) => Block::default(),
            (None, None) => note(self.words.say("goes on").to_owned()),
        };
        let mut tip = vec![clean(&arm.text)];
        tip.extend(leads.clone());
        let foot = leads.map(note);
        let mut block = lane(What::Arm(id, number), &rows, times > 0, tip, list);
        if let Some(foot) = &foot {
            block.h += foot.h - INSIDE;
            block.w = block.w.max(foot.w);
        }
        Branching { block, foot, exit }
    }
}

/// Puts arms into rows, as many into each as fit.
fn in_rows(arms: Vec<Branching>) -> Rows {
    let mut rows: Vec<Vec<Branching>> = Vec::new();
    let mut used = 0;
    for arm in arms {
        let wide = arm.block.w + ARM_GAP_PX;
        if rows.is_empty() || used + wide > WIDEST {
            rows.push(Vec::new());
            used = 0;
        }
        used += wide;
        if let Some(row) = rows.last_mut() {
            row.push(arm);
        }
    }
    let mut set = Rows::default();
    set.block.w = rows.iter().map(|row| row_width(row)).max().unwrap_or(0);
    for row in rows {
        set.row(row);
    }
    set.block.h = (set.block.h - ROW_PX).max(0);
    set
}

fn row_width(row: &[Branching]) -> i32 {
    row.iter().map(|arm| arm.block.w + ARM_GAP_PX).sum::<i32>() - ARM_GAP_PX
}

impl Rows {
    fn row(&mut self, row: Vec<Branching>) {
        let high = row.iter().map(|arm| arm.block.h).max().unwrap_or(0);
        let mut x = (self.block.w - row_width(&row)) / 2;
        let mut leading = Vec::new();
        let top = self.block.h;
        for mut arm in row {
            // All arms of a row are as high as the highest.
            arm.block.h = high;
            let w = arm.block.w;
            arm.block
                .inside
                .extend(arm.foot.map(|foot| ((w - foot.w) / 2, high - foot.h, foot)));
            leading.extend(arm.exit.map(|exit| (x + w / 2, exit)));
            self.block.inside.push((x, top, arm.block));
            x += w + ARM_GAP_PX;
        }
        self.block.h += high + ROW_PX;
        self.tracks(leading, top + high);
    }

    /// Leads arms to the sides. Those nearer to their side get the upper tracks, so that no track crosses another one
    /// to the same side.
    fn tracks(&mut self, leading: Vec<(i32, Exit)>, bottom: i32) {
        let (left, mut right): (Vec<_>, Vec<_>) = leading.into_iter().partition(|(_, exit)| exit.side == Side::Left);
        right.reverse();
        // Each with the point where the arm before joined it.
        let mut tracks: Vec<(Exit, i32, i32)> = Vec::new();
        for (x, exit) in left.into_iter().chain(right) {
            let y = match tracks.iter_mut().find(|(other, ..)| other.target == exit.target) {
                Some((other, y, joined)) => {
                    other.taken |= exit.taken;
                    self.block
                        .joints
                        .push((std::mem::replace(joined, x), *y, LineKind::Goto));
                    *y
                }
                None => {
                    let y = bottom + ROW_PX + TRACK_PX * tracks.len() as i32;
                    tracks.push((exit, y, x));
                    y
                }
            };
            let end = if exit.side == Side::Left { 0 } else { self.block.w };
            self.block.lines.push(Line {
                points: vec![(x, bottom), (x, y), (end, y)],
                kind: LineKind::Goto,
                taken: exit.taken,
                arrow: false,
            });
        }
        if let Some(&(_, lowest, _)) = tracks.last() {
            self.block.h = lowest + ROW_PX;
        }
        self.exits.extend(tracks.into_iter().map(|(exit, y, _)| (y, exit)));
    }
}
