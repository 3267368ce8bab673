//! A history as rows: one for each visit of a step.

mod pages;
mod row;

pub use pages::VisitFilter;
pub use row::{ChildStatus, Children, OpenWait, Row, Span, SpanEnd, SpanKind};

use row::Status;
use starbridge_flow::graph::{Budget, Flow, Root, StepId, StepKind};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Value;
use starbridge_machine::{Child, Event, EventKind, Exit, StepPath};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
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

/// A step at its place: the composites around it as text, and its number. Places inside a composite
/// begin with the composite's own place and number.
type StepPlace = (String, u32);

/// Rows in the order in which steps were entered. It takes all events of a history, one after the
/// other. A copy shares its rows.
#[derive(Clone, Debug)]
pub struct Visits {
    /// By the number of their `StepEntered`.
    rows: BTreeMap<u64, Arc<Row>>,
    /// The latest visit of each step and place that has not been left.
    open: BTreeMap<StepPlace, u64>,
    /// The visit of each call, because undoing names the call.
    calls: HashMap<u64, u64>,
    /// At this many calls, those of visits that are not kept are forgotten.
    calls_room: usize,
    /// The visit that is being undone at each place.
    undoing: HashMap<StepPlace, u64>,
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
            rows: BTreeMap::new(),
            open: BTreeMap::new(),
            calls: HashMap::new(),
            calls_room: CALLS,
            undoing: HashMap::new(),
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
        let path = place(&event.path);
        if event.rollback {
            return self.see_undoing(&(path, step.0), event);
        }
        self.reopen_around(&event.path);
        match &event.detail {
            EventKind::StepEntered { .. } => return self.enter(flow, event, step, path),
            EventKind::BranchExited(exit) | EventKind::IterationExited(exit) => {
                self.end_inside(&path, event.time);
                return self.child_exited(event, step, exit);
            }
            EventKind::StepFailed { .. } | EventKind::StepExited { .. } => {
                self.end_inside(&inside(&path, step), event.time);
            }
            _ => {}
        }
        let key = (path, step.0);
        self.see_row(&key, event);
        if let EventKind::StepStarted { input: Some(input), .. } = &event.detail {
            self.count_items(flow, &key, step, input);
        }
    }

    /// The number of items of a foreach whose attempt begins.
    fn count_items(&mut self, flow: &Flow, key: &StepPlace, step: StepId, input: &Value) {
        let Some(StepKind::Foreach(foreach)) = flow.step(step).map(|step| &step.kind) else {
            return;
        };
        let items = input
            .as_object()
            .map(|input| foreach.collection.find(Root::Object(input), &Budget::unlimited()));
        let row = self.open.get(key).and_then(|number| row_mut(&mut self.rows, *number));
        if let (Some(Ok(Some(Value::Array(items)))), Some(row)) = (items, row) {
            row.children_mut().total = Some(items.len() as u64);
        }
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
        let key = (place(&StepPath::from(around.to_vec())), step.0);
        if let Some(row) = self.open.get(&key).and_then(|number| row_mut(&mut self.rows, *number)) {
            row.children_mut().set(number, status, event.id);
        }
    }

    fn enter(&mut self, flow: &Flow, event: &Event, step: StepId, path: String) {
        let key = (path, step.0);
        if let Some(row) = self.open.get(&key).and_then(|number| row_mut(&mut self.rows, *number)) {
            row.give_up(event.time);
        }
        let number = event.id.0;
        if number <= self.after {
            self.open.remove(&key);
            return;
        }
        if self.more || self.rows.len() >= self.room {
            self.more = true;
            self.open.remove(&key);
            return;
        }
        self.seen = number;
        self.open.insert(key, number);
        self.rows
            .insert(number, Arc::new(Row::entered(flow, event, step, self.run)));
    }

    fn see_row(&mut self, key: &StepPlace, event: &Event) {
        let Some((number, row)) = self
            .open
            .get(key)
            .and_then(|number| Some((*number, row_mut(&mut self.rows, *number)?)))
        else {
            return;
        };
        row.see(event);
        match &event.detail {
            EventKind::BranchEntered { branch: child, .. } | EventKind::IterationEntered { index: child, .. } => {
                row.children_mut().set(*child, ChildStatus::Running, event.id);
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
                    self.rows.remove(&number);
                }
                self.open.remove(key);
            }
            _ => {}
        }
    }

    /// Forgets the calls of visits that are not kept, from time to time.
    fn forget_calls(&mut self) {
        if self.calls.len() >= self.calls_room {
            let rows = &self.rows;
            self.calls.retain(|_, visit| rows.contains_key(visit));
            self.calls_room = (2 * self.calls.len()).max(CALLS);
        }
    }

    /// An event of undoing a visit: the first names the call that is undone.
    fn see_undoing(&mut self, key: &StepPlace, event: &Event) {
        if let EventKind::RollbackStarted { of } = &event.detail {
            match self.calls.get(&of.0) {
                Some(number) => self.undoing.insert(key.clone(), *number),
                None => self.undoing.remove(key),
            };
        }
        if let Some(row) = self
            .undoing
            .get(key)
            .and_then(|number| row_mut(&mut self.rows, *number))
        {
            row.see_undoing(event);
        }
    }

    /// Composites that were given up when the execution ended go on if a redrive continues
    /// something inside them.
    fn reopen_around(&mut self, path: &StepPath) {
        if self.run == 1 {
            return;
        }
        let mut around = String::new();
        for item in path.items() {
            let key = (around, item.step.0);
            if let Some(row) = self.open.get(&key).and_then(|number| row_mut(&mut self.rows, *number)) {
                row.go_on(self.run);
            }
            around = key.0;
            write_item(&mut around, item);
        }
    }

    /// Everything open inside a place was given up.
    fn end_inside(&mut self, place: &str, time: Timestamp) {
        let inside = self
            .open
            .range((place.to_owned(), 0)..)
            .take_while(|((path, _), _)| path.starts_with(place));
        for (_, number) in inside {
            if let Some(row) = row_mut(&mut self.rows, *number) {
                row.give_up(time);
            }
        }
    }

    /// Nothing goes on any more.
    fn end_all(&mut self, time: Timestamp) {
        let open = self.rows.values_mut().filter(|row| row.is_open());
        open.for_each(|row| Arc::make_mut(row).give_up(time));
    }

    fn end_pause(&mut self, now: Timestamp) {
        if let Some(since) = self.paused.take() {
            let open = self.rows.values_mut().filter(|row| row.is_open());
            open.for_each(|row| Arc::make_mut(row).end_pause(now.since(since)));
        }
    }

    /// A fork waits for the time that was left.
    fn postpone(&mut self, flow: &Flow, left: Millis) {
        let open = self.rows.values_mut().filter(|row| row.is_open());
        open.for_each(|row| Arc::make_mut(row).postpone(flow, left));
    }

    /// The rows, and the number after which to go on if there are more. `ended`: when the execution
    /// ended, if it has.
    pub fn into_rows(mut self, ended: Option<Timestamp>) -> (Vec<Row>, Option<u64>) {
        if let Some(ended) = ended {
            self.end_all(ended);
        }
        let wanted = self.wanted;
        let mut rows: Vec<Row> = self
            .rows
            .into_values()
            .filter(|row| wanted.as_deref().is_none_or(|wanted| wanted == row.status()))
            .map(Arc::unwrap_or_clone)
            .collect();
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

/// A row that is about to change.
fn row_mut(rows: &mut BTreeMap<u64, Arc<Row>>, number: u64) -> Option<&mut Row> {
    rows.get_mut(&number).map(Arc::make_mut)
}

fn place(path: &StepPath) -> String {
    let mut place = String::new();
    for item in path.items() {
        write_item(&mut place, item);
    }
    place
}

fn write_item(place: &mut String, item: &starbridge_machine::PathItem) {
    // Writing to a string can't fail.
    let _ = write!(place, "{}:{:?}/", item.step.0, item.child);
}

/// The beginning of places inside a step.
fn inside(path: &str, step: StepId) -> String {
    format!("{path}{}:", step.0)
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
