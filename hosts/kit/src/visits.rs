//! A history as rows: one for each visit of a step.

use crate::described::object;
use starbridge_fdl::graph::Flow;
use starbridge_fdl::value::{Text, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{Detail, Event, Path};
use std::collections::HashMap;

/// Rows in the order steps were entered.
#[derive(Debug)]
pub struct Visits {
    rows: Vec<Row>,
    /// The open visit of each step and place.
    open: HashMap<(u32, String), usize>,
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
    failure: Option<(Text, Text)>,
}

impl Visits {
    /// No rows, and room for so many.
    pub fn new(limit: usize) -> Self {
        Self {
            rows: Vec::new(),
            open: HashMap::new(),
            limit,
        }
    }

    /// Takes the next event. Answers whether there is room for more.
    pub fn see(&mut self, flow: &Flow, event: &Event) -> bool {
        let Some(step) = event.step else {
            return true;
        };
        let key = (step.0, place(&event.path));
        if event.detail == Detail::StepEntered {
            if self.rows.len() >= self.limit {
                return false;
            }
            self.open.insert(key, self.rows.len());
            self.rows.push(Row {
                event: event.id.0,
                step: flow.step(step).map(|step| step.name.clone()).unwrap_or_default(),
                path: write_path(flow, &event.path),
                status: "entered",
                attempts: 0,
                entered: event.time.to_string(),
                ended: None,
                failure: None,
            });
            return true;
        }
        let Some(row) = self.open.get(&key).and_then(|index| self.rows.get_mut(*index)) else {
            return true;
        };
        match &event.detail {
            Detail::StepStarted { attempt, .. } => {
                row.attempts = *attempt;
                row.status = "running";
            }
            Detail::WaitStarted { .. } => row.status = "waiting",
            Detail::RetryScheduled { .. } => row.status = "retrying",
            Detail::PollScheduled { .. } => row.status = "polling",
            Detail::ManualRequested(_) => row.status = "manual",
            Detail::StepSucceeded { .. } => row.status = "succeeded",
            Detail::StepFailed { failure, .. } => {
                row.status = "failed";
                row.failure = Some((failure.error.clone(), failure.cause.clone()));
                row.ended = Some(event.time.to_string());
            }
            Detail::TaskCancelled { .. } => {
                row.status = "cancelled";
                row.ended = Some(event.time.to_string());
            }
            Detail::RollbackSucceeded => row.status = "rolledBack",
            Detail::RollbackFailed { .. } => row.status = "rollbackFailed",
            Detail::StepExited { caught, .. } => {
                if row.status == "failed" || caught.is_some() {
                    row.status = "caught";
                }
                row.ended = Some(event.time.to_string());
            }
            _ => {}
        }
        true
    }

    /// The rows as JSON.
    pub fn into_rows(self) -> Vec<Value> {
        let row = |row: Row| {
            let (error, cause) = row.failure.unzip();
            let text = |text: Option<Text>| text.map(Value::from).unwrap_or_default();
            object([
                ("event", row.event.into()),
                ("step", row.step.into()),
                ("path", row.path),
                ("status", row.status.into()),
                ("attempts", row.attempts.into()),
                ("enteredTime", row.entered.into()),
                ("endedTime", row.ended.map(Value::from).unwrap_or_default()),
                ("error", text(error)),
                ("cause", text(cause)),
            ])
        };
        self.rows.into_iter().map(row).collect()
    }
}

fn place(path: &Path) -> String {
    let mut place = String::new();
    for item in path.items() {
        place.push_str(&format!("{}:{:?}/", item.step.0, item.child));
    }
    place
}
