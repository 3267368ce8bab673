//! Folding of timers: a pause is over, or an attempt timed out.

use super::step::total_timeout;
use crate::event::{EventId, Failure};
use crate::state::{ArmRun, Closing, FrameId, State, StepRun, TaskPhase, VisitPhase, WaitRun};
use starbridge_flow::graph::{FaultKind, Flow};
use starbridge_flow::time::Seconds;

impl State {
    pub(super) fn fold_timer(&mut self, flow: &Flow, id: FrameId, of: EventId) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        if visit.total_at.is_some() && visit.entered == of {
            return self.end_attempts(flow, id);
        }
        if visit.deadline.is_some() && visit.started == of {
            let deadline = visit.take_deadline();
            let bound = visit.bound(flow.step(visit.step)?).unwrap_or_default().as_secs();
            let failure = crate::turn::failure(
                &flow.fault_names.name(&FaultKind::Timeout),
                &format!("the step took longer than {bound} seconds"),
            );
            self.timers.cancel(deadline);
            if self.frames.has_rollback_inside(id) {
                self.frames.get_mut(id)?.active()?.late = Some(Box::new(failure));
                return Some(());
            }
            return self.time_out(id, failure);
        }
        let key = match &mut visit.phase {
            VisitPhase::Retrying { due, timer } if *timer == of => {
                let key = (*due, of);
                visit.phase = VisitPhase::Entered;
                key
            }
            VisitPhase::Started(StepRun::Wait(run)) => match run {
                WaitRun::Waiting { until, timer } if *timer == of => {
                    let key = (*until, of);
                    *run = WaitRun::Over;
                    key
                }
                _ => return None,
            },
            VisitPhase::Started(StepRun::Task(run)) => match run.phase {
                TaskPhase::Sleeping { due, timer } if timer == of => {
                    run.phase = TaskPhase::Ready;
                    let deadline = visit.take_deadline();
                    self.timers.cancel(deadline.into_iter().chain([(due, of)]));
                    return Some(());
                }
                _ => return None,
            },
            _ => return None,
        };
        self.timers.cancel([key]);
        Some(())
    }

    /// The attempts of a task took too long together, so no further attempt may begin. A wait ends;
    /// a call in flight is cancelled next; a result that has arrived still counts.
    fn end_attempts(&mut self, flow: &Flow, id: FrameId) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        let seconds = total_timeout(flow, visit.step, visit.settings.as_deref())
            .unwrap_or_default()
            .as_secs();
        let failure = crate::turn::failure(
            &flow.fault_names.name(&FaultKind::Timeout),
            &format!("all attempts of the step together took longer than {seconds} seconds"),
        );
        visit.out_of_time = Some(Box::new(failure.clone()));
        let bounds = visit.take_total().into_iter().chain(visit.take_deadline());
        let faulted = TaskPhase::Faulted {
            failure,
            retry_after: Seconds::ZERO,
        };
        let pause = match &mut visit.phase {
            VisitPhase::Retrying { due, timer } => {
                let pause = (*due, *timer);
                visit.phase = VisitPhase::Entered;
                Some(pause)
            }
            VisitPhase::Started(StepRun::Task(run)) => match run.phase {
                TaskPhase::Sleeping { due, timer } => {
                    run.phase = faulted;
                    Some((due, timer))
                }
                TaskPhase::Ready | TaskPhase::Pending { .. } => {
                    run.phase = faulted;
                    None
                }
                _ => None,
            },
            _ => None,
        };
        self.timers.cancel(bounds.chain(pause));
        Some(())
    }

    /// A rollback has ended: timeouts that came meanwhile take effect, from inside out.
    pub(super) fn take_late_effects(&mut self, from: FrameId) -> Option<()> {
        let mut next = self.frames.get(from)?.parent;
        while let Some((id, _)) = next {
            next = self.frames.get(id)?.parent;
            let late = self.frames.get(id)?.visit().is_some_and(|visit| visit.late.is_some());
            if late && !self.frames.has_rollback_inside(id) {
                let failure = self.frames.get_mut(id)?.active()?.late.take()?;
                self.time_out(id, *failure)?;
            }
        }
        Some(())
    }

    /// An attempt timed out: what runs inside it is closed.
    fn time_out(&mut self, id: FrameId, failure: Failure) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        let origin = visit.step;
        let sleeping = match &mut visit.phase {
            VisitPhase::Started(StepRun::Children(children)) => {
                if children.closing.is_none() {
                    children.closing = Some(Closing::Failed { failure, origin });
                }
                None
            }
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { closing, .. })) => {
                *closing = Some(failure);
                None
            }
            VisitPhase::Started(StepRun::Task(run)) => {
                let phase = TaskPhase::Faulted {
                    failure,
                    retry_after: Seconds::ZERO,
                };
                match std::mem::replace(&mut run.phase, phase) {
                    TaskPhase::Sleeping { due, timer } => Some((due, timer)),
                    _ => None,
                }
            }
            _ => return None,
        };
        self.timers.cancel(sleeping);
        self.suspend(id);
        Some(())
    }
}
