//! The laws that hold for every history, in any case.

use starbridge_flow::time::Timestamp;
use starbridge_machine::{Event, EventId, EventKind};
use std::collections::BTreeMap;

/// The facts that a history has about one of its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Events that end it: a result, a failure, a timeout, a cancellation.
    pub ends: u32,
    /// Whether it ended because an answer came.
    pub answered: bool,
}

/// The calls of a history, by their number, and the outcome of each.
pub fn calls(events: &[Event]) -> BTreeMap<EventId, Fate> {
    let mut calls: BTreeMap<EventId, Fate> = BTreeMap::new();
    for event in events {
        let (of, answered) = match &event.detail {
            EventKind::TaskScheduled(_) => {
                calls.insert(event.id, Fate::default());
                continue;
            }
            EventKind::TaskSucceeded { .. } | EventKind::TaskFailed { .. } => (event.caused_by, true),
            EventKind::TaskSubmitFailed { .. } | EventKind::TaskTimedOut { .. } => (event.caused_by, false),
            EventKind::TaskCancelled { of, .. } => (*of, false),
            _ => continue,
        };
        // A wrong number shows as a call that never was.
        let fate = calls.entry(of).or_insert(Fate {
            ends: 100,
            answered: false,
        });
        fate.ends += 1;
        fate.answered |= answered;
    }
    calls
}

/// The faults in the history of an ended execution.
pub fn broken(execution: &str, events: &[Event]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut problem = |event: EventId, what: String| problems.push(format!("{execution}: event {event}: {what}"));
    let mut due: BTreeMap<EventId, Timestamp> = BTreeMap::new();
    let mut last = Timestamp(0);
    for (number, event) in (1..).map(EventId).zip(events) {
        if event.id != number {
            problem(number, format!("stands as event {}: numbers are not dense", event.id));
        }
        if event.caused_by >= event.id {
            problem(number, format!("is caused by a later one, {}", event.caused_by));
        }
        if event.time < last {
            problem(number, "is older than the one before".to_owned());
        }
        last = event.time;
        match &event.detail {
            EventKind::ExecutionStarted(_) if number != EventId(1) => problem(number, "starts again".to_owned()),
            EventKind::WaitStarted { until: at }
            | EventKind::RetryScheduled { due: at, .. }
            | EventKind::PollScheduled { due: at, .. } => drop(due.insert(event.id, *at)),
            EventKind::TaskScheduled(scheduled) => {
                if let Some(at) = scheduled.timeout_at {
                    due.insert(event.id, at);
                }
            }
            EventKind::TimerFired { of } => match due.get(of) {
                Some(at) if event.time < *at => problem(number, format!("fires before {at}")),
                _ => {}
            },
            EventKind::TaskTimedOut { error, .. } if error.as_str() == "FnF.TaskTimeout" => {
                match due.get(&event.caused_by) {
                    Some(at) if event.time < *at => problem(number, format!("times out before {at}")),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    for (call, fate) in calls(events) {
        match fate.ends {
            1 => {}
            0 => problem(call, "the call was never brought to its end".to_owned()),
            100.. => problem(call, "a call ends that never was".to_owned()),
            ends => problem(call, format!("the call has {ends} ends")),
        }
    }
    problems
}
