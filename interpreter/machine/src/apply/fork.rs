//! Folding of a fork: what it changes in the state it copied.

use crate::event::Event;
use crate::state::{Frame, State, StepRun, TaskPhase, TimerFor, UndoPhase, UndoRun, VisitPhase, WaitRun};
use starbridge_flow::graph::{Flow, StepKind, Wait};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;

impl State {
    /// The fork gets its own name, and neither a parent nor the parent's tokens. Its calls are sent
    /// again. Waits keep the time that was left, and the flow's timeout starts again.
    pub(super) fn fold_forked(&mut self, flow: &Flow, event: &Event, name: &Text) -> Option<()> {
        let started = self.data.started.as_mut()?;
        started.name = name.clone();
        started.parent = None;
        started.tokens.clear();
        // A fork is not paused. Its deadlines keep the time that was left when the pause began.
        let stood = self.counted_from(self.data.last_time);
        self.data.paused = None;
        let left = event.time.since(stood);
        self.calls.reissue(left, event.time);
        self.frames.for_each_mut(|frame| postpone(flow, frame, left));
        let mut timers = std::mem::take(&mut self.timers);
        timers.postpone(
            left,
            |(due, _), what| !matches!(what, TimerFor::Frame(id) if self.waits_for_instant(flow, id, due)),
        );
        if timers.has_execution_bound() {
            timers.set_execution_bound(event.time.plus(flow.timeout), event.id);
        }
        self.timers = timers;
        Some(())
    }

    /// Whether `due` is the end of a wait until a fixed time, which a fork does not move.
    fn waits_for_instant(&self, flow: &Flow, id: crate::state::FrameId, due: Timestamp) -> bool {
        let visit = self.frames.get(id).and_then(Frame::visit);
        visit.is_some_and(|visit| {
            let waits =
                matches!(visit.phase, VisitPhase::Started(StepRun::Wait(WaitRun::Waiting { until, .. })) if until == due);
            waits && is_for_instant(flow, visit.step)
        })
    }
}

fn is_for_instant(flow: &Flow, step: starbridge_flow::graph::StepId) -> bool {
    let kind = flow.step(step).map(|step| &step.kind);
    matches!(kind, Some(StepKind::Wait(Wait::Timestamp(_))))
}

/// Postpones everything a rollback waits for.
fn postpone_undo(run: &mut UndoRun, left: Millis) {
    if let Some(polling) = &mut run.polling {
        polling.timeout_at = polling.timeout_at.map(|at| at.plus(left));
    }
    match &mut run.phase {
        UndoPhase::Retrying { due, .. } => *due = due.plus(left),
        UndoPhase::Sleeping { due, deadline, .. } => {
            *due = due.plus(left);
            *deadline = deadline.map(|at| at.plus(left));
        }
        _ => {}
    }
}

/// Postpones everything a frame waits for.
fn postpone(flow: &Flow, frame: &mut Frame, left: Millis) {
    if let Some(run) = frame.undoing.as_mut().and_then(|undoing| undoing.current.as_mut()) {
        postpone_undo(run, left);
    }
    let Some(visit) = frame.visit_mut() else {
        return;
    };
    visit.deadline = visit.deadline.map(|at| at.plus(left));
    visit.total_at = visit.total_at.map(|at| at.plus(left));
    match &mut visit.phase {
        VisitPhase::Retrying { due, .. } => *due = due.plus(left),
        VisitPhase::Started(StepRun::Wait(WaitRun::Waiting { until, .. })) if !is_for_instant(flow, visit.step) => {
            *until = until.plus(left);
        }
        VisitPhase::Started(StepRun::Task(run)) => {
            run.timeout_at = run.timeout_at.map(|at| at.plus(left));
            match &mut run.phase {
                TaskPhase::Sleeping { due, .. } => *due = due.plus(left),
                // If the call started a child, that child belongs to the old execution.
                TaskPhase::InFlight { .. } => run.child = None,
                _ => {}
            }
        }
        _ => {}
    }
}
