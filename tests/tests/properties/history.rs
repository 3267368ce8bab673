//! The promises for every history, checked from its events alone.

use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::time::Timestamp;
use starbridge_machine::{Child, Event, EventId, EventKind, StepPath, history::type_name};
use std::collections::BTreeMap;

/// A path that can be a key.
type Way = Vec<(StepId, Child)>;

/// Says what is wrong with a history.
pub fn check(flow: &Flow, events: &[Event], status: &str) -> Result<(), String> {
    let mut history = History::default();
    for (index, event) in (1..).zip(events) {
        if event.id != EventId(index) {
            return Err(format!(
                "the numbers are not dense: {} follows on {}",
                event.id,
                index - 1
            ));
        }
        let told = history.take(event);
        told.map_err(|problem| {
            let step = event.step.and_then(|step| flow.step(step));
            let name = step.map(|step| step.name.to_string()).unwrap_or_default();
            format!(
                "{problem}: event {} ({} of `{name}`)",
                event.id,
                type_name(&event.detail)
            )
        })?;
    }
    if let Some((call, _)) = history.calls.iter().find(|(_, over)| **over != 1) {
        return Err(format!("a call has no end: {call}"));
    }
    if status == "Succeeded" && !history.open.is_empty() {
        return Err(format!(
            "an execution succeeded with steps still open: {:?}",
            history.open
        ));
    }
    Ok(())
}

/// The known facts at an event.
#[derive(Default)]
struct History {
    time: Timestamp,
    /// The step that is open in each list.
    open: BTreeMap<Way, StepId>,
    /// Branches and iterations that have begun and not ended.
    begun: Vec<Way>,
    /// How often each call came to an end.
    calls: BTreeMap<EventId, u32>,
    /// When what an event set is due.
    due: BTreeMap<EventId, Timestamp>,
}

impl History {
    fn take(&mut self, event: &Event) -> Result<(), String> {
        if event.time < self.time {
            return Err("time goes back".to_owned());
        }
        self.time = event.time;
        if event.caused_by >= event.id {
            return Err("an event follows from a later one".to_owned());
        }
        self.take_timer(event)?;
        self.take_call(event)?;
        if event.rollback { Ok(()) } else { self.take_step(event) }
    }

    /// Timers are never early.
    fn take_timer(&mut self, event: &Event) -> Result<(), String> {
        let due = match &event.detail {
            EventKind::WaitStarted { until } => Some(*until),
            EventKind::RetryScheduled { due, delay, .. } => {
                if *due != event.time.plus(*delay) {
                    return Err("a delay is not what is waited".to_owned());
                }
                Some(*due)
            }
            EventKind::PollScheduled { due, .. } => Some(*due),
            EventKind::TaskScheduled(scheduled) => scheduled.timeout_at,
            _ => None,
        };
        self.due.extend(due.map(|due| (event.id, due)));
        let fired = match &event.detail {
            EventKind::TimerFired { of } => self.due.get(of),
            // Without a due time it was a heartbeat that was missed.
            EventKind::TaskTimedOut { error, .. } if error == "FnF.TaskTimeout" => self.due.get(&event.caused_by),
            _ => None,
        };
        match fired {
            Some(due) if event.time < *due => Err(format!("a timer fires early, due {due}")),
            _ => Ok(()),
        }
    }

    /// Every call has one end.
    fn take_call(&mut self, event: &Event) -> Result<(), String> {
        let over = match &event.detail {
            EventKind::TaskScheduled(_) => {
                self.calls.insert(event.id, 0);
                return Ok(());
            }
            EventKind::TaskSucceeded { .. }
            | EventKind::TaskFailed { .. }
            | EventKind::TaskTimedOut { .. }
            | EventKind::TaskSubmitFailed { .. } => event.caused_by,
            EventKind::TaskCancelled { of, .. } => *of,
            _ => return Ok(()),
        };
        match self.calls.get_mut(&over) {
            Some(times) if *times == 0 => {
                *times = 1;
                Ok(())
            }
            Some(_) => Err("a second end of a call".to_owned()),
            None => Err("the end of no call".to_owned()),
        }
    }

    /// Lists enter one step after the other; what began ends.
    fn take_step(&mut self, event: &Event) -> Result<(), String> {
        let way = way(&event.path);
        let Some(step) = event.step else { return Ok(()) };
        match &event.detail {
            EventKind::StepEntered { .. } => {
                if let Some(last) = way.last().filter(|(_, child)| !matches!(child, Child::Arm(_)))
                    && !self.begun.contains(&way)
                {
                    return Err(format!("a step in a child that did not begin, {last:?}"));
                }
                if self.open.insert(way, step).is_some() {
                    return Err("a step is entered before the one before it is left".to_owned());
                }
            }
            EventKind::StepExited { .. } => {
                if self.open.remove(&way) != Some(step) {
                    return Err("a step is left that is not open".to_owned());
                }
                self.forget_inside(&way, step);
            }
            // A further attempt of a composite begins afresh.
            EventKind::StepStarted { .. } => {
                if self.open.get(&way) != Some(&step) {
                    return Err("an attempt of a step that is not open".to_owned());
                }
                self.forget_inside(&way, step);
            }
            EventKind::BranchEntered { .. } | EventKind::IterationEntered { .. } => {
                let mut inside = way;
                inside.push((step, child(&event.detail)));
                if self.begun.contains(&inside) {
                    return Err("a child begins again before it ends".to_owned());
                }
                self.begun.push(inside);
            }
            EventKind::BranchExited(_) | EventKind::IterationExited(_) => {
                if !self.begun.contains(&way) {
                    return Err("the end of a child that did not begin".to_owned());
                }
                self.begun.retain(|begun| *begun != way);
                self.open.retain(|open, _| !open.starts_with(&way));
            }
            // `StepFailed` with children that did not end would leave them behind.
            EventKind::StepFailed { .. } | EventKind::StepSucceeded { .. } => {
                let left = self
                    .begun
                    .iter()
                    .find(|begun| begun.len() > way.len() && begun.starts_with(&way) && begun[way.len()].0 == step);
                if let Some(left) = left {
                    return Err(format!("an attempt ends before its child, {left:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn forget_inside(&mut self, way: &Way, step: StepId) {
        self.open
            .retain(|open, _| !(open.len() > way.len() && open.starts_with(way) && open[way.len()].0 == step));
    }
}

fn way(path: &StepPath) -> Way {
    path.items().iter().map(|item| (item.step, item.child)).collect()
}

fn child(detail: &EventKind) -> Child {
    match detail {
        EventKind::BranchEntered { branch, .. } => Child::Branch(*branch),
        EventKind::IterationEntered { index, .. } => Child::Iteration(*index),
        _ => Child::Arm(None),
    }
}
