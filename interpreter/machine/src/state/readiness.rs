//! Which frames have something to do. Only those are in the ready queue.

use super::{ArmRun, Frame, FrameId, FramePosition, ROOT, State, StepRun, TaskPhase, Visit, VisitPhase, WaitRun};
use crate::close::CloseStep;
use crate::event::Child;
use crate::steps::may_begin;
use starbridge_flow::graph::Flow;

impl State {
    /// Whether something around a frame is being closed, so that nothing new happens in it.
    pub(crate) fn is_suspended(&self, frame: &Frame) -> bool {
        if self.data.ending.is_some() {
            return true;
        }
        let mut parent = frame.parent;
        while let Some((id, _)) = parent {
            let Some(frame) = self.frames.get(id) else {
                return true;
            };
            // What a failed attempt had inside is only retained for a redrive.
            let goes_on = |visit: &Visit| matches!(visit.phase, VisitPhase::Started(_)) && !visit.is_closing();
            if !matches!(&frame.at, FramePosition::In(visit) if goes_on(visit)) {
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
        if self.is_suspended(frame) || self.data.draining && !goes_on_draining(&frame.at) {
            return false;
        }
        match &frame.at {
            FramePosition::Before(_) | FramePosition::Ended => true,
            FramePosition::Cancelled(_) => false,
            FramePosition::Failed(..) => self.is_live(id, frame),
            FramePosition::In(visit) => self.visit_has_work(flow, id, visit),
        }
    }

    /// Whether the composite around a frame still waits for its exit.
    fn is_live(&self, id: FrameId, frame: &Frame) -> bool {
        frame.parent.is_none_or(|(parent, child)| {
            self.frames
                .get(parent)
                .and_then(Frame::visit)
                .and_then(|visit| match (&visit.phase, child) {
                    (VisitPhase::Started(StepRun::Choice(ArmRun::Running { child, .. })), _) => Some(*child),
                    (VisitPhase::Started(StepRun::Children(children)), Child::Branch(n) | Child::Iteration(n)) => {
                        children.live.get(&n).copied()
                    }
                    _ => None,
                })
                == Some(id)
        })
    }

    fn visit_has_work(&self, flow: &Flow, id: FrameId, visit: &Visit) -> bool {
        match &visit.phase {
            VisitPhase::Entered | VisitPhase::Succeeded { .. } | VisitPhase::Failed { .. } => true,
            VisitPhase::Retrying { .. } | VisitPhase::Manual { .. } => false,
            VisitPhase::Started(inside) => match inside {
                StepRun::Simple => true,
                StepRun::Wait(run) => !matches!(run, WaitRun::Waiting { .. }),
                StepRun::Task(run) => match run.phase {
                    TaskPhase::InFlight { .. } => visit.out_of_time.is_some(),
                    TaskPhase::Sleeping { .. } | TaskPhase::Cancelled => false,
                    _ => true,
                },
                StepRun::Choice(ArmRun::Running { closing: None, .. }) => false,
                StepRun::Choice(ArmRun::Running { closing: Some(_), .. }) => self.close_step(id) != CloseStep::Blocked,
                StepRun::Choice(_) => true,
                StepRun::Children(children) => match &children.closing {
                    Some(_) => self.close_step(id) != CloseStep::Blocked,
                    None if children.invalid || children.is_over() => true,
                    None if self.data.draining => false,
                    None => flow
                        .step(visit.step)
                        .is_some_and(|step| may_begin(&step.kind, children)),
                },
            },
        }
    }

    /// Puts a frame into the ready queue if it has something to do; otherwise takes it out.
    pub(crate) fn update_ready_queue(&mut self, flow: &Flow, id: FrameId) {
        let has_work = self.has_work(flow, id);
        self.frames.set_ready(id, has_work);
    }

    /// Updates the ready queue for a frame and those around it, from inside out.
    pub(crate) fn update_ready_queue_outward(&mut self, flow: &Flow, id: FrameId) {
        let mut next = Some(id);
        while let Some(id) = next {
            self.update_ready_queue(flow, id);
            let parent = self.frames.get(id).and_then(|frame| frame.parent);
            next = parent.map(|(parent, _)| parent);
        }
    }
}

/// Whether a list goes on while the execution drains: only with what ends something, never with what begins something. A
/// failure waits: what comes of it would be a retry, another step or a rollback.
fn goes_on_draining(at: &FramePosition) -> bool {
    let visit = match at {
        FramePosition::In(visit) => visit,
        FramePosition::Ended | FramePosition::Failed(..) => return true,
        FramePosition::Before(_) | FramePosition::Cancelled(_) => return false,
    };
    match &visit.phase {
        VisitPhase::Succeeded { .. } => true,
        VisitPhase::Started(inside) => match inside {
            StepRun::Simple | StepRun::Children(_) => true,
            StepRun::Wait(run) => matches!(run, WaitRun::Over),
            StepRun::Task(run) => !matches!(run.phase, TaskPhase::Ready | TaskPhase::Pending { .. }),
            StepRun::Choice(run) => !matches!(run, ArmRun::Deciding),
        },
        VisitPhase::Entered | VisitPhase::Failed { .. } | VisitPhase::Manual { .. } | VisitPhase::Retrying { .. } => {
            false
        }
    }
}
