//! Redrive: an execution that ended without success goes on (section "operating executions").
//!
//! | what a list was in at the end | what comes |
//! |---|---|
//! | its steps were undone | it begins again before the first undone step |
//! | a composite inside which something was undone | the composite is entered again |
//! | another composite | goes on inside, where it failed or was cancelled |
//! | a step that failed, waited or was cancelled | it is entered again |
//! | a rollback that failed | the rollback goes on, with a skip without the undo that failed; what failed stays failed, what was
//! cancelled because of it goes on |

use crate::event::{EditedInput, Event, EventId, NewDefinition};
use crate::state::{
    ArmRun, Children, Closing, Done, DoneClass, Ending, Frame, FrameId, FramePosition, Outcome, ROOT, State, Status,
    StepRun, TaskPhase, TimerFor, Visit, VisitPhase, WaitRun,
};
use crate::steps::has_room;
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::time::{Seconds, Timestamp};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// What a redrive would do.
pub(crate) struct RedrivePlan {
    /// The event from which things are done again.
    pub(crate) from: EventId,
    /// The steps that are entered or undone again. Each has the event that began it before; they
    /// are in the order of these events.
    again: Vec<(EventId, StepId)>,
    /// The `StepEntered` events of the visits that new ones replace.
    pub(crate) enterable: BTreeSet<EventId>,
}

impl RedrivePlan {
    /// The steps that are entered or undone again, in the order in which they were begun before.
    pub(crate) fn steps(&self) -> Vec<StepId> {
        self.again.iter().map(|(_, step)| *step).collect()
    }
}

/// What goes on after a redrive, or after a child exited and made room for another one that the redrive resumes.
struct Resuming<'a> {
    flow: &'a Flow,
    /// The redrive, or the exit that made room.
    event: EventId,
    now: Timestamp,
    /// A rollback failed and goes on. What failed before it stays failed.
    undoing: bool,
    /// Resume all children at once, whatever the concurrency: for a plan.
    unbounded: bool,
    /// The call that an operator does not want to be undone any more.
    skipped: Option<EventId>,
    /// Steps to enter again, each with the event that entered it before.
    entered_again: Vec<(EventId, StepId)>,
    /// Undos to begin again, each with the event that began it before.
    undone_again: Vec<(EventId, StepId)>,
    /// The lists that go on, outer before inner.
    lists: Vec<FrameId>,
}

/// How a list goes on.
enum Next {
    /// In its place, unchanged.
    On,
    /// Inside the step.
    Inside,
    /// With a new visit of the step.
    Again,
}

impl<'a> Resuming<'a> {
    /// Nothing resumed yet, because of an event at that time.
    fn new(flow: &'a Flow, event: EventId, now: Timestamp) -> Self {
        Self {
            flow,
            event,
            now,
            undoing: false,
            unbounded: false,
            skipped: None,
            entered_again: Vec::new(),
            undone_again: Vec::new(),
            lists: Vec::new(),
        }
    }
}

impl State {
    /// What a redrive would do. `None`: the execution has not ended, or it succeeded.
    pub(crate) fn redrive_plan(&self, flow: &Flow) -> Option<RedrivePlan> {
        let redrivable = matches!(
            self.data.status,
            Status::Failed | Status::TimedOut | Status::Stopped | Status::RollbackFailed
        );
        if !redrivable {
            return None;
        }
        let mut resuming = Resuming {
            undoing: self.data.status == Status::RollbackFailed,
            unbounded: true,
            ..Resuming::new(flow, self.data.last.next(), self.data.last_time)
        };
        self.clone().resume_all(&mut resuming)?;
        let enterable = resuming.entered_again.iter().map(|(event, _)| *event).collect();
        let mut again = resuming.entered_again;
        again.append(&mut resuming.undone_again);
        again.sort_unstable();
        let from = again.first().map(|(event, _)| *event);
        let root = self.frames.get(ROOT)?;
        Some(RedrivePlan {
            from: from.unwrap_or(root.last),
            again,
            enterable,
        })
    }

    /// What a redrive with this definition would go on from, and which steps it would enter or undo again. `None`: the
    /// execution has not ended, or it succeeded.
    pub fn redriven_steps(&self, flow: &Flow) -> Option<(EventId, Vec<StepId>)> {
        let plan = self.redrive_plan(flow)?;
        Some((plan.from, plan.steps()))
    }

    pub(super) fn fold_redriven(
        &mut self,
        flow: &Flow,
        event: &Event,
        inputs: &[EditedInput],
        definition: Option<&NewDefinition>,
    ) -> Option<()> {
        if let Some(definition) = definition {
            let started = self.data.started.as_mut()?;
            started.version = definition.version;
            started.definition_hash = definition.hash.clone();
        }
        let undoing = match self.data.status {
            Status::Failed | Status::TimedOut | Status::Stopped => false,
            Status::RollbackFailed => true,
            _ => return None,
        };
        let mut resuming = Resuming {
            undoing,
            ..Resuming::new(flow, event.id, event.time)
        };
        let edits = inputs.iter().map(|edited| (edited.event, edited.input.clone()));
        self.data.edits = edits.collect();
        self.frames.forget_recent();
        self.resume_all(&mut resuming)?;
        self.update_resumed(flow, resuming.lists);
        Some(())
    }

    /// The undo that a skip would leave out: the frame of its rollback, and the call that is left out.
    pub(crate) fn failed_undo(&self) -> Option<(FrameId, EventId)> {
        if self.data.status != Status::RollbackFailed {
            return None;
        }
        let failed = self.frames.failed_rollbacks();
        failed.into_iter().find_map(|id| {
            let run = self.frames.get(id)?.undoing.as_ref()?.current.as_ref()?;
            Some((id, run.done.call))
        })
    }

    /// A rollback that failed goes on as with a redrive, but without the undo of this call.
    pub(super) fn fold_skipped(&mut self, flow: &Flow, event: &Event, of: EventId) -> Option<()> {
        let (id, failed) = self.failed_undo()?;
        if failed != of {
            return None;
        }
        let mut resuming = Resuming {
            undoing: true,
            skipped: Some(of),
            ..Resuming::new(flow, event.id, event.time)
        };
        self.frames.forget_recent();
        self.resume_all(&mut resuming)?;
        self.end_rollback_if_done(flow, id)?;
        self.update_resumed(flow, resuming.lists);
        if self.data.ending.is_some() {
            self.end_if_closed(flow);
        }
        Some(())
    }

    /// A child exited: resumes the next child that a redrive goes on with.
    pub(super) fn resume_next(&mut self, flow: &Flow, event: &Event, outer: FrameId) -> Option<()> {
        let children = self.frames.get(outer)?.visit()?.children()?;
        if children.to_resume.is_empty() || self.is_suspended(self.frames.get(outer)?) {
            return Some(());
        }
        let mut resuming = Resuming::new(flow, event.id, event.time);
        self.resume_children(&mut resuming, outer)?;
        self.update_resumed(flow, resuming.lists);
        Some(())
    }

    fn update_resumed(&mut self, flow: &Flow, mut lists: Vec<FrameId>) {
        lists.sort_unstable();
        lists.dedup();
        for id in lists {
            self.update_ready_queue(flow, id);
        }
    }

    fn resume_all(&mut self, resuming: &mut Resuming<'_>) -> Option<()> {
        self.data.status = Status::Running;
        self.data.failure = None;
        self.data.failed_step = None;
        self.data.draining = false;
        let interrupted = self.data.ending.take().and_then(|ending| ending.interrupted);
        if resuming.undoing {
            self.resume_rollbacks(resuming)?;
        }
        if let Some(ending) = interrupted {
            self.resume_ending(*ending);
            return Some(());
        }
        self.resume(resuming, ROOT)?;
        let root = self.frames.get(ROOT)?;
        if let Some(undoing) = root.undoing.as_ref().filter(|_| root.undone) {
            self.data.status = Status::RollingBack;
            self.data.failure = undoing.failure.clone();
        }
        if self.data.late_ending.is_none() {
            let bound = resuming.now.plus(resuming.flow.timeout);
            self.timers.set_execution_bound(bound, resuming.event);
        }
        Some(())
    }

    /// Goes on with the end that was in progress when a rollback failed.
    fn resume_ending(&mut self, ending: Ending) {
        self.data.status = Status::RollingBack;
        self.data.failure = Some(ending.failure.clone());
        self.data.ending = Some(ending);
    }

    /// Rollbacks that failed start again with the call that could not be undone.
    fn resume_rollbacks(&mut self, resuming: &mut Resuming<'_>) -> Option<()> {
        for id in self.frames.failed_rollbacks() {
            let frame = self.frames.get_mut(id)?;
            frame.last = resuming.event;
            restore_position(frame);
            let undoing = self.frames.resume_rollback(id)?;
            if let Some(run) = undoing.current.take()
                && resuming.skipped != Some(run.done.call)
            {
                resuming.undone_again.push((run.started, run.done.step));
                undoing.queue.push(run.done);
            }
            resuming.lists.push(id);
            // Closing made it exit. It exits again when it is undone.
            if let Some((outer, child)) = self.frames.get(id)?.parent
                && let Some(number) = child.number()
            {
                let visit = self.frames.get_mut(outer)?.visit_mut()?;
                let children = visit.children_mut()?;
                if children.release(number).is_some() {
                    children.reopen(number);
                }
            }
        }
        Some(())
    }

    /// Resumes a list.
    fn resume(&mut self, resuming: &mut Resuming<'_>, id: FrameId) -> Option<()> {
        let frame = self.frames.get_mut(id)?;
        if frame.undoing.is_some() {
            return Some(());
        }
        frame.last = resuming.event;
        resuming.lists.push(id);
        restore_position(frame);
        if frame.undone && !resuming.undoing {
            return self.rewind(resuming, id);
        }
        if let FramePosition::In(visit) = &mut frame.at
            && resuming.undoing
        {
            request_again(visit);
        }
        match &frame.at {
            FramePosition::Before(_) | FramePosition::Ended | FramePosition::Cancelled(_) => Some(()),
            FramePosition::Failed(..) if resuming.undoing => Some(()),
            FramePosition::Failed(visit, ..) | FramePosition::In(visit) => match next(visit, resuming.undoing) {
                Next::On => Some(()),
                Next::Inside => self.resume_inside(resuming, id),
                Next::Again => self.enter_again(resuming, id),
            },
        }
    }

    /// Moves a list in which something was undone back before the first undone step.
    fn rewind(&mut self, resuming: &mut Resuming<'_>, id: FrameId) -> Option<()> {
        let Some(rewind) = self.frames.get_mut(id)?.rewind.take() else {
            return self.enter_again(resuming, id);
        };
        self.leave_place(id)?;
        let edited = self.data.edits.remove(&rewind.entered);
        let frame = self.frames.get_mut(id)?;
        frame.edited = edited.map(Box::new);
        frame.undone = false;
        frame.at = FramePosition::Before(rewind.step);
        frame.local = rewind.local;
        frame.replaced = rewind.replaced;
        frame.pending_undo = None;
        frame.visits = rewind.visits;
        resuming.entered_again.push((rewind.entered, rewind.step));
        self.rebuild_frame(resuming.flow, id)
    }

    /// Replaces the visit that a list is in with a new one.
    fn enter_again(&mut self, resuming: &mut Resuming<'_>, id: FrameId) -> Option<()> {
        let pending_undo = self.pending_undo(resuming.flow, id);
        let visit = self.leave_place(id)??;
        let edited = self.data.edits.remove(&visit.entered);
        let frame = self.frames.get_mut(id)?;
        frame.edited = edited.map(Box::new);
        frame.undone = false;
        frame.visits = frame.before(visit.step, visit.entered).visits;
        frame.at = FramePosition::Before(visit.step);
        frame.pending_undo = pending_undo;
        resuming.entered_again.push((visit.entered, visit.step));
        Some(())
    }

    /// What a list's current task may have done and no rollback undid. Undoing the new visit undoes
    /// it, as with a retry.
    fn pending_undo(&mut self, flow: &Flow, id: FrameId) -> Option<Box<Done>> {
        let mut stack = Vec::new();
        let frame = self.frames.get_mut(id)?;
        let step = frame.visit()?.step;
        let of_list = (frame.done).pop_if(|done| done.class == DoneClass::Failed && done.step == step);
        let frame = self.frames.get(id)?;
        let _ = self.each_done_inside(flow, frame, frame.visit()?, &mut |done| {
            stack.push(done);
            ControlFlow::Continue(())
        });
        let class = DoneClass::Failed;
        let done = of_list.or(stack.pop())?;
        Some(Box::new(Done { class, ..done }))
    }

    /// Takes a list out of the step it is in, with everything inside.
    fn leave_place(&mut self, id: FrameId) -> Option<Option<Box<Visit>>> {
        let frame = self.frames.get_mut(id)?;
        let visit = match std::mem::replace(&mut frame.at, FramePosition::Ended) {
            FramePosition::In(visit) | FramePosition::Failed(visit, ..) => visit,
            _ => return Some(None),
        };
        self.drop_inside(&visit);
        Some(Some(visit))
    }

    /// Goes on inside the composite that a list is in.
    fn resume_inside(&mut self, resuming: &mut Resuming<'_>, id: FrameId) -> Option<()> {
        let frame = self.frames.get_mut(id)?;
        let mut visit = match std::mem::replace(&mut frame.at, FramePosition::Ended) {
            FramePosition::In(visit) | FramePosition::Failed(visit, ..) => visit,
            _ => return None,
        };
        let failed = !matches!(visit.phase, VisitPhase::Started(_));
        let mut inside = match std::mem::replace(&mut visit.phase, VisitPhase::Entered) {
            VisitPhase::Started(inside) => inside,
            _ => *visit.retained_inside.take()?,
        };
        let mut arm = None;
        let mut has_failed = failed;
        let mut has_children = false;
        match &mut inside {
            StepRun::Choice(ArmRun::Running { child, closing, .. }) => {
                *closing = None;
                arm = Some(*child);
            }
            // The step already has as many successes as it wants. Only its output is left to make.
            StepRun::Children(children) if children.closing == Some(Closing::Met) => {}
            StepRun::Children(children) => {
                has_failed |= children.closing.take().is_some();
                has_children = true;
            }
            _ => {}
        }
        visit.phase = VisitPhase::Started(inside);
        visit.retries.clear();
        visit.retried = 0;
        visit.late = None;
        frame.at = FramePosition::In(visit);
        self.restart_bound(resuming, id)?;
        if let Some(child) = arm {
            self.resume(resuming, child)?;
        }
        if has_children {
            self.choose_children(resuming, id, has_failed)?;
            self.resume_children(resuming, id)?;
        }
        Some(())
    }

    /// Starts the attempt's timeout again.
    fn restart_bound(&mut self, resuming: &Resuming<'_>, id: FrameId) -> Option<()> {
        let visit = self.frames.get(id)?.visit()?;
        // A choice's timeout does not count the time in which its arm is undone.
        if let VisitPhase::Started(StepRun::Choice(ArmRun::Running { child, .. })) = &visit.phase
            && self.frames.get(*child)?.undoing.is_some()
        {
            return Some(());
        }
        let Some(bound) = visit.bound(resuming.flow.step(visit.step)?) else {
            return Some(());
        };
        let bound = resuming.now.plus(bound);
        let visit = self.frames.get_mut(id)?.active()?;
        visit.deadline = Some(bound);
        let started = visit.started;
        self.timers.set(bound, started, TimerFor::Frame(id));
        Some(())
    }

    /// Chooses the children of a composite that go on: all that were cancelled, and, if the composite failed, those
    /// that failed too.
    fn choose_children(&mut self, resuming: &mut Resuming<'_>, id: FrameId, failed: bool) -> Option<()> {
        let children = self.frames.get(id)?.visit()?.children()?;
        let live: Vec<FrameId> = children.live.values().copied().collect();
        let goes_on = |number: &u32| match children.outcome(*number) {
            Outcome::Failed(_) => failed && !resuming.undoing,
            _ => true,
        };
        let to_resume: BTreeSet<u32> = children.retained.keys().copied().filter(goes_on).collect();
        for &number in &to_resume {
            if self.children_of(id)?.reopen(number) {
                self.forget_failure(id)?;
            }
        }
        self.children_of(id)?.to_resume = to_resume;
        for child in live {
            let frame = self.frames.get(child)?;
            let has_failed = matches!(frame.at, FramePosition::Failed(..));
            // A failure that was tolerated and undone only has to exit.
            if has_failed && (resuming.undoing || frame.undone && !failed) {
                self.frames.get_mut(child)?.last = resuming.event;
                resuming.lists.push(child);
                continue;
            }
            if has_failed {
                self.forget_failure(id)?;
            }
            self.resume(resuming, child)?;
        }
        Some(())
    }

    /// Resumes children as far as the concurrency allows.
    fn resume_children(&mut self, resuming: &mut Resuming<'_>, id: FrameId) -> Option<()> {
        loop {
            let visit = self.frames.get(id)?.visit()?;
            let kind = &resuming.flow.step(visit.step)?.kind;
            let children = self.children_of(id)?;
            let full = !has_room(kind, children) && !resuming.unbounded;
            let Some(&number) = children.to_resume.first() else {
                return Some(());
            };
            if full || children.closing.is_some() {
                return Some(());
            }
            children.to_resume.remove(&number);
            let child = children.release(number)?;
            self.resume(resuming, child)?;
        }
    }

    fn forget_failure(&mut self, id: FrameId) -> Option<()> {
        let children: &mut Children = self.children_of(id)?;
        children.failed = children.failed.saturating_sub(1);
        Some(())
    }
}

/// Puts a list that was cancelled back to its position then.
fn restore_position(frame: &mut Frame) {
    match std::mem::replace(&mut frame.at, FramePosition::Ended) {
        FramePosition::Cancelled(place) => frame.at = *place,
        place => frame.at = place,
    }
}

/// A step that waited for an operator asks again.
fn request_again(visit: &mut Visit) {
    if let VisitPhase::Manual { failure, .. } = &visit.phase {
        visit.phase = VisitPhase::Failed {
            failure: failure.clone(),
            origin: visit.step,
            retry_after: Seconds::ZERO,
            uncatchable: false,
        };
    }
}

/// How a list goes on in the step it is in.
fn next(visit: &Visit, undoing: bool) -> Next {
    if visit.undone && !undoing {
        return Next::Again;
    }
    match &visit.phase {
        VisitPhase::Entered if visit.attempt == 0 => Next::On,
        VisitPhase::Succeeded { .. } => Next::On,
        VisitPhase::Failed { .. } if undoing => Next::On,
        VisitPhase::Failed { .. } | VisitPhase::Manual { .. } => match visit.retained_inside.as_deref() {
            Some(StepRun::Children(children)) if children.entered == 0 => Next::Again,
            Some(_) => Next::Inside,
            None => Next::Again,
        },
        VisitPhase::Started(StepRun::Choice(ArmRun::Running { closing, .. })) if closing.is_some() && undoing => {
            Next::On
        }
        VisitPhase::Started(StepRun::Children(children)) => match &children.closing {
            Some(Closing::Met) => Next::On,
            Some(Closing::Failed { .. }) if undoing => Next::On,
            _ => Next::Inside,
        },
        VisitPhase::Started(inside) => match inside {
            StepRun::Choice(ArmRun::Running { .. }) => Next::Inside,
            StepRun::Simple | StepRun::Choice(_) | StepRun::Wait(WaitRun::Over) => Next::On,
            StepRun::Task(run) if matches!(run.phase, TaskPhase::Answered { .. }) => Next::On,
            _ => Next::Again,
        },
        _ => Next::Again,
    }
}
