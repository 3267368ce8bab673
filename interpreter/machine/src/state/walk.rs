//! Finding the way between frames: by path, to parents, to what is ready.

use super::{ArmRun, At, Frame, FrameId, Inside, Phase, ROOT, State, TaskPhase, Visit, WaitRun};
use crate::close::CloseStep;
use crate::event::Child;
use crate::steps::may_begin;
use starbridge_fdl::graph::Flow;

impl State {
    /// Whether something further out is being closed, so that nothing new happens here.
    pub(crate) fn is_frozen(&self, frame: &Frame) -> bool {
        if self.data.ending.is_some() {
            return true;
        }
        let mut parent = frame.parent;
        while let Some((id, _)) = parent {
            let Some(frame) = self.frames.get(id) else {
                return true;
            };
            // What a failed attempt had inside is only kept for a redrive.
            let goes_on = |visit: &Visit| matches!(visit.phase, Phase::Started(_)) && !visit.is_closing();
            if !matches!(&frame.at, At::In(visit) if goes_on(visit)) {
                return true;
            }
            parent = frame.parent;
        }
        false
    }

    /// Whether a frame has something to do now.
    pub(crate) fn has_work(&self, flow: &Flow, id: FrameId) -> bool {
        let Some(frame) = self.frames.get(id) else {
            return false;
        };
        if self.data.status.is_ended() {
            return false;
        }
        if let Some(undoing) = frame.undoing.as_ref().filter(|undoing| !undoing.failed) {
            return undoing.has_work();
        }
        if id == ROOT && self.data.ending.is_some() {
            return self.ending_has_work();
        }
        if self.is_frozen(frame) {
            return false;
        }
        match &frame.at {
            At::Before(_) | At::Ended => true,
            At::Cancelled(_) => false,
            At::Failed(..) => self.is_live(id, frame),
            At::In(visit) => self.visit_has_work(flow, id, visit),
        }
    }

    /// Whether the composite around a frame still waits for its exit.
    fn is_live(&self, id: FrameId, frame: &Frame) -> bool {
        frame.parent.is_none_or(|(parent, child)| {
            self.frames
                .get(parent)
                .and_then(Frame::visit)
                .and_then(|visit| match (&visit.phase, child) {
                    (Phase::Started(Inside::Choice(ArmRun::Running { child, .. })), _) => Some(*child),
                    (Phase::Started(Inside::Children(children)), Child::Branch(n) | Child::Iteration(n)) => {
                        children.live.get(&n).copied()
                    }
                    _ => None,
                })
                == Some(id)
        })
    }

    fn visit_has_work(&self, flow: &Flow, id: FrameId, visit: &Visit) -> bool {
        match &visit.phase {
            Phase::Entered | Phase::Succeeded { .. } | Phase::Failed { .. } => true,
            Phase::Retrying { .. } | Phase::Manual { .. } => false,
            Phase::Started(inside) => match inside {
                Inside::Simple => true,
                Inside::Wait(run) => !matches!(run, WaitRun::Waiting { .. }),
                Inside::Task(run) => !matches!(
                    run.phase,
                    TaskPhase::InFlight { .. } | TaskPhase::Sleeping { .. } | TaskPhase::Cancelled
                ),
                Inside::Choice(ArmRun::Running { closing: None, .. }) => false,
                Inside::Choice(ArmRun::Running { closing: Some(_), .. }) => self.close_step(id) != CloseStep::Blocked,
                Inside::Choice(_) => true,
                Inside::Children(children) => match &children.closing {
                    Some(_) => self.close_step(id) != CloseStep::Blocked,
                    None if children.invalid || children.is_over() => true,
                    None => flow
                        .step(visit.step)
                        .is_some_and(|step| may_begin(&step.kind, children)),
                },
            },
        }
    }

    /// Puts a frame into the queue if it has something to do, takes it out if not.
    pub(crate) fn settle(&mut self, flow: &Flow, id: FrameId) {
        let has_work = self.has_work(flow, id);
        self.frames.set_ready(id, has_work);
    }

    /// Settles a frame and all around it.
    pub(crate) fn settle_outward(&mut self, flow: &Flow, id: FrameId) {
        let mut next = Some(id);
        while let Some(id) = next {
            self.settle(flow, id);
            next = self
                .frames
                .get(id)
                .and_then(|frame| frame.parent)
                .map(|(parent, _)| parent);
        }
    }

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

    /// Keeps what a failed attempt had inside, for a redrive.
    pub(crate) fn keep_for_redrive(&mut self, id: FrameId, phase: Phase) {
        if let Phase::Started(
            inside @ (Inside::Choice(ArmRun::Running { .. } | ArmRun::Ended { .. }) | Inside::Children(_)),
        ) = phase
            && let Some(visit) = self.frames.get_mut(id).and_then(Frame::active)
        {
            visit.kept = Some(Box::new(inside));
        }
    }

    /// Lets go of it.
    pub(crate) fn drop_kept(&mut self, id: FrameId) {
        let inside = match self.frames.get(id).and_then(Frame::visit) {
            Some(visit) if visit.kept.is_some() => visit.frames_inside(),
            _ => return,
        };
        for child in inside {
            self.drop_frame(child);
        }
        if let Some(visit) = self.frames.get_mut(id).and_then(Frame::active) {
            visit.kept = None;
        }
    }

    /// Stops everything inside a visit from going on by itself, but for rollbacks in progress.
    pub(crate) fn freeze(&mut self, visit_of: FrameId) {
        let inside = match self.frames.get(visit_of).and_then(Frame::visit) {
            Some(visit) => visit.frames_inside(),
            None => return,
        };
        for id in inside {
            if self.frames.get(id).is_some_and(|frame| frame.undoing.is_none()) {
                self.frames.set_ready(id, false);
            }
            self.withdraw(id);
            self.freeze(id);
        }
    }

    /// A frame's step waits for nothing any more: neither for timers nor for an operator.
    pub(crate) fn withdraw(&mut self, id: FrameId) {
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
