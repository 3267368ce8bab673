//! Folding of rollbacks: one call after the other, last done first undone.

use super::call::{pending_of, timed_out};
use super::step::{count_retry, done_of_task};
use crate::event::{Child, Event, EventId, EventKind, Failure};
use crate::state::{
    ArmRun, Done, DoneClass, Ending, Frame, FrameId, FramePosition, ROOT, State, Status, StepRun, TimerFor, UndoPhase,
    UndoPolling, UndoRun, Undoing, Visit, VisitPhase,
};
use starbridge_flow::graph::{FaultKind, Flow, Poll, StepId, StepKind};
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_flow::value::Overlay;
use std::ops::ControlFlow;

/// Takes what could be undone, one after the other, until it has seen enough.
pub(super) type Found<'a> = &'a mut dyn FnMut(Done) -> ControlFlow<()>;

impl State {
    pub(super) fn fold_rollback(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        match &event.detail {
            EventKind::RollbackStarted { of } => self.fold_rollback_started(flow, event.id, id, *of)?,
            EventKind::RollbackSucceeded => self.fold_rollback_succeeded(flow, id)?,
            EventKind::RollbackFailed { original, .. } => {
                self.fold_rollback_failed(flow, event.id, id, original.as_ref())?;
            }
            _ => self.fold_rollback_attempt(flow, event, id)?,
        }
        self.update_ready_queue(flow, id);
        if self.data.ending.is_some() {
            self.end_if_closed(flow);
        }
        Some(())
    }

    fn fold_rollback_started(&mut self, flow: &Flow, event: EventId, id: FrameId, of: EventId) -> Option<()> {
        if self.frames.get(id)?.undoing.is_none() {
            let failure = self.failure_to_undo(id);
            if !self.inside_is_undone(id) {
                self.cancel_choice_bound(id);
            }
            let stack = self.take_undo_stack(flow, id);
            self.leave_list(flow, id);
            if id == ROOT && self.data.ending.is_none() && !self.inside_is_undone(ROOT) {
                self.data.status = Status::RollingBack;
                self.data.failure = failure.clone();
            }
            self.frames.begin_rollback(id, Undoing::new(stack, failure))?;
        }
        let undoing = self.frames.get_mut(id)?.undoing.as_mut()?;
        let done = undoing.queue.pop()?;
        if done.call != of || undoing.current.is_some() {
            return None;
        }
        undoing.current = Some(UndoRun {
            input: done.input.clone(),
            done,
            started: event,
            attempt: 0,
            retries: Vec::new(),
            redeliver: 0,
            retried: 0,
            last_call: EventId(0),
            polling: None,
            phase: UndoPhase::Entered,
        });
        Some(())
    }

    /// The rollback of an arm begins. Its choice's timeout does not count that time.
    fn cancel_choice_bound(&mut self, arm: FrameId) {
        let parent = self.frames.get(arm).and_then(|frame| frame.parent);
        if let Some((outer, Child::Arm(_))) = parent
            && let Some(visit) = self.frames.get_mut(outer).and_then(Frame::active)
        {
            let deadline = visit.take_deadline();
            self.timers.cancel(deadline);
        }
    }

    fn fold_rollback_succeeded(&mut self, flow: &Flow, id: FrameId) -> Option<()> {
        let frame = self.frames.get_mut(id)?;
        let undoing = frame.undoing.as_mut()?;
        undoing.current = None;
        self.end_rollback_if_done(flow, id)
    }

    /// Ends the rollback in a frame if nothing is left to undo.
    pub(super) fn end_rollback_if_done(&mut self, flow: &Flow, id: FrameId) -> Option<()> {
        let undoing = self.frames.get(id)?.undoing.as_ref()?;
        if undoing.current.is_none() && undoing.queue.is_empty() {
            self.frames.end_rollback(id)?;
            self.take_late_effects(id)?;
            if !self.frames.has_rollback()
                && self.data.ending.is_none()
                && let Some(late) = self.data.late_ending.take()
            {
                let last = self.data.last.next();
                self.begin_ending(flow, last, late);
            }
            self.update_ready_queue_outward(flow, id);
        }
        Some(())
    }

    /// A rollback failed: the execution ends here, after the other rollbacks in progress have ended.
    fn fold_rollback_failed(
        &mut self,
        flow: &Flow,
        event: EventId,
        id: FrameId,
        original: Option<&Failure>,
    ) -> Option<()> {
        let failure = self.frames.fail_rollback(id, original)?;
        let failure = match &self.data.ending {
            Some(ending) => ending.failure.clone(),
            None => failure.unwrap_or_else(|| crate::turn::failure("", "")),
        };
        let interrupted = match &self.data.ending {
            Some(ending) if ending.status == Status::RollbackFailed => ending.interrupted.clone(),
            ending => ending.clone().map(Box::new),
        };
        let ending = Ending {
            status: Status::RollbackFailed,
            failure,
            undo: false,
            interrupted,
        };
        if self.data.ending.is_some() {
            self.data.ending = Some(ending);
            self.end_if_closed(flow);
        } else {
            self.begin_ending(flow, event, ending);
        }
        Some(())
    }

    /// Folds an event of an attempt at undoing.
    fn fold_rollback_attempt(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        let run = self.frames.get_mut(id)?.undoing.as_mut()?.current.as_mut()?;
        let phase = match &event.detail {
            EventKind::StepStarted { attempt, input, .. } => {
                run.attempt = *attempt;
                run.input = match input {
                    Some(mapped) => Overlay::new(mapped.clone()),
                    None => {
                        let mut input = run.done.input.clone();
                        input.merge_document(&run.done.result);
                        input
                    }
                };
                run.polling = poll_of(flow, run.done.step).map(|_| UndoPolling::default());
                UndoPhase::Started
            }
            EventKind::StepFailed { failure, attempt } => {
                run.attempt = *attempt;
                let retry_after = match run.phase {
                    UndoPhase::Faulted { retry_after, .. } => retry_after,
                    _ => Seconds::ZERO,
                };
                UndoPhase::Failed {
                    failure: failure.clone(),
                    retry_after,
                }
            }
            EventKind::RetryScheduled { policy, due, .. } => {
                count_retry(&mut run.retries, *policy);
                run.retried += 1;
                self.timers.set(*due, event.id, TimerFor::Rollback(id));
                UndoPhase::Retrying {
                    due: *due,
                    timer: event.id,
                }
            }
            EventKind::TimerFired { of } => {
                let phase = after_timer(flow, run, *of)?;
                self.timers.cancel(run.timer_keys());
                phase
            }
            _ => return self.fold_rollback_call(flow, event, id),
        };
        run.phase = phase;
        Some(())
    }

    /// Folds an event of a call that undoes.
    fn fold_rollback_call(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        let bound = self.undo_bound(event);
        let run = self.frames.get_mut(id)?.undoing.as_mut()?.current.as_mut()?;
        match &event.detail {
            EventKind::TaskScheduled(scheduled) => {
                run.phase = UndoPhase::InFlight { call: event.id };
                run.last_call = event.id;
                if let Some(polling) = &mut run.polling {
                    polling.calls = scheduled.call;
                    polling.timeout_at = scheduled.timeout_at;
                }
                self.open_call(event, id, true, scheduled);
            }
            EventKind::TaskSubmitted { receipt, .. } => {
                self.calls.acknowledge(event.caused_by)?;
                let pending = run.polling.as_mut().zip(pending_of(receipt.as_ref()));
                if let Some((polling, (location, retry_after))) = pending {
                    polling.location = location;
                    run.phase = UndoPhase::Pending { retry_after };
                    self.close_call(event.caused_by);
                }
            }
            EventKind::TaskSucceeded { result, .. } if run.polling.is_some() => {
                let polling = run.polling.as_mut()?;
                polling.timeout_at = polling.timeout_at.or(bound);
                run.phase = UndoPhase::Polled { result: result.clone() };
                self.close_call(event.caused_by);
            }
            EventKind::PollScheduled { due, .. } => {
                run.phase = UndoPhase::Sleeping {
                    due: *due,
                    timer: event.id,
                    deadline: run.polling.as_ref()?.timeout_at,
                };
                for (due, set_by) in run.timer_keys() {
                    self.timers.set(due, set_by, TimerFor::Rollback(id));
                }
            }
            _ => {
                run.phase = undo_answer(flow, event)?;
                if let EventKind::TaskTimedOut { redeliver, .. } = event.detail {
                    run.redeliver = redeliver.unwrap_or(0);
                    self.give_up_call(event.caused_by);
                }
                self.close_call(event.caused_by);
            }
        }
        Some(())
    }

    /// The deadline of an attempt that asks workers repeatedly. It counts from the time when a
    /// worker first took the task.
    fn undo_bound(&self, event: &Event) -> Option<Timestamp> {
        let EventKind::TaskSucceeded { held_time, .. } = &event.detail else {
            return None;
        };
        let bound = self.calls.get(event.caused_by)?.timeout?;
        Some(self.counted_from(held_time.unwrap_or(event.time)).plus(bound))
    }

    /// Whether the rollback in a frame undoes what is inside its step, and not what its list did.
    fn inside_is_undone(&self, id: FrameId) -> bool {
        self.data.ending.is_none()
            && self.frames.get(id).is_some_and(
                |frame| matches!(&frame.at, FramePosition::In(visit) if matches!(visit.phase, VisitPhase::Started(_))),
            )
    }

    /// The failure because of which a rollback begins in a frame.
    fn failure_to_undo(&self, id: FrameId) -> Option<Failure> {
        if let Some(ending) = &self.data.ending {
            return Some(ending.failure.clone());
        }
        match &self.frames.get(id)?.at {
            FramePosition::Failed(_, failure, _) => Some(failure.clone()),
            FramePosition::In(visit) => match &visit.phase {
                VisitPhase::Failed { failure, .. } => Some(failure.clone()),
                _ => Self::closing_failure(visit),
            },
            _ => None,
        }
    }

    /// What a failure in this frame would undo: what is inside its step while that is being closed, otherwise what
    /// its list did.
    pub(crate) fn undo_stack(&self, flow: &Flow, id: FrameId) -> Vec<Done> {
        let mut stack = Vec::new();
        let _ = self.each_undo(flow, id, &mut |done| {
            stack.push(done);
            ControlFlow::Continue(())
        });
        stack
    }

    /// Whether a failure in this frame would undo anything. Thousands of children ask one after the other, so this ends
    /// at the first thing.
    pub(crate) fn has_undo(&self, flow: &Flow, id: FrameId) -> bool {
        self.each_undo(flow, id, &mut |_| ControlFlow::Break(())).is_break()
    }

    fn each_undo(&self, flow: &Flow, id: FrameId, found: Found<'_>) -> ControlFlow<()> {
        let Some(frame) = self.frames.get(id) else {
            return ControlFlow::Continue(());
        };
        match &frame.at {
            FramePosition::In(visit) if self.inside_is_undone(id) => self.each_done_inside(flow, frame, visit, found),
            _ => self.each_done_of(flow, frame, found),
        }
    }

    /// What completed in these frames and has not been undone.
    pub(crate) fn completed_in(&self, flow: &Flow, frames: &[FrameId]) -> Vec<Done> {
        let mut stack = Vec::new();
        for frame in frames.iter().filter_map(|id| self.frames.get(*id)) {
            let _ = self.each_done_of(flow, frame, &mut |done| {
                stack.extend((done.class == DoneClass::Completed).then_some(done));
                ControlFlow::Continue(())
            });
        }
        stack
    }

    /// Everything a frame did that has not been undone.
    fn each_done_of(&self, flow: &Flow, frame: &Frame, found: Found<'_>) -> ControlFlow<()> {
        frame.done.iter().cloned().try_for_each(&mut *found)?;
        match frame.visit() {
            Some(visit) => self.each_done_inside(flow, frame, visit, found),
            None => ControlFlow::Continue(()),
        }
    }

    pub(super) fn each_done_inside(
        &self,
        flow: &Flow,
        frame: &Frame,
        visit: &Visit,
        found: Found<'_>,
    ) -> ControlFlow<()> {
        let cancelled = |done: Done| Done {
            class: DoneClass::Cancelled,
            order: done.call,
            ..done
        };
        let of_frame = |id: &FrameId, found: Found<'_>| match self.frames.get(*id) {
            Some(inner) => self.each_done_of(flow, inner, found),
            None => ControlFlow::Continue(()),
        };
        match &visit.phase {
            VisitPhase::Failed { .. } => visit.failed_task.as_deref().cloned().into_iter().try_for_each(found),
            VisitPhase::Succeeded { .. } => ControlFlow::Continue(()),
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { child, .. })) => of_frame(child, found),
            VisitPhase::Started(StepRun::Choice(ArmRun::Ended { done, .. })) => {
                done.iter().cloned().try_for_each(found)
            }
            VisitPhase::Started(StepRun::Children(children)) => {
                children.done.iter().cloned().try_for_each(&mut *found)?;
                let mut inside = children.live.values().chain(children.retained.values());
                inside.try_for_each(|child| of_frame(child, &mut *found))
            }
            _ => {
                let current = flow.step(visit.step).and_then(|step| {
                    done_of_task(flow, step, visit, &frame.path, DoneClass::Cancelled, EventId::default())
                });
                let current = current.or_else(|| visit.failed_task.as_deref().cloned()).map(cancelled);
                current.into_iter().try_for_each(found)
            }
        }
    }

    /// Takes out what a failure in this frame undoes.
    fn take_undo_stack(&mut self, flow: &Flow, id: FrameId) -> Vec<Done> {
        let stack = self.undo_stack(flow, id);
        let inside_only = self.inside_is_undone(id);
        self.clear_undo_stack(id, inside_only);
        if let Some(frame) = self.frames.get_mut(id) {
            match frame.visit_mut() {
                Some(visit) if inside_only => visit.undone = true,
                _ => frame.undone = true,
            }
        }
        stack
    }

    pub(super) fn clear_undo_stack(&mut self, id: FrameId, inside_only: bool) {
        let Some(frame) = self.frames.get_mut(id) else {
            return;
        };
        if !inside_only {
            frame.done.clear();
        }
        let Some(visit) = frame.visit_mut() else {
            return;
        };
        visit.failed_task = None;
        let inside: Vec<FrameId> = match &mut visit.phase {
            VisitPhase::Started(StepRun::Task(run)) => {
                run.called = false;
                return;
            }
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { child, .. })) => vec![*child],
            VisitPhase::Started(StepRun::Choice(ArmRun::Ended { done, .. })) => {
                done.clear();
                return;
            }
            VisitPhase::Started(StepRun::Children(children)) => {
                children.done.clear();
                children
                    .live
                    .values()
                    .chain(children.retained.values())
                    .copied()
                    .collect()
            }
            _ => return,
        };
        for child in inside {
            self.clear_undo_stack(child, false);
        }
    }
}

/// How the rollback of a step polls.
fn poll_of(flow: &Flow, step: StepId) -> Option<&Poll> {
    match &flow.step(step)?.kind {
        StepKind::Task(task) => task.rollback.as_ref()?.poll.as_ref(),
        _ => None,
    }
}

/// What comes after a timer that a rollback set: a pause is over, or the attempt timed out while it slept.
fn after_timer(flow: &Flow, run: &UndoRun, of: EventId) -> Option<UndoPhase> {
    match run.phase {
        UndoPhase::Retrying { timer, .. } if timer == of => Some(UndoPhase::Entered),
        UndoPhase::Sleeping { timer, .. } if timer == of => Some(UndoPhase::Started),
        UndoPhase::Sleeping { deadline: Some(_), .. } if run.started == of => Some(UndoPhase::Faulted {
            failure: timed_out(flow, &flow.fault_names.name(&FaultKind::Timeout)),
            retry_after: Seconds::ZERO,
        }),
        _ => None,
    }
}

/// What a report on an undoing call means for the rollback.
fn undo_answer(flow: &Flow, event: &Event) -> Option<UndoPhase> {
    let (failure, retry_after) = match &event.detail {
        EventKind::TaskSucceeded { .. } => return Some(UndoPhase::Answered),
        EventKind::TaskFailed {
            failure, retry_after, ..
        } => (failure.clone(), retry_after.unwrap_or_default()),
        EventKind::TaskSubmitFailed { failure, .. } => (failure.clone(), Seconds::ZERO),
        EventKind::TaskTimedOut { error, .. } => (timed_out(flow, error), Seconds::ZERO),
        _ => return None,
    };
    Some(UndoPhase::Faulted { failure, retry_after })
}
