//! Removing, retaining and suspending frames, together with the timers and requests they wait for.

use super::{ArmRun, Frame, FrameId, State, StepRun, Visit, VisitPhase};

impl State {
    /// Removes a frame and everything inside it.
    pub(crate) fn drop_frame(&mut self, id: FrameId) -> Option<Frame> {
        let frame = self.frames.remove(id)?;
        if let Some(visit) = frame.visit() {
            self.drop_inside(visit);
        }
        Some(frame)
    }

    /// Removes all frames inside a visit, and the visit's timers.
    pub(crate) fn drop_inside(&mut self, visit: &Visit) {
        self.timers.cancel(visit.timer_keys());
        if let VisitPhase::Manual { request, .. } = &visit.phase {
            self.data.manual.remove(request);
        }
        for child in visit.frames_inside() {
            self.drop_frame(child);
        }
    }

    /// Retains what a failed attempt had inside, so that a redrive can go on with it.
    pub(crate) fn retain_inside(&mut self, id: FrameId, phase: VisitPhase) {
        if let VisitPhase::Started(
            inside @ (StepRun::Choice(ArmRun::Running { .. } | ArmRun::Ended { .. }) | StepRun::Children(_)),
        ) = phase
            && let Some(visit) = self.frames.get_mut(id).and_then(Frame::active)
        {
            visit.retained_inside = Some(Box::new(inside));
        }
    }

    /// Removes what was retained of the failed attempt of the step that a frame is in.
    pub(crate) fn drop_retained_inside(&mut self, id: FrameId) {
        let inside = match self.frames.get(id).and_then(Frame::visit) {
            Some(visit) if visit.retained_inside.is_some() => visit.frames_inside(),
            _ => return,
        };
        for child in inside {
            self.drop_frame(child);
        }
        if let Some(visit) = self.frames.get_mut(id).and_then(Frame::active) {
            visit.retained_inside = None;
        }
    }

    /// Suspends everything inside the step of a frame, except rollbacks in progress.
    pub(crate) fn suspend(&mut self, outer: FrameId) {
        let inside = match self.frames.get(outer).and_then(Frame::visit) {
            Some(visit) => visit.frames_inside(),
            None => return,
        };
        for id in inside {
            if self.frames.get(id).is_some_and(|frame| frame.undoing.is_none()) {
                self.frames.set_ready(id, false);
            }
            self.cancel_waits(id);
            self.suspend(id);
        }
    }

    /// Cancels what a frame's step waits for: timers and requests to operators.
    pub(crate) fn cancel_waits(&mut self, id: FrameId) {
        let Some(visit) = self.frames.get(id).and_then(Frame::visit) else {
            return;
        };
        let keys = visit.timer_keys();
        if let VisitPhase::Manual { request, .. } = visit.phase {
            self.data.manual.remove(&request);
        }
        self.timers.cancel(keys);
    }
}
