//! Pages of rows, read from a fold that is kept.

use super::row::Status;
use super::{Block, Children, Outline, PLACE_BYTES, Row, VisitSet, Visits};
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use starbridge_machine::history::write_path;
use starbridge_machine::{Child, PathItem, StepPath};
use std::sync::Arc;

/// Which rows are wanted.
#[derive(Clone, Debug, Default)]
pub struct VisitFilter {
    /// Only rows with this status.
    pub status: Option<String>,
    /// Only rows of the step with this name.
    pub step: Option<String>,
    /// Only rows inside this place: their path begins with it.
    pub path: Option<Value>,
    /// Only rows entered after this event.
    pub after: u64,
}

/// A [`VisitFilter`] with the flow's numbers in place of names. `None` stands for everything.
struct Wanted {
    status: Option<u8>,
    step: Option<StepId>,
    place: StepPath,
    after: u64,
}

impl VisitFilter {
    /// Looks the names up. `None` if the flow does not have them, so that no row can be wanted.
    fn read(&self, flow: &Flow) -> Option<Wanted> {
        let status = |wanted: &String| Status::ALL.iter().position(|status| status.as_str() == wanted);
        Some(Wanted {
            status: match &self.status {
                Some(wanted) => Some(u8::try_from(status(wanted)?).ok()?),
                None => None,
            },
            step: match &self.step {
                Some(name) => Some(flow.step_named(name)?),
                None => None,
            },
            place: match &self.path {
                Some(path) => read_place(flow, path)?,
                None => StepPath::default(),
            },
            after: self.after,
        })
    }

    /// The rows that are wanted.
    pub fn of(&self, flow: &Flow, mut rows: Vec<Row>) -> Vec<Row> {
        match self.read(flow) {
            Some(wanted) => rows.retain(|row| wanted.has(row)),
            None => rows.clear(),
        }
        rows
    }
}

impl Wanted {
    fn has(&self, row: &Row) -> bool {
        row.event() > self.after
            && self.status.is_none_or(|status| status == row.own_status() as u8)
            && self.step.is_none_or(|step| step == row.number())
            && row.place().items().starts_with(self.place.items())
    }

    fn may_be_in(&self, block: &Outline) -> bool {
        self.status.is_none_or(|status| block.may_have_status(status))
            && self.step.is_none_or(|step| block.may_have_step(step))
            && block.may_be_inside(self.place.items())
    }
}

/// A place in the form of histories. `None` if the flow can't have it.
fn read_place(flow: &Flow, path: &Value) -> Option<StepPath> {
    let items = path.as_array()?.values().iter().map(|item| {
        let step = flow.step_named(item.get("step")?.as_str()?)?;
        let number = |key: &str| {
            let number = item.get(key)?.as_number()?.as_u64()?;
            u32::try_from(number).ok()
        };
        let child = number("iteration").map(Child::Iteration);
        let child = child.or_else(|| number("branch").map(Child::Branch));
        let child = child.unwrap_or_else(|| Child::Arm(number("arm")));
        Some(PathItem { step, child })
    });
    let place = StepPath::from(items.collect::<Option<Vec<PathItem>>>()?);
    (write_path(flow, &place) == *path).then_some(place)
}

impl Visits {
    /// Whether there were visits for which there was no room.
    pub fn is_full(&self) -> bool {
        self.more
    }

    /// The time of the latest event.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The visit that was entered with this event.
    pub fn row(&self, event: u64) -> Option<Arc<Row>> {
        self.rows.get(event)
    }

    /// All rows, in the order in which steps were entered.
    pub fn rows(&self) -> impl Iterator<Item = Arc<Row>> {
        self.rows.each()
    }

    /// The rows in blocks, from the first block that may have rows entered after an event.
    pub fn blocks_after(&self, event: u64) -> impl Iterator<Item = Block<'_>> {
        self.rows.after(event)
    }

    /// The states of the iterations or branches of the visit that was entered with this event; `None` if none has begun.
    pub fn children(&self, event: u64) -> Option<&Children> {
        self.children.get(&event)
    }

    /// All visits with iterations or branches, and their states.
    pub fn composites(&self) -> impl Iterator<Item = (u64, &Children)> {
        self.children.iter().map(|(event, children)| (*event, children))
    }

    /// The rows of an ended execution: open ones are given up.
    #[must_use]
    pub fn ended(&self) -> Self {
        let mut ended = self.clone();
        ended.end_all(self.time);
        ended
    }

    /// At most `limit` rows, and the event after which to go on if there are more.
    pub fn page(&self, flow: &Flow, filter: &VisitFilter, limit: usize) -> (Vec<Row>, Option<u64>) {
        let mut rows: Vec<Row> = Vec::new();
        let Some(wanted) = filter.read(flow) else {
            return (rows, None);
        };
        for block in self.rows.after(filter.after) {
            if block.outline().is_some_and(|outline| !wanted.may_be_in(outline)) {
                continue;
            }
            for row in block.rows().iter().filter(|row| wanted.has(row)) {
                if rows.len() >= limit {
                    let next = rows.last().map(Row::event);
                    return (rows, next);
                }
                rows.push(Row::clone(row));
            }
        }
        (rows, None)
    }

    /// The approximate memory of what was not counted before, in bytes.
    pub fn bytes(&self, counted: &mut VisitSet) -> usize {
        let children = self.children.iter().map(|(_, children)| children.bytes(counted));
        children.sum::<usize>()
            + self.children.bytes(counted, 0)
            + self.rows.bytes(counted)
            + self.open.bytes(counted, PLACE_BYTES)
            + self.calls.bytes(counted, 0)
            + self.undoing.bytes(counted, PLACE_BYTES)
    }
}
