//! Folding of steps that wait for an operator: requested, resolved.

use super::step::total_timeout;
use crate::event::{Decision, Event, EventId, Failure, Resolution};
use crate::state::{FrameId, State, TimerFor, VisitPhase};
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Seconds;
use starbridge_flow::value::Document;

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
        self.timers.cancel(visit.take_total());
        self.data.manual.insert(request, id);
        Some(())
    }

    /// `retry` begins another attempt with all counts unchanged and the full time of all attempts,
    /// `succeed` gives the output, `fail` is final.
    pub(super) fn fold_resolved(
        &mut self,
        flow: &Flow,
        event: &Event,
        id: FrameId,
        resolution: &Resolution,
    ) -> Option<()> {
        self.data.manual.remove(&event.caused_by)?;
        let from = self.counted_from(event.time);
        let visit = self.frames.get_mut(id)?.active()?;
        let VisitPhase::Manual { failure, .. } = &visit.phase else {
            return None;
        };
        let step = visit.step;
        let again = resolution.decision == Decision::Retry;
        visit.phase = match &resolution.decision {
            Decision::Retry => VisitPhase::Entered,
            Decision::Succeed { output } => VisitPhase::Succeeded {
                output: output.clone().map_or_else(Document::default, Document::from),
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
            visit.out_of_time = None;
            if let Some(millis) = total_timeout(flow, step, visit.settings.as_deref()) {
                let total_at = from.plus(millis);
                visit.total_at = Some(total_at);
                self.timers.set(total_at, visit.entered, TimerFor::Frame(id));
            }
            self.drop_retained_inside(id);
        }
        Some(())
    }
}
