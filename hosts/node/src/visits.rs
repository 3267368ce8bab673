//! A history as rows: one for each visit of a step.

use crate::described::object;
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{Event, EventKind, Path};
use std::collections::{BTreeMap, HashMap};

/// The statuses of a visit.
pub const STATUSES: [&str; 12] = [
    "entered",
    "running",
    "waiting",
    "retrying",
    "polling",
    "manual",
    "succeeded",
    "failed",
    "caught",
    "cancelled",
    "rolledBack",
    "rollbackFailed",
];

/// The rows, in the order in which steps were entered.
#[derive(Debug)]
pub struct Visits {
    /// By the number of their `StepEntered`.
    rows: BTreeMap<u64, Row>,
    /// The open visit of each step and place.
    open: HashMap<(u32, String), u64>,
    /// If set, only visits with this status at the end.
    wanted: Option<String>,
    limit: usize,
}

#[derive(Debug)]
struct Row {
    event: u64,
    step: Text,
    path: Value,
    status: &'static str,
    attempts: u32,
    entered: String,
    ended: Option<String>,
    /// Until when it waits: for a retry, for the next call of a poll, or for a time.
    until: Option<String>,
    failure: Option<(Text, Text)>,
}

impl Visits {
    /// No rows yet, and room for `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            rows: BTreeMap::new(),
            open: HashMap::new(),
            wanted: None,
            limit,
        }
    }

    /// Keeps only visits that have this status at the end. Others are dropped when they are over.
    #[must_use]
    pub fn only(mut self, status: &str) -> Self {
        self.wanted = Some(status.to_owned());
        self
    }

    /// Takes the next event. Returns whether there is room for more rows.
    pub fn see(&mut self, flow: &Flow, event: &Event) -> bool {
        let Some(step) = event.step else {
            return true;
        };
        let key = (step.0, place(&event.path));
        if event.detail == EventKind::StepEntered {
            if self.wanted.is_none() && self.rows.len() >= self.limit {
                return false;
            }
            self.open.insert(key, event.id.0);
            let row = Row {
                event: event.id.0,
                step: flow.step(step).map(|step| step.name.clone()).unwrap_or_default(),
                path: write_path(flow, &event.path),
                status: "entered",
                attempts: 0,
                entered: event.time.to_string(),
                ended: None,
                until: None,
                failure: None,
            };
            self.rows.insert(event.id.0, row);
            return true;
        }
        let Some(row) = self.open.get(&key).and_then(|number| self.rows.get_mut(number)) else {
            return true;
        };
        row.see(event);
        let over = matches!(event.detail, EventKind::StepExited { .. });
        if over && self.wanted.as_deref().is_some_and(|wanted| wanted != row.status) {
            let number = row.event;
            self.rows.remove(&number);
            self.open.remove(&key);
        }
        true
    }

    /// The rows as JSON.
    pub fn into_rows(self) -> Vec<Value> {
        let wanted = self.wanted;
        let rows = self.rows.into_values();
        rows.filter(|row| wanted.as_deref().is_none_or(|wanted| wanted == row.status))
            .take(self.limit)
            .map(Row::into_value)
            .collect()
    }
}

impl Row {
    fn see(&mut self, event: &Event) {
        let row = self;
        match &event.detail {
            EventKind::StepStarted { attempt, .. } => {
                row.attempts = *attempt;
                row.status = "running";
                row.until = None;
            }
            EventKind::WaitStarted { until } => row.wait("waiting", *until),
            EventKind::RetryScheduled { due, .. } => row.wait("retrying", *due),
            EventKind::PollScheduled { due, .. } => row.wait("polling", *due),
            EventKind::TaskScheduled(_) => {
                row.status = "running";
                row.until = None;
            }
            EventKind::ManualRequested(_) => row.status = "manual",
            EventKind::StepSucceeded { .. } => row.status = "succeeded",
            EventKind::StepFailed { failure, .. } => {
                row.status = "failed";
                row.failure = Some((failure.error.clone(), failure.cause.clone()));
                row.ended = Some(event.time.to_string());
            }
            EventKind::TaskCancelled { .. } => {
                row.status = "cancelled";
                row.ended = Some(event.time.to_string());
            }
            EventKind::RollbackSucceeded => row.status = "rolledBack",
            EventKind::RollbackFailed { .. } => row.status = "rollbackFailed",
            EventKind::StepExited { caught, .. } => {
                if row.status == "failed" || caught.is_some() {
                    row.status = "caught";
                }
                row.ended = Some(event.time.to_string());
                row.until = None;
            }
            _ => {}
        }
    }

    fn wait(&mut self, status: &'static str, until: Timestamp) {
        self.status = status;
        self.until = Some(until.to_string());
        self.ended = None;
    }

    fn into_value(self) -> Value {
        let (error, cause) = self.failure.unzip();
        let text = |text: Option<Text>| text.map(Value::from).unwrap_or_default();
        object([
            ("event", self.event.into()),
            ("step", self.step.into()),
            ("path", self.path),
            ("status", self.status.into()),
            ("attempts", self.attempts.into()),
            ("enteredTime", self.entered.into()),
            ("endedTime", self.ended.map(Value::from).unwrap_or_default()),
            ("waitsUntil", self.until.map(Value::from).unwrap_or_default()),
            ("error", text(error)),
            ("cause", text(cause)),
        ])
    }
}

fn place(path: &Path) -> String {
    let mut place = String::new();
    for item in path.items() {
        place.push_str(&format!("{}:{:?}/", item.step.0, item.child));
    }
    place
}
