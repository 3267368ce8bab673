//! A history as rows: one for each visit of a step.

mod blocks;
mod children;
mod pages;
mod row;
mod shared_map;
#[cfg(test)]
mod tests;

pub use blocks::{Block, Outline, Spanned};
pub use children::{ChildStatus, Children};
pub use pages::VisitFilter;
pub use row::{OpenWait, Row, Span, SpanEnd, SpanKind};
pub use shared_map::VisitSet;

use blocks::Rows;
use row::Status;
use shared_map::SharedMap;
use starbridge_flow::graph::{Budget, Flow, Root, StepId, StepKind};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Value;
use starbridge_machine::{Child, Event, EventKind, Exit, PathItem, StepPath};
use std::cmp::Ordering;
use std::sync::Arc;

/// The statuses of a visit. Only an undo can be `skipped`.
pub const STEP_STATUSES: [&str; 12] = [
    Status::Entered.as_str(),
    Status::Running.as_str(),
    Status::Waiting.as_str(),
    Status::Retrying.as_str(),
    Status::Polling.as_str(),
    Status::Manual.as_str(),
    Status::Succeeded.as_str(),
    Status::Failed.as_str(),
    Status::Caught.as_str(),
    Status::Cancelled.as_str(),
    Status::RolledBack.as_str(),
    Status::RollbackFailed.as_str(),
];

/// How many rows of visits that may reach the requested status are kept.
const MAX_ROWS: usize = 10_000;

/// How many calls are remembered without checking whether their visits are kept.
const CALLS: usize = 1_024;

/// The approximate memory of a place, apart from its entry, in bytes.
const PLACE_BYTES: usize = 64;

/// A step at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StepPlace {
    path: StepPath,
    step: StepId,
}

/// Places inside one composite stand together.
impl Ord for StepPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |item: &PathItem| (item.step, item.child);
        let (own, others) = (self.path.items().iter(), other.path.items().iter());
        own.map(key).cmp(others.map(key)).then(self.step.cmp(&other.step))
    }
}

impl PartialOrd for StepPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Rows in the order in which steps were entered. It takes all events of a history, one after the
/// other. A copy shares everything that does not change afterwards.
#[derive(Clone, Debug)]
pub struct Visits {
    /// By the number of their `StepEntered`.
    rows: Rows,
    /// The states of composites' children, by the visit of the composite.
    children: SharedMap<u64, Children>,
    /// The latest visit of each step and place that has not been left.
    open: SharedMap<StepPlace, u64>,
    /// The visit of each call, because undoing names the call.
    calls: SharedMap<u64, u64>,
    /// At this many calls, those of visits that are not kept are forgotten.
    calls_room: usize,
    /// The visit that is being undone at each place.
    undoing: SharedMap<StepPlace, u64>,
    /// If set, only visits with this status at the end.
    wanted: Option<String>,
    /// Only visits entered after this event.
    after: u64,
    /// How many rows there are at the end.
    limit: usize,
    /// How many rows are kept before the end.
    room: usize,
    /// The latest visit that was looked at.
    seen: u64,
    /// Whether there were visits without room.
    more: bool,
    /// 1, and one more with each redrive.
    run: u32,
    /// Since when it is paused.
    paused: Option<Timestamp>,
    /// Time of the latest event.
    time: Timestamp,
}

impl Visits {
    /// No rows yet, and room for `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            rows: Rows::default(),
            children: SharedMap::default(),
            open: SharedMap::default(),
            calls: SharedMap::default(),
            calls_room: CALLS,
            undoing: SharedMap::default(),
            wanted: None,
            after: 0,
            limit,
            room: limit,
            seen: 0,
            more: false,
            run: 1,
            paused: None,
            time: Timestamp::default(),
        }
    }

    /// Keeps only visits that have this status at the end. Others are dropped when they are over.
    /// If too many visits may still reach the status, later ones are left to the next page, so a
    /// page may have fewer rows than its limit.
    #[must_use]
    pub fn only(mut self, status: &str) -> Self {
        self.wanted = Some(status.to_owned());
        self.room = self.limit.max(MAX_ROWS);
        self
    }

    /// Only visits that were entered after this event: `next` of the page before.
    #[must_use]
    pub fn after(mut self, event: u64) -> Self {
        self.after = event;
        self
    }

    /// Takes the next event.
    pub fn see(&mut self, flow: &Flow, event: &Event) {
        if self.rows.names.is_empty() {
            self.rows.names = flow.steps.iter().map(|step| step.name.clone()).collect();
        }
        let before = std::mem::replace(&mut self.time, event.time);
        match &event.detail {
            EventKind::ExecutionRedriven { .. } | EventKind::RollbackSkipped { .. } => {
                self.end_all(before);
                self.run += 1;
            }
            EventKind::ExecutionPaused { .. } => self.paused = Some(event.time),
            EventKind::ExecutionResumed { .. } | EventKind::ExecutionStopped { .. } => self.end_pause(event.time),
            EventKind::ExecutionForked { .. } => self.postpone(flow, event.time.since(before)),
            _ => {}
        }
        let Some(step) = event.step else {
            return;
        };
        let path = event.path.clone();
        let place = StepPlace { path, step };
        if event.rollback {
            return self.see_undoing(&place, event);
        }
        self.reopen_around(&event.path);
        match &event.detail {
            EventKind::StepEntered { .. } => return self.enter(flow, event, place),
            EventKind::BranchExited(exit) | EventKind::IterationExited(exit) => {
                self.end_inside(&event.path, None, event.time);
                return self.child_exited(event, step, exit);
            }
            EventKind::StepFailed { .. } | EventKind::StepExited { .. } if has_inside(flow, step) => {
                self.end_inside(&event.path, Some(step), event.time);
            }
            _ => {}
        }
        self.see_row(&place, event);
        if let EventKind::StepStarted { input: Some(input), .. } = &event.detail {
            self.count_items(flow, &place, step, input);
        }
    }

    /// The number of items of a foreach whose attempt begins.
    fn count_items(&mut self, flow: &Flow, place: &StepPlace, step: StepId, input: &Value) {
        let Some(StepKind::Foreach(foreach)) = flow.step(step).map(|step| &step.kind) else {
            return;
        };
        let items = input
            .as_object()
            .map(|input| foreach.collection.find(Root::Object(input), &Budget::unlimited()));
        if let (Some(Ok(Some(Value::Array(items)))), Some(number)) = (items, self.open_visit(place)) {
            let total = Some(items.len() as u64);
            self.children.change(number, |children| children.total = total);
        }
    }

    /// The visit at a place that has not been left, if it is kept.
    fn open_visit(&self, place: &StepPlace) -> Option<u64> {
        self.open.get(place).copied().filter(|number| self.has(*number))
    }

    /// Whether the visit is kept. Only visits that a filter by status excludes are dropped.
    fn has(&self, number: u64) -> bool {
        self.wanted.is_none() || self.rows.get(number).is_some()
    }

    /// A branch or iteration ended: its number is the last one of the path.
    fn child_exited(&mut self, event: &Event, step: StepId, exit: &Exit) {
        let Some((last, around)) = event.path.items().split_last() else {
            return;
        };
        let (Child::Branch(number) | Child::Iteration(number)) = last.child else {
            return;
        };
        let status = match exit {
            Exit::Done => ChildStatus::Done,
            Exit::Failed(_) => ChildStatus::Failed,
            Exit::Cancelled => ChildStatus::Cancelled,
        };
        let path = StepPath::from(around.to_vec());
        if let Some(visit) = self.open_visit(&StepPlace { path, step }) {
            self.children
                .change(visit, |children| children.set(number, status, event.id));
        }
    }

    fn enter(&mut self, flow: &Flow, event: &Event, place: StepPlace) {
        if let Some(former) = self.open.get(&place).copied() {
            self.give_up(former, event.time);
        }
        let number = event.id.0;
        if number <= self.after {
            self.open.remove(&place);
            return;
        }
        if self.more || self.rows.len() >= self.room {
            self.more = true;
            self.open.remove(&place);
            return;
        }
        self.seen = number;
        self.rows.push(Row::entered(flow, event, place.step, self.run));
        self.open.insert(place, number);
    }

    fn give_up(&mut self, number: u64, time: Timestamp) {
        if let Some(row) = self.rows.get_mut(number) {
            row.give_up(time);
        }
        if let Some(children) = self.children.get_mut(&number) {
            children.give_up();
        }
    }

    fn see_row(&mut self, place: &StepPlace, event: &Event) {
        let Some(number) = self.open.get(place).copied() else {
            return;
        };
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        row.see(event);
        match &event.detail {
            EventKind::BranchEntered { branch: child, .. } | EventKind::IterationEntered { index: child, .. } => {
                let runs = |children: &mut Children| children.set(*child, ChildStatus::Running, event.id);
                self.children.change(number, runs);
            }
            EventKind::TaskScheduled(_) => {
                self.calls.insert(event.id.0, number);
                self.forget_calls();
            }
            EventKind::StepExited { .. } => {
                // A successful visit may be undone later.
                let undone = [Status::RolledBack.as_str(), Status::RollbackFailed.as_str()];
                let stays = self
                    .wanted
                    .as_deref()
                    .is_none_or(|wanted| wanted == row.status() || undone.contains(&wanted));
                if !stays {
                    self.rows.remove(number);
                    self.children.remove(&number);
                }
                self.open.remove(place);
            }
            _ => {}
        }
    }

    /// Forgets the calls of visits that are not kept, from time to time.
    fn forget_calls(&mut self) {
        if self.wanted.is_some() && self.calls.len() >= self.calls_room {
            let rows = &self.rows;
            self.calls.retain(|_, visit| rows.get(*visit).is_some());
            self.calls_room = (2 * self.calls.len()).max(CALLS);
        }
    }

    /// An event of undoing a visit: the first names the call that is undone.
    fn see_undoing(&mut self, place: &StepPlace, event: &Event) {
        if let EventKind::RollbackStarted { of } = &event.detail {
            match self.calls.get(&of.0).copied() {
                Some(number) => self.undoing.insert(place.clone(), number),
                None => self.undoing.remove(place),
            }
        }
        let number = self.undoing.get(place).copied();
        if let Some(row) = number.and_then(|number| self.rows.get_mut(number)) {
            row.see_undoing(event);
        }
    }

    /// Composites that were given up when the execution ended go on if a redrive continues
    /// something inside them.
    fn reopen_around(&mut self, path: &StepPath) {
        if self.run == 1 {
            return;
        }
        let run = self.run;
        for (depth, item) in path.items().iter().enumerate() {
            let path = StepPath::from(path.items().get(..depth).unwrap_or_default().to_vec());
            let number = self.open.get(&StepPlace { path, step: item.step }).copied();
            let left = |row: &Row| row.is_left_before(run);
            if let Some(row) = number.and_then(|number| self.rows.get_mut_if(number, left)) {
                row.go_on(run);
            }
        }
    }

    /// Cancels everything that is open inside a place, or inside a step there.
    fn end_inside(&mut self, path: &StepPath, step: Option<StepId>, time: Timestamp) {
        let depth = path.items().len();
        let first = StepPlace {
            path: match step {
                Some(step) => path.inside(step, Child::Branch(0)),
                None => path.clone(),
            },
            step: StepId(0),
        };
        let is_inside = |place: &StepPlace| {
            let items = place.path.items();
            items.starts_with(path.items())
                && step.is_none_or(|step| items.get(depth).is_some_and(|item| item.step == step))
        };
        let inside = self.open.from(&first).take_while(|(place, _)| is_inside(place));
        let inside: Vec<u64> = inside.map(|(_, number)| *number).collect();
        for number in inside {
            self.give_up(number, time);
        }
    }

    /// Nothing goes on any more.
    fn end_all(&mut self, time: Timestamp) {
        for number in self.rows.change_open(|row| row.give_up(time)) {
            if let Some(children) = self.children.get_mut(&number) {
                children.give_up();
            }
        }
    }

    fn end_pause(&mut self, now: Timestamp) {
        if let Some(since) = self.paused.take() {
            self.rows.change_open(|row| row.end_pause(now.since(since)));
        }
    }

    /// A fork waits for the time that was left.
    fn postpone(&mut self, flow: &Flow, left: Millis) {
        self.rows.change_open(|row| row.postpone(flow, left));
    }

    /// Packs visits that are over. Copies made after that share them.
    pub fn settle(&mut self) {
        self.rows.settle();
    }

    /// The rows, and the number after which to go on if there are more. `ended`: when the execution
    /// ended, if it has.
    pub fn into_rows(mut self, ended: Option<Timestamp>) -> (Vec<Row>, Option<u64>) {
        if let Some(ended) = ended {
            self.end_all(ended);
        }
        let wanted = self.wanted.as_deref();
        let rows = self.rows.each();
        let rows = rows.filter(|row| wanted.is_none_or(|wanted| wanted == row.status()));
        let mut rows: Vec<Row> = rows.map(Arc::unwrap_or_clone).collect();
        let next = match rows.len() > self.limit {
            true => {
                rows.truncate(self.limit);
                rows.last().map(Row::event)
            }
            false => self.more.then_some(self.seen),
        };
        (rows, next)
    }
}

/// Whether a step has lists inside.
fn has_inside(flow: &Flow, step: StepId) -> bool {
    let kind = flow.step(step).map(|step| &step.kind);
    matches!(
        kind,
        Some(StepKind::Choice(_) | StepKind::Parallel(_) | StepKind::Foreach(_))
    )
}

impl Status {
    /// Whether the visit is not over.
    fn is_open(self) -> bool {
        matches!(
            self,
            Self::Entered | Self::Running | Self::Waiting | Self::Retrying | Self::Polling | Self::Manual
        )
    }
}
