//! Closing: bringing what still runs inside a composite, or in the whole flow, to its end (sections "errors" and
//! "rollback").
//!
//! Everything inside is suspended first. Then calls in flight are cancelled and children exit, innermost first. Each
//! step of this makes one event, so that a turn can be cut anywhere. A rollback in progress is waited for.

use crate::event::{CancelReason, Child, EventId, EventKind, Exit, Failure};
use crate::state::{
    ArmRun, Closing, Frame, FrameId, FramePosition, ROOT, State, StepRun, TaskPhase, Visit, VisitPhase,
};
use crate::turn::{EventAddress, Turn};

/// The next step of closing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CloseStep {
    /// Nothing, until a rollback inside has ended.
    Blocked,
    /// Cancel this call.
    Cancel { frame: FrameId, call: EventId },
    /// Let this child exit.
    Exit { frame: FrameId, exit: Exit },
    /// Nothing: all is closed.
    Clear,
}

impl State {
    /// The next step of closing what runs inside the step that a frame is in.
    pub(crate) fn close_step(&self, id: FrameId) -> CloseStep {
        let Some(visit) = self.frames.get(id).and_then(Frame::visit) else {
            return CloseStep::Clear;
        };
        self.close_inside(visit)
    }

    fn close_inside(&self, visit: &Visit) -> CloseStep {
        let mut blocked = false;
        let children: &mut dyn Iterator<Item = FrameId> = match &visit.phase {
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { child, .. })) => &mut std::iter::once(*child),
            VisitPhase::Started(StepRun::Children(children)) => &mut children.live.values().copied(),
            _ => return CloseStep::Clear,
        };
        for child in children {
            match self.close_child(child) {
                CloseStep::Blocked => blocked = true,
                CloseStep::Clear => {}
                step => return step,
            }
        }
        if blocked { CloseStep::Blocked } else { CloseStep::Clear }
    }

    fn close_child(&self, id: FrameId) -> CloseStep {
        let Some(frame) = self.frames.get(id) else {
            return CloseStep::Clear;
        };
        if frame.is_rolling_back() {
            return CloseStep::Blocked;
        }
        let exit = match &frame.at {
            FramePosition::Failed(_, failure, _) => Exit::Failed(failure.clone()),
            FramePosition::In(visit) => match self.close_visit(id, visit) {
                CloseStep::Clear => Exit::Cancelled,
                step => return step,
            },
            _ => Exit::Cancelled,
        };
        match frame.parent {
            Some((_, Child::Branch(_) | Child::Iteration(_))) => CloseStep::Exit { frame: id, exit },
            _ => CloseStep::Clear,
        }
    }

    fn close_visit(&self, id: FrameId, visit: &Visit) -> CloseStep {
        match visit.task().map(|run| &run.phase) {
            Some(TaskPhase::InFlight { call }) => CloseStep::Cancel { frame: id, call: *call },
            _ => self.close_inside(visit),
        }
    }

    /// The next step of closing the whole flow.
    pub(crate) fn close_flow_step(&self) -> CloseStep {
        let Some(root) = self.frames.get(ROOT) else {
            return CloseStep::Clear;
        };
        if root.is_rolling_back() {
            return CloseStep::Blocked;
        }
        match &root.at {
            FramePosition::In(visit) => self.close_visit(ROOT, visit),
            _ => CloseStep::Clear,
        }
    }

    /// Whether the flow's own frame has something to do while the execution is brought to its end.
    pub(crate) fn ending_has_work(&self) -> bool {
        !self.data.status.is_ended() && self.close_flow_step() != CloseStep::Blocked
    }

    /// Makes the event of one step of closing. Returns whether there was one.
    pub(crate) fn close(&mut self, turn: &mut Turn<'_>, step: CloseStep, reason: CancelReason) -> bool {
        match step {
            CloseStep::Blocked | CloseStep::Clear => false,
            CloseStep::Cancel { frame, call } => {
                let detail = EventKind::TaskCancelled { of: call, reason };
                self.emit(turn, self.place(frame), detail);
                true
            }
            CloseStep::Exit { frame, exit } => {
                self.exit(turn, frame, exit);
                true
            }
        }
    }

    /// Makes the event by which a branch or iteration exits.
    pub(crate) fn exit(&mut self, turn: &mut Turn<'_>, id: FrameId, exit: Exit) {
        let Some((parent, child)) = self.frames.get(id).and_then(|frame| frame.parent) else {
            return;
        };
        let place = EventAddress {
            step: self.place(parent).step,
            ..self.place(id)
        };
        let detail = match child {
            Child::Branch(_) => EventKind::BranchExited(exit),
            _ => EventKind::IterationExited(exit),
        };
        self.emit(turn, place, detail);
    }

    /// Why what runs inside a step is being closed.
    pub(crate) fn closing_reason(&self, visit: &Visit) -> CancelReason {
        match &visit.phase {
            VisitPhase::Started(StepRun::Children(children)) => match &children.closing {
                Some(Closing::Met) => CancelReason::WaitForMet,
                Some(Closing::Failed { .. }) if children.failed == 0 => CancelReason::Timeout,
                _ => CancelReason::SiblingFailed,
            },
            _ => CancelReason::Timeout,
        }
    }

    /// The failure because of which a step is being closed.
    pub(crate) fn closing_failure(visit: &Visit) -> Option<Failure> {
        match &visit.phase {
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { closing, .. })) => closing.clone(),
            VisitPhase::Started(StepRun::Children(children)) => match &children.closing {
                Some(Closing::Failed { failure, .. }) => Some(failure.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}
