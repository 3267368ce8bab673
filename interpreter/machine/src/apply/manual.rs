//! Folding of steps that wait for an operator: requested, resolved.

use crate::event::{Decision, EventId, Failure, Resolution};
use crate::state::{FrameId, State, VisitPhase};
use starbridge_flow::time::Seconds;

impl State {
    pub(super) fn fold_manual(&mut self, id: FrameId, request: EventId, failure: &Failure) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        if !matches!(visit.phase, VisitPhase::Failed { .. }) {
            return None;
        }
        visit.phase = VisitPhase::Manual {
            failure: failure.clone(),
            request,
        };
        self.data.manual.insert(request, id);
        Some(())
    }

    /// `retry` begins another attempt with all counts unchanged, `succeed` gives the output, `fail` is final.
    pub(super) fn fold_resolved(&mut self, id: FrameId, request: EventId, resolution: &Resolution) -> Option<()> {
        self.data.manual.remove(&request)?;
        let visit = self.frames.get_mut(id)?.active()?;
        let VisitPhase::Manual { failure, .. } = &visit.phase else {
            return None;
        };
        let step = visit.step;
        let again = resolution.decision == Decision::Retry;
        visit.phase = match &resolution.decision {
            Decision::Retry => VisitPhase::Entered,
            Decision::Succeed { output } => VisitPhase::Succeeded {
                output: output.clone().unwrap_or_default(),
                goto: None,
            },
            Decision::Fail { failure: given } => VisitPhase::Failed {
                failure: given.as_ref().unwrap_or(failure).clone(),
                origin: step,
                retry_after: Seconds::ZERO,
                uncatchable: true,
            },
        };
        if again {
            self.drop_retained_inside(id);
        }
        Some(())
    }
}
