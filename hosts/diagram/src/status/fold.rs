//! Folds a history into the status of each step.

use super::places::{Around, Places, StepPlace};
use super::{Ending, FlowStatus, Marks, Status, Way};
use crate::text::clean;
use starbridge_flow::graph::{Flow, StepId, StepKind};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::{Child, Decision, Event, EventKind, Exit, Failure, StepPath};
use std::collections::HashSet;

/// The status after the events so far.
#[derive(Clone, Default)]
pub(super) struct Fold {
    places: Places,
    status: FlowStatus,
    started: Option<Timestamp>,
}

fn around(path: &StepPath) -> Around {
    path.items().iter().map(|item| (item.step, item.child)).collect()
}

impl Fold {
    /// No event yet.
    pub(super) fn of(flow: &Flow) -> Self {
        let mut fold = Self::default();
        fold.status.steps = vec![Marks::default(); flow.steps.len()];
        fold
    }

    /// The approximate memory of what was not counted before, in bytes.
    pub(super) fn bytes(&self, counted: &mut HashSet<usize>) -> usize {
        self.places.bytes(counted) + self.status.steps.len() * size_of::<Marks>()
    }

    /// Takes the next event.
    pub(super) fn see(&mut self, flow: &Flow, event: &Event) {
        match event.step {
            Some(step) if flow.step(step).is_some() => self.step(flow, step, event),
            Some(_) => {}
            None => self.flow(flow, event),
        }
    }

    fn flow(&mut self, flow: &Flow, event: &Event) {
        match &event.detail {
            EventKind::ExecutionStarted(_) => {
                self.started = Some(event.time);
                self.take(Way::Begin);
            }
            EventKind::ExecutionStopped { failure, .. } => {
                self.places.cancel_inside(&[], None);
                self.ends(event, "Stopped", Some((failure, None)));
            }
            // Calls that are out may still end. If that completes the flow, its success replaces
            // this.
            EventKind::ExecutionTimedOut { drain: true } => self.ends(event, "TimedOut", None),
            EventKind::ExecutionTimedOut { drain: false } => {
                self.places.cancel_inside(&[], None);
                self.ends(event, "TimedOut", None);
            }
            EventKind::ExecutionFailed { failure, step } => {
                self.places.cancel_inside(&[], None);
                let step = step.and_then(|step| flow.step(step)).map(|step| clean(&step.name));
                let undone = self.places.any(Status::UndoFailed);
                let status = if undone { "RollbackFailed" } else { "Failed" };
                // An earlier end has already recorded itself.
                if undone || self.status.ending.is_none() {
                    self.ends(event, status, Some((failure, step)));
                }
            }
            EventKind::ExecutionSucceeded { .. } => self.ends(event, "Succeeded", None),
            EventKind::ExecutionRedriven { .. } => self.status.ending = None,
            _ => {}
        }
    }

    fn ends(&mut self, event: &Event, status: &'static str, failure: Option<(&Failure, Option<String>)>) {
        let (failure, step) = failure.map_or((None, None), |(failure, step)| (Some(failure.clone()), step));
        self.status.ending = Some(Ending {
            status,
            took: self.started.map_or(Millis::ZERO, |started| event.time.since(started)),
            step,
            failure,
        });
    }

    fn step(&mut self, flow: &Flow, step: StepId, event: &Event) {
        let path = around(&event.path);
        if event.rollback {
            return self.rollback(step, &path, &event.detail);
        }
        match &event.detail {
            EventKind::StepEntered { .. } => {
                self.marks(step).visits += 1;
                let entered = StepPlace {
                    status: Status::Running,
                    entered: Some(event.time),
                    ..StepPlace::default()
                };
                self.places.change(step, &path, |place| *place = entered);
            }
            EventKind::StepStarted { .. } => {
                self.marks(step).attempts += 1;
                self.becomes(step, &path, Status::Running, None);
            }
            EventKind::StepSucceeded { .. } => self.becomes(step, &path, Status::Succeeded, None),
            EventKind::StepFailed { failure, .. } => {
                self.places.cancel_inside(&path, Some(step));
                self.becomes(step, &path, Status::Failed, Some(&failure.error));
            }
            EventKind::StepExited { goto, caught, .. } => {
                let (entered, arm) = self.exited(step, &path, caught.is_some());
                let span = entered.map_or(Millis::ZERO, |entered| event.time.since(entered));
                let marks = self.marks(step);
                marks.took = marks.took.saturating_add(span);
                let way = match (goto, caught, arm) {
                    (Some(target), Some(_), _) => Way::Catch(step, *target),
                    (Some(_), None, Some(arm)) => Way::Goto(step, arm),
                    _ => Way::Next(step),
                };
                self.take(way);
            }
            EventKind::ChoiceTaken { arm } => {
                self.places.change(step, &path, |place| place.arm = *arm);
                if let Some(arm) = arm {
                    self.take(Way::Arm(step, *arm));
                }
            }
            EventKind::BranchEntered { branch, .. } => self.take(Way::Branch(step, *branch)),
            EventKind::BranchExited(exit) | EventKind::IterationExited(exit) => {
                self.child_exited(flow, step, &path, exit)
            }
            EventKind::RetryScheduled { .. } => self.waits(step, &path, "waiting to retry"),
            EventKind::PollScheduled { .. } => self.waits(step, &path, "waiting to poll"),
            EventKind::WaitStarted { .. } => self.waits(step, &path, "waiting"),
            EventKind::ManualRequested(_) => self.waits(step, &path, "waiting for an operator"),
            EventKind::TimerFired { .. } | EventKind::TaskScheduled(_) => {
                self.becomes(step, &path, Status::Running, None);
            }
            EventKind::ManualResolved(resolution) => match &resolution.decision {
                Decision::Retry => self.becomes(step, &path, Status::Running, None),
                Decision::Succeed { .. } => self.becomes(step, &path, Status::Succeeded, None),
                Decision::Fail { failure: Some(failure) } => {
                    self.becomes(step, &path, Status::Failed, Some(&failure.error));
                }
                Decision::Fail { failure: None } => self.places.change(step, &path, |place| {
                    place.status = Status::Failed;
                    place.waits = None;
                }),
            },
            EventKind::TaskCancelled { .. } => self.becomes(step, &path, Status::Cancelled, None),
            _ => {}
        }
    }

    fn rollback(&mut self, step: StepId, path: &Around, detail: &EventKind) {
        match detail {
            EventKind::RollbackStarted { .. } => self.becomes(step, path, Status::Undoing, None),
            EventKind::RollbackSucceeded => {
                self.marks(step).undone += 1;
                self.becomes(step, path, Status::RolledBack, None);
            }
            EventKind::RollbackFailed { failure, .. } => {
                self.becomes(step, path, Status::UndoFailed, Some(&failure.error))
            }
            EventKind::RollbackSkipped { .. } => {
                self.status.ending = None;
                self.becomes(step, path, Status::Succeeded, None);
            }
            _ => {}
        }
    }

    /// Ends a visit. Returns when it was entered, and the arm that its choice took.
    fn exited(
        &mut self,
        step: StepId,
        path: &[(StepId, Child)],
        caught: bool,
    ) -> (Option<Timestamp>, Option<Option<u32>>) {
        let mut found = (None, None);
        self.places.change(step, path, |place| {
            found = (place.entered.take(), place.arm.take());
            if caught {
                place.status = Status::Caught;
            }
        });
        found
    }

    /// Handles the end of a branch or iteration. Its number is the last one of the path, its composite the event's
    /// step.
    fn child_exited(&mut self, flow: &Flow, step: StepId, path: &[(StepId, Child)], exit: &Exit) {
        if *exit != Exit::Done {
            self.places.cancel_inside(path, None);
        }
        let children = match flow.step(step).map(|step| &step.kind) {
            Some(StepKind::Parallel(_)) => "branches",
            Some(StepKind::Foreach(_)) => "items",
            _ => return,
        };
        let marks = self.marks(step);
        marks.children = children;
        match exit {
            Exit::Done => marks.children_done += 1,
            Exit::Failed(_) => marks.children_failed += 1,
            Exit::Cancelled => {}
        }
    }

    fn marks(&mut self, step: StepId) -> &mut Marks {
        &mut self.status.steps[step.0 as usize]
    }

    fn becomes(&mut self, step: StepId, path: &[(StepId, Child)], status: Status, error: Option<&Text>) {
        self.places.change(step, path, |place| {
            place.status = status;
            place.error = error.cloned();
            place.waits = None;
        });
    }

    fn waits(&mut self, step: StepId, path: &[(StepId, Child)], what: &'static str) {
        self.places.change(step, path, |place| {
            place.status = Status::Waiting;
            place.waits = Some(what);
        });
    }

    fn take(&mut self, way: Way) {
        *self.status.ways.entry(way).or_default() += 1;
    }

    /// The statuses after the events so far. A step has the most important status of its places.
    pub(super) fn finish(mut self) -> FlowStatus {
        for (number, marks) in (0..).zip(&mut self.status.steps) {
            let step = StepId(number);
            marks.places = self.places.statuses(step);
            if let Some((status, _)) = marks.places.last_key_value() {
                marks.status = *status;
                (marks.error, marks.waits) = self.places.latest(step, *status);
            }
        }
        self.status
    }
}
