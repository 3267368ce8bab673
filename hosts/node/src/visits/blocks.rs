//! Rows in blocks. A block that nobody changes is kept as bytes, and copies share it.

use super::row::packed::{pack, unpack};
use super::row::{Row, SpanEnd};
use super::shared_map::VisitSet;
use starbridge_flow::graph::StepId;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Child, PathItem, StepPath};
use std::borrow::Cow;
use std::sync::Arc;

/// The number of rows of a block.
const ROWS: usize = 32;

/// Rows in the order of the events that entered them. A copy shares the blocks that do not change afterwards.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// None is empty.
    blocks: Vec<Own>,
    len: usize,
    /// The names of the flow's steps.
    pub(super) names: Arc<[Text]>,
}

#[derive(Clone, Debug)]
enum Own {
    Loose(Arc<Vec<Arc<Row>>>),
    Packed(Arc<Packed>),
}

#[derive(Debug)]
struct Packed {
    outline: Outline,
    bytes: Box<[u8]>,
}

/// What the rows of a block have in common, so that readers can skip blocks that have nothing for them.
#[derive(Debug)]
pub struct Outline {
    first: u64,
    last: u64,
    count: usize,
    /// A bit for each status.
    statuses: u16,
    /// A bit for each number of a step, modulo 64.
    steps: u64,
    /// Whether one of them is not over.
    is_open: bool,
    entered: Timestamp,
    /// The composites around all of them.
    around: StepPath,
    /// The composite that all are inside of, in several of its children, and the least and the greatest of these.
    within: Option<(StepId, Option<(u32, u32)>)>,
    spans: Option<Spanned>,
}

/// What is known of the spans of a block's rows, all of which have ended.
#[derive(Clone, Copy, Debug)]
pub struct Spanned {
    /// When the first began.
    pub from: Timestamp,
    /// When the last ended.
    pub to: Timestamp,
    /// How many rows have spans.
    pub rows: u64,
    /// How many rows have a span that failed.
    pub failed: u64,
}

/// A block of rows to read.
pub struct Block<'a> {
    own: &'a Own,
    names: &'a [Text],
}

impl<'a> Block<'a> {
    /// What its rows have in common, if it is known.
    pub fn outline(&self) -> Option<&'a Outline> {
        match self.own {
            Own::Loose(_) => None,
            Own::Packed(packed) => Some(&packed.outline),
        }
    }

    /// The visits in it, in the order in which their steps were entered.
    pub fn rows(&self) -> Cow<'a, [Arc<Row>]> {
        self.own.rows(self.names)
    }
}

impl Own {
    fn first(&self) -> u64 {
        match self {
            Self::Loose(rows) => rows.first().map_or(0, |row| row.event()),
            Self::Packed(packed) => packed.outline.first,
        }
    }

    fn last(&self) -> u64 {
        match self {
            Self::Loose(rows) => rows.last().map_or(0, |row| row.event()),
            Self::Packed(packed) => packed.outline.last,
        }
    }

    fn rows(&self, names: &[Text]) -> Cow<'_, [Arc<Row>]> {
        match self {
            Self::Loose(rows) => Cow::Borrowed(rows.as_slice()),
            Self::Packed(packed) => Cow::Owned(unpack(&packed.bytes, packed.outline.count, names)),
        }
    }

    /// Its rows, to be changed. They are there: a packed block becomes a loose one.
    fn loose(&mut self, names: &[Text]) -> Option<&mut Vec<Arc<Row>>> {
        if let Self::Packed(packed) = self {
            *self = Self::Loose(Arc::new(unpack(&packed.bytes, packed.outline.count, names)));
        }
        match self {
            Self::Loose(rows) => Some(Arc::make_mut(rows)),
            Self::Packed(_) => None,
        }
    }
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn block_of(&self, event: u64) -> usize {
        // Most events change a row that was entered lately.
        if self.blocks.last().is_some_and(|block| block.first() <= event) {
            return self.blocks.len() - 1;
        }
        let place = self.blocks.partition_point(|block| block.first() <= event);
        place.saturating_sub(1)
    }

    /// The row that an event entered.
    pub(super) fn get(&self, event: u64) -> Option<Arc<Row>> {
        let block = self.blocks.get(self.block_of(event))?;
        if event > block.last() {
            return None;
        }
        let rows = block.rows(&self.names);
        let at = rows.binary_search_by_key(&event, |row| row.event()).ok()?;
        rows.get(at).cloned()
    }

    /// The row that an event entered, to be changed if `changes` says so.
    pub(super) fn get_mut_if(&mut self, event: u64, changes: impl Fn(&Row) -> bool) -> Option<&mut Row> {
        let place = self.block_of(event);
        let block = self.blocks.get_mut(place)?;
        if event > block.last() {
            return None;
        }
        if let Own::Loose(rows) = block {
            let at = rows.binary_search_by_key(&event, |row| row.event()).ok()?;
            rows.get(at).filter(|row| changes(row))?;
        }
        let rows = block.loose(&self.names)?;
        let at = rows.binary_search_by_key(&event, |row| row.event()).ok()?;
        let row = rows.get_mut(at).filter(|row| changes(row))?;
        Some(Arc::make_mut(row))
    }

    pub(super) fn get_mut(&mut self, event: u64) -> Option<&mut Row> {
        self.get_mut_if(event, |_| true)
    }

    /// Adds a row. Its event is later than those of all others.
    pub(super) fn push(&mut self, row: Row) {
        self.len += 1;
        match self.blocks.last_mut() {
            Some(Own::Loose(rows)) if rows.len() < ROWS => Arc::make_mut(rows).push(Arc::new(row)),
            _ => self.blocks.push(Own::Loose(Arc::new(vec![Arc::new(row)]))),
        }
    }

    pub(super) fn remove(&mut self, event: u64) {
        let place = self.block_of(event);
        let block = self.blocks.get_mut(place);
        let Some(rows) = block.and_then(|block| block.loose(&self.names)) else {
            return;
        };
        let Ok(at) = rows.binary_search_by_key(&event, |row| row.event()) else {
            return;
        };
        rows.remove(at);
        self.len -= 1;
        if rows.is_empty() {
            self.blocks.remove(place);
        }
    }

    /// Changes the rows that are not over, and tells their events.
    pub(super) fn change_open(&mut self, mut change: impl FnMut(&mut Row)) -> Vec<u64> {
        let mut changed = Vec::new();
        for block in &mut self.blocks {
            let is_over = match block {
                Own::Loose(rows) => !rows.iter().any(|row| row.is_open()),
                Own::Packed(packed) => !packed.outline.is_open,
            };
            if is_over {
                continue;
            }
            let rows = block.loose(&self.names).into_iter().flatten();
            for row in rows.filter(|row| row.is_open()) {
                changed.push(row.event());
                change(Arc::make_mut(row));
            }
        }
        changed
    }

    /// Keeps all full blocks as bytes.
    pub(super) fn settle(&mut self) {
        for block in &mut self.blocks {
            if let Own::Loose(rows) = block
                && rows.len() >= ROWS
            {
                *block = Own::Packed(Arc::new(Packed {
                    outline: Outline::of(rows),
                    bytes: pack(rows),
                }));
            }
        }
    }

    /// The blocks that may have rows entered after an event.
    pub(super) fn after(&self, event: u64) -> impl Iterator<Item = Block<'_>> {
        let own = self.blocks.get(self.block_of(event)..).unwrap_or_default();
        own.iter().map(|own| Block {
            own,
            names: &self.names,
        })
    }

    /// All rows.
    pub(super) fn each(&self) -> impl Iterator<Item = Arc<Row>> {
        self.blocks.iter().flat_map(|block| match block.rows(&self.names) {
            Cow::Borrowed(rows) => rows.to_vec(),
            Cow::Owned(rows) => rows,
        })
    }

    /// The approximate memory of what was not counted before, in bytes.
    pub(super) fn bytes(&self, counted: &mut VisitSet) -> usize {
        let own = self.blocks.capacity() * size_of::<Own>();
        let blocks = self.blocks.iter().map(|block| match block {
            Own::Loose(rows) if counted.insert(Arc::as_ptr(rows).addr()) => {
                let fresh = rows.iter().filter(|row| counted.insert(Arc::as_ptr(row).addr()));
                fresh.map(|row| row.bytes()).sum::<usize>() + 8 * rows.capacity() + 48
            }
            Own::Packed(packed) if counted.insert(Arc::as_ptr(packed).addr()) => {
                size_of::<Packed>() + packed.bytes.len() + 48
            }
            _ => 0,
        });
        own + blocks.sum::<usize>()
    }
}

impl Outline {
    fn of(rows: &[Arc<Row>]) -> Self {
        let first = rows.first();
        let mut around: Vec<PathItem> = first.map(|row| row.place().items().to_vec()).unwrap_or_default();
        let mut outline = Self {
            first: first.map_or(0, |row| row.event()),
            last: rows.last().map_or(0, |row| row.event()),
            count: rows.len(),
            statuses: 0,
            steps: 0,
            is_open: false,
            entered: first.map_or(Timestamp::default(), |row| row.entered_time()),
            around: StepPath::default(),
            within: None,
            spans: spanned(rows),
        };
        for row in rows {
            outline.statuses |= 1 << row.own_status() as u16;
            outline.steps |= 1 << (row.number().0 % 64);
            outline.is_open |= row.is_open();
            outline.entered = outline.entered.min(row.entered_time());
            let own = row.place().items().iter();
            let same = own.zip(&around).take_while(|(own, around)| own == around).count();
            around.truncate(same);
        }
        outline.within = within(rows, around.len());
        outline.around = StepPath::from(around);
        outline
    }

    /// When the first of its rows was entered.
    pub fn entered(&self) -> Timestamp {
        self.entered
    }

    /// What is known of its spans, if all have ended.
    pub fn spans(&self) -> Option<Spanned> {
        self.spans
    }

    /// Whether it may have rows with this status, given by its number.
    pub(super) fn may_have_status(&self, status: u8) -> bool {
        self.statuses >> status & 1 == 1
    }

    pub(super) fn may_have_step(&self, step: StepId) -> bool {
        self.steps >> (step.0 % 64) & 1 == 1
    }

    /// Whether it may have rows whose places begin with this one.
    pub(super) fn may_be_inside(&self, place: &[PathItem]) -> bool {
        let around = self.around.items();
        if !around.iter().zip(place).all(|(own, wanted)| own == wanted) {
            return false;
        }
        let (Some(next), Some((step, numbers))) = (place.get(around.len()), self.within) else {
            return true;
        };
        next.step == step
            && match (number(next.child), numbers) {
                (Some(number), Some((least, most))) => (least..=most).contains(&number),
                _ => true,
            }
    }

    /// Whether all of its rows are inside a composite that was entered before them.
    pub fn is_inside(&self, composite: &Row) -> bool {
        let (around, place) = (self.around.items(), composite.place().items());
        let step = match around.get(place.len()) {
            Some(next) => Some(next.step),
            None => self.within.map(|(step, _)| step),
        };
        place.len() <= around.len()
            && around.starts_with(place)
            && step == Some(composite.number())
            && self.first > composite.event()
    }
}

fn number(child: Child) -> Option<u32> {
    match child {
        Child::Branch(number) | Child::Iteration(number) => Some(number),
        Child::Arm(_) => None,
    }
}

/// The composite that all rows are inside of at this depth, and the least and the greatest number of its children.
fn within(rows: &[Arc<Row>], depth: usize) -> Option<(StepId, Option<(u32, u32)>)> {
    let mut items = rows.iter().map(|row| row.place().items().get(depth));
    let first = items.next().flatten()?;
    let mut numbers = number(first.child).map(|number| (number, number));
    for item in items {
        let item = item.filter(|item| item.step == first.step)?;
        numbers = numbers
            .zip(number(item.child))
            .map(|((least, most), number)| (least.min(number), most.max(number)));
    }
    Some((first.step, numbers))
}

fn spanned(rows: &[Arc<Row>]) -> Option<Spanned> {
    let mut spanned: Option<Spanned> = None;
    for row in rows {
        for span in row.spans() {
            let to = span.to.filter(|_| span.end != SpanEnd::Open)?.max(span.from);
            let all = spanned.get_or_insert(Spanned {
                from: span.from,
                to,
                rows: 0,
                failed: 0,
            });
            (all.from, all.to) = (all.from.min(span.from), all.to.max(to));
        }
        if let Some(all) = spanned.as_mut().filter(|_| !row.spans().is_empty()) {
            all.rows += 1;
            let failed = row.spans().iter().any(|span| span.end == SpanEnd::Failed);
            all.failed += u64::from(failed);
        }
    }
    spanned
}
