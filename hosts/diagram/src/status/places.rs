//! The status of each step at each of its places. A place where nothing is open takes four bytes.

use super::Status;
use starbridge_flow::graph::StepId;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Child;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

/// The composites around a step, from outside in.
pub(super) type Around = Vec<(StepId, Child)>;

/// A step in one place, with its latest state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StepPlace {
    pub(super) status: Status,
    pub(super) error: Option<Text>,
    pub(super) waits: Option<&'static str>,
    /// When it was entered.
    pub(super) entered: Option<Timestamp>,
    /// The arm that its choice took last.
    pub(super) arm: Option<Option<u32>>,
}

impl StepPlace {
    /// Whether only its status and error must be remembered.
    fn is_settled(&self) -> bool {
        !self.status.is_active() && self.waits.is_none() && self.entered.is_none() && self.arm.is_none()
    }
}

/// The number of iterations in a part of a column.
const PART: u32 = 256;

/// 0 stands for none. The lowest five bits are the number of the status, from 1, the others that of the error, from 1.
type Part = [u32; PART as usize];

/// The settled places of a step in all iterations of one foreach.
#[derive(Clone, Default)]
struct Column(BTreeMap<u32, Arc<Part>>);

/// The step, and the composites around it. The innermost iteration has the number 0 here.
type ColumnKey = (StepId, Around);

/// The states of all places. A copy shares the parts of columns that do not change afterwards.
#[derive(Clone, Default)]
pub(super) struct Places {
    /// The places where something is open.
    moving: BTreeMap<(Around, StepId), StepPlace>,
    columns: BTreeMap<ColumnKey, Column>,
    /// The names of errors: settled places have their numbers.
    errors: Arc<Vec<Text>>,
    /// How many places of each step have each status.
    counts: BTreeMap<(StepId, Status), u64>,
}

/// A column and the number in it.
fn cell_of(step: StepId, path: &[(StepId, Child)]) -> (ColumnKey, u32) {
    let mut around = path.to_vec();
    let mut number = 0;
    if let Some((_, child)) = around
        .iter_mut()
        .rfind(|(_, child)| matches!(child, Child::Iteration(_)))
        && let Child::Iteration(own) = child
    {
        number = std::mem::take(own);
    }
    ((step, around), number)
}

impl Column {
    fn get(&self, number: u32) -> u32 {
        let part = self.0.get(&(number / PART));
        part.map_or(0, |part| part[(number % PART) as usize])
    }

    fn set(&mut self, number: u32, cell: u32) {
        if cell == self.get(number) {
            return;
        }
        let part = self.0.entry(number / PART);
        let part = part.or_insert_with(|| Arc::new([0; PART as usize]));
        Arc::make_mut(part)[(number % PART) as usize] = cell;
    }

    /// The cells with their numbers, from the last to the first.
    fn backwards(&self) -> impl Iterator<Item = (u32, u32)> {
        let parts = self.0.iter().rev();
        parts.flat_map(|(part, cells)| {
            (part * PART..)
                .zip(cells.iter().copied())
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
        })
    }
}

fn status_in(cell: u32) -> Option<Status> {
    let number = (cell & 31).checked_sub(1)?;
    Status::ALL.get(number as usize).copied()
}

impl Places {
    fn cell(&mut self, place: &StepPlace) -> u32 {
        let status = Status::ALL.iter().position(|status| *status == place.status);
        let error = place.error.as_ref().map_or(0, |error| {
            let known = self.errors.iter().position(|known| known == error);
            let known = known.unwrap_or_else(|| {
                Arc::make_mut(&mut self.errors).push(error.clone());
                self.errors.len() - 1
            });
            known + 1
        });
        (error << 5 | (status.unwrap_or(0) + 1)) as u32
    }

    fn place_in(&self, cell: u32) -> Option<StepPlace> {
        Some(StepPlace {
            status: status_in(cell)?,
            error: self.error_in(cell),
            ..StepPlace::default()
        })
    }

    fn error_in(&self, cell: u32) -> Option<Text> {
        let number = (cell >> 5).checked_sub(1)?;
        self.errors.get(number as usize).cloned()
    }

    /// Changes a place. It begins as not reached.
    pub(super) fn change(&mut self, step: StepId, path: &[(StepId, Child)], change: impl FnOnce(&mut StepPlace)) {
        let key = (path.to_vec(), step);
        if let Some(place) = self.moving.get_mut(&key) {
            let before = place.status;
            change(place);
            let (after, settled) = (place.status, place.is_settled());
            self.count(step, before, after);
            if settled && let Some(place) = self.moving.remove(&key) {
                self.settle(step, path, &place);
            }
            return;
        }
        let (column, number) = cell_of(step, path);
        let cell = self.columns.get(&column).map_or(0, |column| column.get(number));
        let former = self.place_in(cell);
        let mut place = former.clone().unwrap_or_default();
        change(&mut place);
        match former {
            Some(former) => self.count(step, former.status, place.status),
            None => *self.counts.entry((step, place.status)).or_default() += 1,
        }
        if place.is_settled() {
            return self.settle(step, path, &place);
        }
        if let Some(column) = self.columns.get_mut(&column).filter(|_| cell != 0) {
            column.set(number, 0);
        }
        self.moving.insert(key, place);
    }

    fn settle(&mut self, step: StepId, path: &[(StepId, Child)], place: &StepPlace) {
        let cell = self.cell(place);
        let (column, number) = cell_of(step, path);
        self.columns.entry(column).or_default().set(number, cell);
    }

    fn count(&mut self, step: StepId, before: Status, after: Status) {
        if before == after {
            return;
        }
        if let Some(count) = self.counts.get_mut(&(step, before)) {
            *count -= 1;
        }
        *self.counts.entry((step, after)).or_default() += 1;
    }

    /// Whether a place has this status.
    pub(super) fn any(&self, status: Status) -> bool {
        let mut counts = self.counts.iter();
        counts.any(|((_, own), count)| *own == status && *count > 0)
    }

    /// The number of places at which a step has each status.
    pub(super) fn statuses(&self, step: StepId) -> BTreeMap<Status, u64> {
        let own = self.counts.range((step, Status::NotReached)..=(step, Status::Running));
        let own = own.filter(|(_, count)| **count > 0);
        own.map(|((_, status), count)| (*status, *count)).collect()
    }

    /// Marks running steps there as cancelled: everything below the path, or only what is inside
    /// one step.
    pub(super) fn cancel_inside(&mut self, path: &[(StepId, Child)], step: Option<StepId>) {
        let mut from = path.to_vec();
        from.extend(step.map(|step| (step, Child::Branch(0))));
        let inside = self
            .moving
            .range((Bound::Included((from, StepId(0))), Bound::Unbounded))
            .take_while(|((place, _), _)| {
                place.starts_with(path)
                    && step.is_none_or(|step| place.get(path.len()).is_some_and(|(around, _)| *around == step))
            });
        let active = inside.filter(|(_, place)| place.status.is_active());
        let active: Vec<(Around, StepId)> = active.map(|(key, _)| key.clone()).collect();
        for (around, step) in active {
            self.change(step, &around, |place| {
                *place = StepPlace {
                    status: Status::Cancelled,
                    ..StepPlace::default()
                };
            });
        }
    }

    /// The error of the last place of a step that has this status and an error, and what the last one waits for.
    pub(super) fn latest(&self, step: StepId, status: Status) -> (Option<Text>, Option<&'static str>) {
        let may_fail = matches!(status, Status::Caught | Status::Failed | Status::UndoFailed);
        if !may_fail && !status.is_active() {
            return (None, None);
        }
        let own = self.moving.iter().rev();
        let mut own = own.filter(|((_, of), place)| *of == step && place.status == status);
        let last = own.next();
        let waits = last.and_then(|(_, place)| place.waits);
        let failed = last.into_iter().chain(own).find(|(_, place)| place.error.is_some());
        let settled = match may_fail {
            true => self.latest_settled(step, status),
            false => None,
        };
        let error = match (failed, settled) {
            (Some((moving, _)), Some((around, cell))) if around > moving.0 => self.error_in(cell),
            (Some((_, place)), _) => place.error.clone(),
            (None, settled) => settled.and_then(|(_, cell)| self.error_in(cell)),
        };
        (error, waits)
    }

    /// The last settled place of a step with this status and an error.
    fn latest_settled(&self, step: StepId, status: Status) -> Option<(Around, u32)> {
        let columns = self.columns.range((step, Vec::new())..(StepId(step.0 + 1), Vec::new()));
        let cells = columns.rev().flat_map(|((_, around), column)| {
            let cells = column.backwards();
            cells.map(move |(number, cell)| (around, number, cell))
        });
        let mut failed = cells.filter(|(_, _, cell)| cell >> 5 != 0 && status_in(*cell) == Some(status));
        let (around, number, cell) = failed.next()?;
        let mut around = around.clone();
        let innermost = around
            .iter_mut()
            .rfind(|(_, child)| matches!(child, Child::Iteration(_)));
        if let Some((_, child)) = innermost {
            *child = Child::Iteration(number);
        }
        Some((around, cell))
    }

    /// The approximate memory of what was not counted before, in bytes.
    pub(super) fn bytes(&self, counted: &mut HashSet<usize>) -> usize {
        const ENTRY: usize = 48;
        let around = |around: &Around| around.len() * size_of::<(StepId, Child)>();
        let moving = self
            .moving
            .keys()
            .map(|(path, _)| around(path) + size_of::<StepPlace>() + ENTRY);
        let columns = self.columns.iter().map(|((_, path), column)| {
            let fresh = column
                .0
                .values()
                .filter(|part| counted.insert(Arc::as_ptr(part).addr()));
            around(path) + ENTRY + column.0.len() * ENTRY + fresh.count() * size_of::<Part>()
        });
        let columns: usize = columns.sum();
        moving.sum::<usize>() + columns + self.counts.len() * ENTRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same without columns and numbers.
    #[derive(Clone, Default)]
    struct Naive(BTreeMap<(Around, StepId), StepPlace>);

    impl Naive {
        fn marks(&self, step: StepId) -> (BTreeMap<Status, u64>, Option<Text>, Option<&'static str>) {
            let (mut counts, mut latest) = (BTreeMap::new(), (None, None));
            let own = || {
                self.0
                    .iter()
                    .filter(|((_, own), _)| *own == step)
                    .map(|(_, place)| place)
            };
            own().for_each(|place| *counts.entry(place.status).or_default() += 1);
            let most = own().map(|place| place.status).max();
            for place in own().filter(|place| Some(place.status) == most) {
                latest = (place.error.clone().or(latest.0), place.waits);
            }
            (counts, latest.0, latest.1)
        }

        fn cancel(&mut self, path: &[(StepId, Child)], step: Option<StepId>) {
            let inside = |around: &Around| {
                around.starts_with(path)
                    && step.is_none_or(|step| around.get(path.len()).is_some_and(|(own, _)| *own == step))
            };
            for (_, place) in self.0.iter_mut().filter(|((around, _), _)| inside(around)) {
                if place.status.is_active() {
                    *place = StepPlace {
                        status: Status::Cancelled,
                        ..StepPlace::default()
                    };
                }
            }
        }
    }

    fn same(places: &Places, naive: &Naive) {
        for step in (0..4).map(StepId) {
            let statuses = places.statuses(step);
            let most = statuses.last_key_value().map(|(status, _)| *status);
            let (error, waits) = most.map_or((None, None), |most| places.latest(step, most));
            assert_eq!((statuses, error, waits), naive.marks(step), "{step:?}");
        }
        let undo_failed = naive.0.values().any(|place| place.status == Status::UndoFailed);
        assert_eq!(places.any(Status::UndoFailed), undo_failed);
    }

    #[test]
    fn agree_with_a_map_of_all_places_at_each_change() {
        let mut random = 3_u64;
        let mut below = |most: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        let (mut places, mut naive) = (Places::default(), Naive::default());
        let mut copies = Vec::new();
        for count in 0..2_000 {
            let item = |step: u32, number: u64| (StepId(step), Child::Iteration(number as u32));
            let (outer, inner) = (item(9, below(3)), item(8, below(700)));
            let (step, path) = match below(4) {
                0 => (0, vec![]),
                1 => (1, vec![outer]),
                2 => (2, vec![outer, inner]),
                _ => (3, vec![outer, inner, (StepId(7), Child::Arm(None))]),
            };
            let (kind, error) = (below(9), Some(Text::from(format!("E{}", below(3)))));
            let change = |place: &mut StepPlace| match kind {
                0 | 1 => {
                    *place = StepPlace {
                        status: Status::Running,
                        entered: Some(Timestamp(count)),
                        ..StepPlace::default()
                    }
                }
                2 => (place.status, place.waits) = (Status::Waiting, Some("waiting")),
                3 => (place.status, place.error, place.waits) = (Status::Failed, error.clone(), None),
                4 => (place.status, place.error, place.waits) = (Status::UndoFailed, error.clone(), None),
                5 => place.arm = Some(None),
                6 => {
                    (place.entered, place.arm) = (None, None);
                    if place.status == Status::Failed {
                        place.status = Status::Caught;
                    }
                }
                _ => (place.status, place.error, place.waits) = (Status::Succeeded, None, None),
            };
            if kind == 8 {
                let step = (count % 2 == 0).then_some(StepId(8));
                places.cancel_inside(&path[..path.len().min(1)], step);
                naive.cancel(&path[..path.len().min(1)], step);
            } else {
                places.change(StepId(step), &path, change);
                change(naive.0.entry((path, StepId(step))).or_default());
            }
            same(&places, &naive);
            if count % 400 == 0 {
                copies.push((places.clone(), naive.clone()));
            }
        }
        copies.iter().for_each(|(places, naive)| same(places, naive));
    }
}
