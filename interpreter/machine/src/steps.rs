//! Deciding what a step does next: one file a kind of step, the exhaustive match here.
//!
//! | phase of a visit | what comes |
//! |---|---|
//! | entered | the input is made: `StepStarted`, or `StepFailed` |
//! | started | as the kind of step has it |
//! | succeeded | `StepExited` |
//! | failed | `RetryScheduled`, or `StepExited` with `caught`, or the failure leaves the list |
//! | retrying | waits for its timer |

mod attempt;
mod bounds;
mod choice;
mod failure;
mod flow;
pub(crate) mod foreach;
pub(crate) mod parallel;
mod poll;
mod settings;
mod simple;
mod task;
mod wait;

pub(crate) use failure::{Tried, retry_scheduled};
pub(crate) use poll::{AfterResult, after_acknowledgement};

use crate::state::{Children, Frame, FrameId, FramePosition, State, StepRun, Visit, VisitPhase};
use crate::turn::Turn;
use starbridge_flow::graph::{Step, StepKind};

/// Whether one more list of a parallel or foreach may run now. Every list that began counts, also those that a
/// redrive resumed.
pub(crate) fn has_room(kind: &StepKind, children: &Children) -> bool {
    let max = match kind {
        StepKind::Foreach(foreach) => foreach::max_running(foreach, children),
        StepKind::Parallel(parallel) => parallel::max_running(parallel, children),
        _ => 0,
    };
    children.live.len() < max
}

/// Whether a list of a parallel or foreach can begin now.
pub(crate) fn may_begin(kind: &StepKind, children: &Children) -> bool {
    match kind {
        StepKind::Foreach(foreach) => foreach::next_iteration(foreach, children).is_some(),
        StepKind::Parallel(parallel) => parallel::next_branch(parallel, children).is_some(),
        _ => false,
    }
}

impl State {
    /// Does one thing for the step that a frame is in.
    pub(crate) fn step_visit(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let Some((visit, step)) = self.visit_and_step(turn, id) else {
            return;
        };
        match (&visit.phase, &step.kind) {
            (VisitPhase::Entered, _) => match Self::hopeless(turn, visit, step) {
                Some(failure) => self.fail_current(turn, id, failure),
                None => self.begin_attempt(turn, id),
            },
            (VisitPhase::Succeeded { .. }, _) => self.exit_step(turn, id),
            (VisitPhase::Failed { .. }, _) => self.after_failure(turn, id),
            (VisitPhase::Retrying { .. } | VisitPhase::Manual { .. }, _) => {}
            (VisitPhase::Started(StepRun::Simple), StepKind::Fail(fail)) => self.step_fail(turn, id, fail),
            (VisitPhase::Started(StepRun::Simple), _) => self.complete(turn, id),
            (VisitPhase::Started(StepRun::Wait(run)), StepKind::Wait(wait)) => {
                let run = run.clone();
                self.step_wait(turn, id, wait, &run);
            }
            (VisitPhase::Started(StepRun::Task(_)), StepKind::Task(task)) => self.step_task(turn, id, task),
            (VisitPhase::Started(StepRun::Choice(_)), StepKind::Choice(choice)) => self.step_choice(turn, id, choice),
            (VisitPhase::Started(StepRun::Children(_)), StepKind::Parallel(parallel)) => {
                self.step_parallel(turn, id, parallel)
            }
            (VisitPhase::Started(StepRun::Children(_)), StepKind::Foreach(foreach)) => {
                self.step_foreach(turn, id, foreach)
            }
            (VisitPhase::Started(_), _) => {}
        }
    }

    /// The step that a frame is in: its visit in the state, and its definition in the flow.
    pub(crate) fn visit_and_step<'s, 'f>(&'s self, turn: &Turn<'f>, id: FrameId) -> Option<(&'s Visit, &'f Step)> {
        let visit = match &self.frames.get(id)?.at {
            FramePosition::In(visit) => visit,
            _ => return None,
        };
        Some((visit, turn.flow.step(visit.step)?))
    }

    /// The frame with this number.
    pub(crate) fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id)
    }
}
