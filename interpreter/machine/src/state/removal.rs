//! Taking frames away, retaining them for a redrive, suspending them; with each go the timers and requests it waits for.

use super::{ArmRun, Frame, FrameId, Inside, Phase, State, Visit};

impl State {
    /// Takes a frame and all inside it away.
    pub(crate) fn drop_frame(&mut self, id: FrameId) -> Option<Frame> {
        let frame = self.frames.remove(id)?;
        if let Some(visit) = frame.visit() {
            self.drop_inside(visit);
        }
        Some(frame)
    }

    /// Takes all frames inside a visit away, and its timers.
    pub(crate) fn drop_inside(&mut self, visit: &Visit) {
        self.timers.cancel(visit.timer_keys());
        if let Phase::Manual { request, .. } = &visit.phase {
            self.data.manual.remove(request);
        }
        for child in visit.frames_inside() {
            self.drop_frame(child);
        }
    }

    /// Retains what a failed attempt had inside: a redrive goes on with it.
    pub(crate) fn retain_inside(&mut self, id: FrameId, phase: Phase) {
        if let Phase::Started(
            inside @ (Inside::Choice(ArmRun::Running { .. } | ArmRun::Ended { .. }) | Inside::Children(_)),
        ) = phase
            && let Some(visit) = self.frames.get_mut(id).and_then(Frame::active)
        {
            visit.retained_inside = Some(Box::new(inside));
        }
    }

    /// Takes away what was retained of the failed attempt of the step a frame is in.
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

    /// Stops everything inside the step of a frame from going on by itself, but for rollbacks in progress.
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

    /// A frame's step waits for nothing any more: neither for timers nor for an operator.
    pub(crate) fn cancel_waits(&mut self, id: FrameId) {
        let Some(visit) = self.frames.get(id).and_then(Frame::visit) else {
            return;
        };
        let keys = visit.timer_keys();
        if let Phase::Manual { request, .. } = visit.phase {
            self.data.manual.remove(&request);
        }
        self.timers.cancel(keys);
    }
}
