//! Folding one event into the state. Every event can be folded: one that does not fit makes the state broken.

mod call;
mod child;
mod choice;
mod execution;
mod fork;
mod manual;
mod pause;
mod redrive;
mod step;
mod timer;
mod undo;

pub(crate) use redrive::RedrivePlan;

use crate::event::{Event, EventId, EventKind};
use crate::state::{FrameId, ROOT, State};
use starbridge_flow::graph::Flow;

impl State {
    /// Folds an event into the state. If the event does not fit, the state is broken at that event
    /// ([`State::broken_at`]), and [`State::advance`] rejects every signal from then on.
    pub fn apply(&mut self, flow: &Flow, event: &Event) {
        self.apply_in(flow, event, None);
    }

    /// Folds an event whose frame the caller may already know.
    pub(crate) fn apply_in(&mut self, flow: &Flow, event: &Event, frame: Option<FrameId>) {
        if self.data.broken.is_some() {
            return;
        }
        let dense = event.id == self.data.last.next();
        let begun = self.data.started.is_some() != matches!(event.detail, EventKind::ExecutionStarted(_));
        if !dense || !begun || self.fold(flow, event, frame).is_none() {
            self.data.broken = Some(event.id);
            return;
        }
        self.data.needed_version = self.data.needed_version.max(event.detail.needed_version());
        if self.data.draining {
            self.end_if_drained(flow, event.id);
        }
        self.data.last = event.id;
        self.data.last_time = event.time;
    }

    /// Folds an event that is in its order. `None`: the event does not fit.
    fn fold(&mut self, flow: &Flow, event: &Event, frame: Option<FrameId>) -> Option<()> {
        if let Some(done) = self.fold_of_flow(flow, event) {
            return done;
        }
        let frame = match frame {
            Some(frame) => frame,
            None if event.rollback => self.undoing_or_frame(flow, event)?,
            None => self.frames.find(&event.path)?,
        };
        self.frames.note_event(frame, event.id);
        if event.rollback {
            return self.fold_rollback(flow, event, frame);
        }
        match &event.detail {
            EventKind::StepEntered { .. }
            | EventKind::StepStarted { .. }
            | EventKind::StepSucceeded { .. }
            | EventKind::StepFailed { .. }
            | EventKind::StepExited { .. }
            | EventKind::ChoiceTaken { .. }
            | EventKind::WaitStarted { .. }
            | EventKind::RetryScheduled { .. }
            | EventKind::ManualRequested(_)
            | EventKind::ManualResolved(_)
            | EventKind::TimerFired { .. } => self.fold_step(flow, event, frame),
            EventKind::BranchEntered { .. }
            | EventKind::BranchExited(_)
            | EventKind::IterationEntered { .. }
            | EventKind::IterationExited(_) => self.fold_child(flow, event, frame),
            _ => self.fold_call(flow, event, frame),
        }
    }

    /// Folds an event about the execution as a whole. `None`: it is no such event.
    fn fold_of_flow(&mut self, flow: &Flow, event: &Event) -> Option<Option<()>> {
        match &event.detail {
            EventKind::ExecutionStarted(started) => Some(self.fold_started(flow, event, started)),
            EventKind::StepStarted { input, .. } if event.step.is_none() => Some(self.fold_flow_input(input)),
            EventKind::ExecutionSucceeded { .. }
            | EventKind::ExecutionFailed { .. }
            | EventKind::ExecutionStopped { .. }
            | EventKind::ExecutionTimedOut { .. } => Some(self.fold_end(flow, event)),
            EventKind::LateResultIgnored { of, .. } => Some(self.fold_late_result(*of)),
            EventKind::TurnContinued | EventKind::TaskStarted => Some(Some(())),
            EventKind::ExecutionRedriven { inputs, definition, .. } => {
                Some(self.fold_redriven(flow, event, inputs, definition.as_ref()))
            }
            EventKind::RollbackSkipped { of, .. } => Some(self.fold_skipped(flow, event, *of)),
            EventKind::ExecutionPaused { by, cause, with_parent } => {
                Some(self.fold_paused(event, by, cause, *with_parent))
            }
            EventKind::ExecutionResumed { .. } => Some(self.fold_resumed(event)),
            EventKind::ExecutionReordered {
                priority, order_time, ..
            } => Some(self.fold_reordered(*priority, *order_time)),
            EventKind::ExecutionForked { name, .. } => Some(self.fold_forked(flow, event, name)),
            _ => None,
        }
    }

    fn fold_late_result(&mut self, of: EventId) -> Option<()> {
        self.calls.note_late_report(of)
    }

    /// The frame in which the rollback of this event goes on; for `RollbackStarted`, the one in which it begins.
    fn undoing_or_frame(&self, flow: &Flow, event: &Event) -> Option<FrameId> {
        if let Some(frame) = self.frames.rollback_at(&event.path) {
            return Some(frame);
        }
        let EventKind::RollbackStarted { of } = event.detail else {
            return None;
        };
        if self.data.ending.is_some() {
            return Some(ROOT);
        }
        // Nothing begins its own rollback inside a composite that is being closed. Otherwise the
        // rollback belongs to the innermost list that has the task.
        let (mut id, _) = self.frames.at(&event.path);
        if let Some(closing) = self.frames.outermost_closing(id) {
            return Some(closing);
        }
        loop {
            if self.undo_stack(flow, id).iter().any(|done| done.call == of) {
                return Some(id);
            }
            if id == ROOT {
                return None;
            }
            id = self.frames.get(id)?.parent?.0;
        }
    }
}
