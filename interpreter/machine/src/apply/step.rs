//! Steps: entered, started, ended, left.

use crate::effect::is_queue;
use crate::event::{Child, Decision, Detail, Event, EventId, Failure, Resolution};
use crate::state::{
    ArmRun, At, Children, Closing, DoneClass, Frame, FrameId, Inside, Phase, State, TaskPhase, TaskRun, TimerFor,
    Visit, WaitRun, inside_of,
};
use starbridge_fdl::graph::{Amount, Enter, FaultKind, Flow, Leave, Passing, Step, StepId, StepKind};
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Overlay, Value};

impl State {
    pub(super) fn fold_step(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        let step = event.step?;
        match &event.detail {
            Detail::StepEntered => self.fold_entered(flow, event, id, step)?,
            Detail::StepStarted { attempt, input, .. } => {
                self.fold_step_started(flow, event, id, *attempt, input.clone())?;
            }
            Detail::StepSucceeded { output, .. } => self.fold_succeeded(flow, event, id, output.clone())?,
            Detail::StepFailed { failure, attempt } => self.fold_failed(flow, id, step, failure, *attempt)?,
            Detail::StepExited { goto, caught, .. } => self.fold_exited(flow, id, step, *goto, caught.as_ref())?,
            Detail::ChoiceTaken { arm } => self.fold_choice(flow, event, id, step, *arm)?,
            Detail::WaitStarted { until } => self.fold_wait(id, event.id, *until)?,
            Detail::RetryScheduled { policy, due, .. } => self.fold_retry(id, event.id, *policy, *due)?,
            Detail::TimerFired { of } => self.fold_timer(flow, id, *of)?,
            Detail::ManualRequested(failure) => self.fold_manual(id, event.id, failure)?,
            Detail::ManualResolved(resolution) => self.fold_resolved(id, event.caused_by, resolution)?,
            _ => return None,
        }
        self.settle(flow, id);
        Some(())
    }

    fn fold_entered(&mut self, flow: &Flow, event: &Event, id: FrameId, step: StepId) -> Option<()> {
        let frame = self.book.frames.get_mut(&id)?;
        match frame.at {
            At::Before(next) if next == step => {}
            _ => return None,
        }
        let number = if flow.list(frame.list)?.loops {
            let count = frame.visits.entry(step).or_insert(0);
            *count += 1;
            *count
        } else {
            1
        };
        let left_over = frame.left_over.take();
        frame.at = At::In(Box::new(Visit {
            step,
            entered: event.id,
            number,
            attempt: 0,
            started: EventId::default(),
            mapped: None,
            failed_task: left_over.map(|done| *done),
            kept: None,
            undone: false,
            late: None,
            calls: 0,
            input: Overlay::default(),
            retries: Vec::new(),
            redeliver: 0,
            retried: 0,
            deadline: None,
            phase: Phase::Entered,
        }));
        Some(())
    }

    fn fold_step_started(
        &mut self,
        flow: &Flow,
        event: &Event,
        id: FrameId,
        attempt: u32,
        mapped: Option<Object>,
    ) -> Option<()> {
        let frame = self.book.frames.get_mut(&id)?;
        let shown = frame.data.clone();
        let plain = frame.input.clone();
        let visit = frame.active()?;
        let step = flow.step(visit.step)?;
        if !matches!(visit.phase, Phase::Entered) || event.step != Some(visit.step) {
            return None;
        }
        visit.attempt = attempt;
        visit.calls = 0;
        visit.late = None;
        visit.redeliver = 0;
        visit.undone = false;
        visit.started = event.id;
        visit.input = step_input(step, mapped.as_ref(), shown, plain);
        visit.mapped = mapped;
        visit.phase = Phase::Started(begin(step, &visit.input, event));
        // A task's bound is that of its calls, in `TaskScheduled`; only while it sleeps between polls is it a timer of its own.
        if let (Some(Amount::Fixed(millis)), false) = (&step.timeout, matches!(step.kind, StepKind::Task(_))) {
            let deadline = event.time.plus_millis(*millis);
            visit.deadline = Some(deadline);
            self.book.timers.insert((deadline, event.id), TimerFor::Frame(id));
        }
        Some(())
    }

    fn fold_succeeded(&mut self, flow: &Flow, event: &Event, id: FrameId, output: Option<Object>) -> Option<()> {
        let parked = self.book.frames.get(&id)?.visit().map(inside_of)?;
        let mut completed = self.completed_in(flow, &parked);
        let frame = self.book.frames.get_mut(&id)?;
        let path = frame.path.clone();
        let At::In(visit) = &mut frame.at else {
            return None;
        };
        let step = flow.step(visit.step)?;
        let undoable = done_of_task(step, visit, path, DoneClass::Completed, event.id);
        let Phase::Started(inside) = std::mem::replace(&mut visit.phase, Phase::Entered) else {
            return None;
        };
        let (local, goto, mut done) = local_of(inside);
        let output = output.unwrap_or(match step.leave {
            Leave::Local => local,
            Leave::Nothing | Leave::Program(_) => Object::new(),
        });
        let deadline = visit.deadline.take().map(|deadline| (deadline, visit.started));
        visit.phase = Phase::Succeeded { output, goto };
        visit.failed_task = None;
        let (step, entered) = (visit.step, visit.entered);
        done.append(&mut completed);
        done.extend(undoable);
        if frame.done.is_empty() && !done.is_empty() {
            frame.rewind = Some(Box::new(frame.before(step, entered)));
        }
        frame.done.append(&mut done);
        self.disarm([deadline, None]);
        for child in parked {
            self.drop_frame(child);
        }
        Some(())
    }

    fn fold_failed(&mut self, flow: &Flow, id: FrameId, step: StepId, failure: &Failure, attempt: u32) -> Option<()> {
        let visit = self.book.frames.get_mut(&id)?.active()?;
        if visit.step != step {
            return None;
        }
        let (origin, retry_after) = match &visit.phase {
            Phase::Started(Inside::Task(run)) => match &run.phase {
                TaskPhase::Faulted { retry_after, .. } => (step, *retry_after),
                _ => (step, 0),
            },
            Phase::Started(Inside::Children(children)) => match &children.closing {
                Some(Closing::Failed { origin, .. }) => (*origin, 0),
                _ => (step, 0),
            },
            Phase::Started(Inside::Choice(ArmRun::Running {
                child, closing: None, ..
            })) => {
                let child = *child;
                self.leave_list(flow, child);
                match self.book.frames.get(&child).map(|frame| &frame.at) {
                    Some(At::Failed(_, _, origin)) => (*origin, 0),
                    _ => return None,
                }
            }
            _ => (step, 0),
        };
        let frame = self.book.frames.get_mut(&id)?;
        let path = frame.path.clone();
        let visit = frame.active()?;
        visit.attempt = attempt;
        let failed_task = done_of_task(flow.step(step)?, visit, path, DoneClass::Failed, EventId::default());
        let deadline = visit.deadline.take().map(|deadline| (deadline, visit.started));
        let inside = std::mem::replace(
            &mut visit.phase,
            Phase::Failed {
                failure: failure.clone(),
                origin,
                retry_after,
                uncatchable: attempt == 0,
            },
        );
        visit.failed_task = failed_task.or(visit.failed_task.take());
        self.disarm([deadline, None]);
        self.keep_for_redrive(id, inside);
        for child in self.book.frames.get(&id)?.visit().map(inside_of).unwrap_or_default() {
            self.settle(flow, child);
        }
        Some(())
    }

    fn fold_exited(
        &mut self,
        flow: &Flow,
        id: FrameId,
        step: StepId,
        goto: Option<StepId>,
        caught: Option<&Object>,
    ) -> Option<()> {
        self.drop_kept(id);
        let frame = self.book.frames.get_mut(&id)?;
        let visit = frame.active()?;
        if visit.step != step {
            return None;
        }
        let output = match (&mut visit.phase, caught) {
            (Phase::Failed { .. }, Some(caught)) => caught.clone(),
            (Phase::Succeeded { output, .. }, None) => std::mem::take(output),
            _ => return None,
        };
        let compiled = flow.step(step)?;
        let next = match (goto, &compiled.kind) {
            (Some(goto), _) => Some(goto),
            (None, StepKind::Succeed) => None,
            (None, _) => compiled.next,
        };
        // The step goes first: it may hold the frame's data, and only what nobody else holds changes without a copy.
        frame.at = next.map_or(At::Ended, At::Before);
        match flow.passing {
            Passing::Merge => {
                frame.local.merge(&output);
                frame.data.merge(&output);
            }
            Passing::Replace => {
                frame.input = Overlay::new(output.clone());
                frame.data = frame.input.clone();
                frame.local = output;
                frame.replaced = true;
            }
        }
        if next.is_none() && matches!(frame.parent, Some((_, Child::Arm(_)))) {
            self.end_arm(flow, id)?;
        }
        Some(())
    }

    /// An arm that ended is at once part of its choice: it has no event of its own.
    fn end_arm(&mut self, flow: &Flow, arm: FrameId) -> Option<()> {
        let frozen = self.book.frames.get(&arm).is_some_and(|frame| self.is_frozen(frame));
        if frozen {
            return Some(());
        }
        let frame = self.drop_frame(arm)?;
        let (parent, _) = frame.parent?;
        let last = frame.last;
        let outer = self.book.frames.get_mut(&parent)?;
        outer.last = last;
        let visit = outer.active()?;
        let Phase::Started(Inside::Choice(ArmRun::Running { goto, .. })) = visit.phase else {
            return None;
        };
        visit.phase = Phase::Started(Inside::Choice(ArmRun::Ended {
            local: frame.local,
            goto,
            done: frame.done,
        }));
        self.settle(flow, parent);
        Some(())
    }

    fn fold_choice(
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
        let frame = self.book.frames.get_mut(&id)?;
        let path = frame.path.clone();
        let visit = frame.active()?;
        if visit.step != step || !matches!(visit.phase, Phase::Started(Inside::Choice(ArmRun::Deciding))) {
            return None;
        }
        let goto = arm.and_then(|arm| arm.goto);
        let Some((list, number)) = arm.and_then(|arm| arm.list).zip(taken) else {
            visit.phase = Phase::Started(Inside::Choice(ArmRun::Ended {
                local: Object::new(),
                goto,
                done: Vec::new(),
            }));
            return Some(());
        };
        let child = Child::Arm(number);
        let mut inner = Frame::inside(flow, list, (id, child), path.inside(step, child), visit.input.clone());
        inner.last = event.id;
        visit.phase = Phase::Started(Inside::Choice(ArmRun::Running {
            child: event.id,
            goto,
            closing: None,
        }));
        self.add_frame(event.id, inner);
        Some(())
    }

    fn fold_wait(&mut self, id: FrameId, event: EventId, until: Timestamp) -> Option<()> {
        let visit = self.book.frames.get_mut(&id)?.active()?;
        match &mut visit.phase {
            Phase::Started(Inside::Wait(run @ WaitRun::New)) => *run = WaitRun::Waiting { until, timer: event },
            _ => return None,
        }
        self.book.timers.insert((until, event), TimerFor::Frame(id));
        Some(())
    }

    fn fold_retry(&mut self, id: FrameId, event: EventId, policy: u32, due: Timestamp) -> Option<()> {
        self.drop_kept(id);
        let visit = self.book.frames.get_mut(&id)?.active()?;
        if !matches!(visit.phase, Phase::Failed { .. }) {
            return None;
        }
        count_retry(&mut visit.retries, policy);
        visit.retried += 1;
        visit.phase = Phase::Retrying { due, timer: event };
        self.book.timers.insert((due, event), TimerFor::Frame(id));
        Some(())
    }

    fn fold_manual(&mut self, id: FrameId, request: EventId, failure: &Failure) -> Option<()> {
        let visit = self.book.frames.get_mut(&id)?.active()?;
        if !matches!(visit.phase, Phase::Failed { .. }) {
            return None;
        }
        visit.phase = Phase::Manual {
            failure: failure.clone(),
            request,
        };
        self.book.manual.insert(request, id);
        Some(())
    }

    /// `retry` begins another attempt with all counts as they are, `succeed` gives the output, `fail` is final.
    fn fold_resolved(&mut self, id: FrameId, request: EventId, resolution: &Resolution) -> Option<()> {
        self.book.manual.remove(&request)?;
        let visit = self.book.frames.get_mut(&id)?.active()?;
        let Phase::Manual { failure, .. } = &visit.phase else {
            return None;
        };
        let step = visit.step;
        let again = resolution.decision == Decision::Retry;
        visit.phase = match &resolution.decision {
            Decision::Retry => Phase::Entered,
            Decision::Succeed { output } => Phase::Succeeded {
                output: output.clone().unwrap_or_default(),
                goto: None,
            },
            Decision::Fail { failure: given } => Phase::Failed {
                failure: given.as_ref().unwrap_or(failure).clone(),
                origin: step,
                retry_after: 0,
                uncatchable: true,
            },
        };
        if again {
            self.drop_kept(id);
        }
        Some(())
    }

    fn fold_timer(&mut self, flow: &Flow, id: FrameId, of: EventId) -> Option<()> {
        let seconds = |millis: Option<&Amount>| match millis {
            Some(Amount::Fixed(millis)) => millis / 1000,
            _ => 0,
        };
        let visit = self.book.frames.get_mut(&id)?.active()?;
        if visit.deadline.is_some() && visit.started == of {
            let deadline = visit.deadline.take()?;
            let bound = seconds(flow.step(visit.step)?.timeout.as_ref());
            let failure = crate::turn::failure(
                &flow.fault_names.name(&FaultKind::Timeout),
                &format!("the step took longer than {bound} seconds"),
            );
            self.book.timers.remove(&(deadline, of));
            if self.is_undoing_inside(id) {
                self.book.frames.get_mut(&id)?.active()?.late = Some(failure);
                return Some(());
            }
            return self.time_out(id, failure);
        }
        let key = match &mut visit.phase {
            Phase::Retrying { due, timer } if *timer == of => {
                let key = (*due, of);
                visit.phase = Phase::Entered;
                key
            }
            Phase::Started(Inside::Wait(run)) => match run {
                WaitRun::Waiting { until, timer } if *timer == of => {
                    let key = (*until, of);
                    *run = WaitRun::Over;
                    key
                }
                _ => return None,
            },
            Phase::Started(Inside::Task(run)) => match run.phase {
                TaskPhase::Sleeping { due, timer } if timer == of => {
                    run.phase = TaskPhase::Ready;
                    let keys = visit.deadline.take().map(|deadline| (deadline, visit.started));
                    self.book.timers.remove(&(due, of));
                    self.disarm([keys, None]);
                    return Some(());
                }
                _ => return None,
            },
            _ => return None,
        };
        self.book.timers.remove(&key);
        Some(())
    }

    /// A rollback has ended: bounds that ran out meanwhile take effect, from inside out.
    pub(super) fn take_late_effects(&mut self, from: FrameId) -> Option<()> {
        let mut next = self.book.frames.get(&from)?.parent;
        while let Some((id, _)) = next {
            next = self.book.frames.get(&id)?.parent;
            let late = self
                .book
                .frames
                .get(&id)?
                .visit()
                .is_some_and(|visit| visit.late.is_some());
            if late && !self.is_undoing_inside(id) {
                let failure = self.book.frames.get_mut(&id)?.active()?.late.take()?;
                self.time_out(id, failure)?;
            }
        }
        Some(())
    }

    /// An attempt has had its time: what runs inside is closed.
    fn time_out(&mut self, id: FrameId, failure: Failure) -> Option<()> {
        let visit = self.book.frames.get_mut(&id)?.active()?;
        let origin = visit.step;
        let sleeping = match &mut visit.phase {
            Phase::Started(Inside::Children(children)) => {
                if children.closing.is_none() {
                    children.closing = Some(Closing::Failed { failure, origin });
                }
                None
            }
            Phase::Started(Inside::Choice(ArmRun::Running { closing, .. })) => {
                *closing = Some(failure);
                None
            }
            Phase::Started(Inside::Task(run)) => {
                let phase = TaskPhase::Faulted {
                    failure,
                    retry_after: 0,
                };
                match std::mem::replace(&mut run.phase, phase) {
                    TaskPhase::Sleeping { due, timer } => Some((due, timer)),
                    _ => None,
                }
            }
            _ => return None,
        };
        self.disarm([sleeping, None]);
        self.freeze(id);
        Some(())
    }
}

/// Notes a retry of a policy.
pub(super) fn count_retry(retries: &mut Vec<u32>, policy: u32) {
    let index = policy as usize;
    if retries.len() <= index {
        retries.resize(index + 1, 0);
    }
    if let Some(count) = retries.get_mut(index) {
        *count += 1;
    }
}

/// The input of a step: the mapped one, or what it sees by default.
pub(crate) fn step_input(step: &Step, mapped: Option<&Object>, shown: Overlay, plain: Overlay) -> Overlay {
    let input = match (mapped, &step.enter) {
        (Some(mapped), _) => return Overlay::new(mapped.clone()),
        (None, Enter::Input) => plain,
        (None, _) => shown,
    };
    match step.kind {
        // Laid over by each child, so it is merged once.
        StepKind::Parallel(_) | StepKind::Foreach(_) => input.flattened(),
        _ => input,
    }
}

fn begin(step: &Step, input: &Overlay, event: &Event) -> Inside {
    match &step.kind {
        StepKind::Pass | StepKind::Succeed | StepKind::Fail(_) => Inside::Simple,
        StepKind::Wait(_) => Inside::Wait(WaitRun::New),
        StepKind::Task(task) => Inside::Task(Box::new(TaskRun {
            calls: 0,
            last_call: EventId::default(),
            called: false,
            timeout_at: match &step.timeout {
                _ if is_queue(&task.call.resource) => None,
                Some(Amount::Fixed(millis)) => Some(event.time.plus_millis(*millis)),
                _ => None,
            },
            location: None,
            child: None,
            phase: TaskPhase::Ready,
        })),
        StepKind::Choice(_) => Inside::Choice(ArmRun::Deciding),
        StepKind::Parallel(parallel) => Inside::Children(Box::new(Children::new(
            u32::try_from(parallel.branches.len()).unwrap_or(u32::MAX),
        ))),
        StepKind::Foreach(foreach) => Inside::Children(Box::new(Children::of_foreach(foreach, input))),
    }
}

/// What an attempt that ended well leaves: local (`{}` where it is an array), where to go on, what could be undone.
fn local_of(inside: Inside) -> (Object, Option<StepId>, Vec<crate::state::Done>) {
    match inside {
        Inside::Task(run) => match run.phase {
            TaskPhase::Answered {
                result: Value::Object(result),
            } => (result, None, Vec::new()),
            _ => (Object::new(), None, Vec::new()),
        },
        Inside::Choice(ArmRun::Ended { local, goto, done }) => (local, goto, done),
        Inside::Children(children) => (Object::new(), None, children.done),
        _ => (Object::new(), None, Vec::new()),
    }
}

/// What a task leaves to be undone, if it has a rollback and was called.
pub(crate) fn done_of_task(
    step: &Step,
    visit: &Visit,
    path: crate::event::Path,
    class: DoneClass,
    completed: EventId,
) -> Option<crate::state::Done> {
    let StepKind::Task(task) = &step.kind else {
        return None;
    };
    let rollback = task.rollback.as_ref()?;
    let run = visit.task()?;
    if !run.called {
        return None;
    }
    let result = match &run.phase {
        TaskPhase::Answered {
            result: Value::Object(result),
        } => Some(result.clone()),
        _ => None,
    };
    // A child undoes itself when it fails or is stopped; only one that had succeeded is told to.
    if matches!(rollback.undo, starbridge_fdl::graph::Undo::Child) && (result.is_none() || run.child.is_none()) {
        return None;
    }
    Some(crate::state::Done {
        class,
        order: if class == DoneClass::Completed {
            completed
        } else {
            run.last_call
        },
        call: run.last_call,
        step: visit.step,
        path,
        input: visit.input.clone(),
        result: result.unwrap_or_default(),
        child: run.child.clone(),
    })
}
