//! Folding of a pause and of its end: deadlines move by the length of the pause, points in time stay.

use crate::event::Event;
use crate::state::{Frame, Paused, State, StepRun, TimerFor, TimerKey, UndoPhase, VisitPhase};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;

impl State {
    pub(super) fn fold_paused(&mut self, event: &Event, by: &Text, cause: &Text, with_parent: bool) -> Option<()> {
        if self.data.paused.is_some() || self.data.status.is_ended() {
            return None;
        }
        self.data.paused = Some(Box::new(Paused {
            event: event.id,
            since: event.time,
            by: by.clone(),
            cause: cause.clone(),
            with_parent,
        }));
        Some(())
    }

    pub(super) fn fold_resumed(&mut self, event: &Event) -> Option<()> {
        self.data.paused.is_some().then(|| self.end_pause(event.time))
    }

    /// Ends the pause, if there is one.
    pub(super) fn end_pause(&mut self, now: Timestamp) {
        let Some(paused) = self.data.paused.take() else {
            return;
        };
        let span = now.since(paused.since);
        let frames = &self.frames;
        self.timers
            .postpone(span, |key, what| is_deadline(frames.get_of(what), key, what));
        self.calls.postpone(span);
        self.frames.for_each_mut(|frame| postpone(frame, span));
    }

    /// The time from which a deadline set now counts. While the execution is paused, its deadlines
    /// stand still.
    pub(super) fn counted_from(&self, time: Timestamp) -> Timestamp {
        self.data.paused.as_ref().map_or(time, |paused| paused.since.min(time))
    }
}

/// Whether a timer is a deadline. The others are points in time: the end of a wait, of a retry's or of a poll's delay.
fn is_deadline(frame: Option<&Frame>, (_, set_by): TimerKey, what: TimerFor) -> bool {
    match what {
        TimerFor::Execution | TimerFor::Call => true,
        TimerFor::Frame(_) => {
            let visit = frame.and_then(Frame::visit);
            visit.is_some_and(|visit| set_by == visit.started || set_by == visit.entered)
        }
        TimerFor::Rollback(_) => {
            let run = frame.and_then(|frame| frame.undoing.as_ref()?.current.as_ref());
            run.is_some_and(|run| set_by == run.started)
        }
    }
}

/// Postpones the deadlines of what a frame does.
fn postpone(frame: &mut Frame, span: Millis) {
    let later = |at: &mut Option<Timestamp>| *at = at.map(|at| at.plus(span));
    if let Some(run) = frame.undoing.as_mut().and_then(|undoing| undoing.current.as_mut()) {
        if let Some(polling) = &mut run.polling {
            later(&mut polling.timeout_at);
        }
        if let UndoPhase::Sleeping { deadline, .. } = &mut run.phase {
            later(deadline);
        }
    }
    let Some(visit) = frame.visit_mut() else {
        return;
    };
    later(&mut visit.deadline);
    later(&mut visit.total_at);
    if let VisitPhase::Started(StepRun::Task(run)) = &mut visit.phase {
        later(&mut run.timeout_at);
    }
}
