//! Folding of choices: an arm is entered, and what its steps do counts as done by the choice.

use crate::event::{Child, Event};
use crate::state::{ArmRun, DoneList, Frame, FrameId, State, StepRun, VisitPhase};
use starbridge_flow::graph::{Flow, StepId, StepKind};
use starbridge_flow::value::Document;

impl State {
    pub(super) fn fold_choice(
        &mut self,
        flow: &Flow,
        event: &Event,
        id: FrameId,
        step: StepId,
        taken: Option<Option<u32>>,
    ) -> Option<()> {
        let StepKind::Choice(choice) = &flow.step(step)?.kind else {
            return None;
        };
        let arm = match taken {
            None => None,
            Some(None) => Some(choice.default.as_ref()?),
            Some(Some(number)) => Some(choice.arms.get(number as usize)?),
        };
        let frame = self.frames.get_mut(id)?;
        let path = frame.path.clone();
        let visit = frame.active()?;
        if visit.step != step || !matches!(visit.phase, VisitPhase::Started(StepRun::Choice(ArmRun::Deciding))) {
            return None;
        }
        let goto = arm.and_then(|arm| arm.goto);
        let Some((list, number)) = arm.and_then(|arm| arm.list).zip(taken) else {
            visit.phase = VisitPhase::Started(StepRun::Choice(ArmRun::Ended {
                local: Document::default(),
                goto,
                done: DoneList::default(),
            }));
            return Some(());
        };
        let child = Child::Arm(number);
        let (path, input) = (path.inside(step, child), visit.input.clone());
        let inner = Frame::new(flow, list, Some((id, child)), path, input, event.id);
        visit.phase = VisitPhase::Started(StepRun::Choice(ArmRun::Running {
            child: event.id,
            goto,
            closing: None,
        }));
        self.frames.add(event.id, inner);
        Some(())
    }

    /// Takes an arm that ended into its choice. An arm has no event for its end.
    pub(super) fn end_arm(&mut self, flow: &Flow, arm: FrameId) -> Option<()> {
        let suspended = self.frames.get(arm).is_some_and(|frame| self.is_suspended(frame));
        if suspended {
            return Some(());
        }
        let frame = self.drop_frame(arm)?;
        let (parent, _) = frame.parent?;
        let last = frame.last;
        let outer = self.frames.get_mut(parent)?;
        outer.last = last;
        let visit = outer.active()?;
        let VisitPhase::Started(StepRun::Choice(ArmRun::Running { goto, .. })) = visit.phase else {
            return None;
        };
        visit.phase = VisitPhase::Started(StepRun::Choice(ArmRun::Ended {
            local: frame.local,
            goto,
            done: frame.done,
        }));
        self.update_ready_queue(flow, parent);
        Some(())
    }
}
