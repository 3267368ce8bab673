//! Folding of steps: entered, started, ended, exited.

use crate::effect::is_queue;
use crate::event::{Bounds, Child, Event, EventId, EventKind, Failure};
use crate::state::{
    ArmRun, Children, Closing, DoneClass, FrameId, FramePosition, State, StepRun, TaskPhase, TaskRun, TimerFor, Visit,
    VisitPhase, WaitRun,
};
use starbridge_flow::graph::{Flow, OutputMode, OutputPassing, Settings, Step, StepId, StepKind};
use starbridge_flow::time::{Millis, Seconds, Timestamp};
use starbridge_flow::value::{Document, Overlay, Value};

impl State {
    pub(super) fn fold_step(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        let step = event.step?;
        match &event.detail {
            EventKind::StepEntered { settings } => self.fold_entered(flow, event, id, step, settings.as_deref())?,
            EventKind::StepStarted {
                attempt, input, bounds, ..
            } => {
                let bounds = bounds.as_deref().copied().unwrap_or_default();
                let mapped = input.clone().map(Document::from);
                self.fold_step_started(flow, event, id, *attempt, mapped, bounds)?;
            }
            EventKind::StepSucceeded { output, .. } => {
                self.fold_succeeded(flow, event, id, output.clone().map(Document::from))?;
            }
            EventKind::StepFailed { failure, attempt } => self.fold_failed(flow, id, step, failure, *attempt)?,
            EventKind::StepExited { goto, caught, .. } => self.fold_exited(flow, id, step, *goto, caught.as_ref())?,
            EventKind::ChoiceTaken { arm } => self.fold_choice(flow, event, id, step, *arm)?,
            EventKind::WaitStarted { until } => self.fold_wait(id, event.id, *until)?,
            EventKind::RetryScheduled { policy, due, .. } => self.fold_retry(id, event.id, *policy, *due)?,
            EventKind::TimerFired { of } => self.fold_timer(flow, id, *of)?,
            EventKind::ManualRequested(failure) => self.fold_manual(id, event.id, failure)?,
            EventKind::ManualResolved(resolution) => self.fold_resolved(flow, event, id, resolution)?,
            _ => return None,
        }
        self.update_ready_queue(flow, id);
        Some(())
    }

    fn fold_entered(
        &mut self,
        flow: &Flow,
        event: &Event,
        id: FrameId,
        step: StepId,
        settings: Option<&Settings>,
    ) -> Option<()> {
        let frame = self.frames.get_mut(id)?;
        match frame.at {
            FramePosition::Before(next) if next == step => {}
            _ => return None,
        }
        let number = if flow.list(frame.list)?.loops {
            let count = frame.visits.entry(step).or_insert(0);
            *count += 1;
            *count
        } else {
            1
        };
        let pending_undo = frame.pending_undo.take();
        let edited = frame.edited.take();
        let total_at = total_timeout(flow, step, settings).map(|bound| event.time.plus(bound));
        if let Some(total_at) = total_at {
            self.timers.set(total_at, event.id, TimerFor::Frame(id));
        }
        frame.at = FramePosition::In(Box::new(Visit {
            step,
            entered: event.id,
            number,
            attempt: 0,
            started: EventId::default(),
            mapped: None,
            edited,
            failed_task: pending_undo,
            retained_inside: None,
            undone: false,
            late: None,
            calls: 0,
            input: Overlay::default(),
            retries: Vec::new(),
            redeliver: 0,
            retried: 0,
            deadline: None,
            timeout: None,
            total_at,
            out_of_time: None,
            settings: settings.cloned().map(Box::new),
            phase: VisitPhase::Entered,
        }));
        Some(())
    }

    fn fold_step_started(
        &mut self,
        flow: &Flow,
        event: &Event,
        id: FrameId,
        attempt: u32,
        mapped: Option<Document>,
        bounds: Bounds,
    ) -> Option<()> {
        let frame = self.frames.get_mut(id)?;
        let step = flow.step(frame.visit()?.step)?;
        let input = frame.step_input(step, mapped.clone()).into_owned();
        let visit = frame.active()?;
        if !matches!(visit.phase, VisitPhase::Entered) || event.step != Some(visit.step) {
            return None;
        }
        visit.attempt = attempt;
        visit.calls = 0;
        visit.late = None;
        visit.redeliver = 0;
        visit.undone = false;
        visit.started = event.id;
        visit.input = input;
        visit.mapped = mapped;
        visit.timeout = bounds.timeout;
        visit.phase = VisitPhase::Started(begin(step, visit, event));
        if let VisitPhase::Started(StepRun::Children(children)) = &mut visit.phase {
            children.concurrency = bounds.concurrency;
        }
        // A task's timeout is that of its calls, in `TaskScheduled`. Only while it sleeps between polls it has a
        // timer of its own.
        if let (Some(millis), false) = (visit.bound(step), matches!(step.kind, StepKind::Task(_))) {
            let deadline = event.time.plus(millis);
            visit.deadline = Some(deadline);
            self.timers.set(deadline, event.id, TimerFor::Frame(id));
        }
        Some(())
    }

    fn fold_succeeded(&mut self, flow: &Flow, event: &Event, id: FrameId, output: Option<Document>) -> Option<()> {
        let retained = self.frames.get(id)?.visit().map(Visit::frames_inside)?;
        let mut completed = self.completed_in(flow, &retained);
        let frame = self.frames.get_mut(id)?;
        let FramePosition::In(visit) = &mut frame.at else {
            return None;
        };
        let step = flow.step(visit.step)?;
        let undoable = done_of_task(flow, step, visit, &frame.path, DoneClass::Completed, event.id);
        let VisitPhase::Started(inside) = std::mem::replace(&mut visit.phase, VisitPhase::Entered) else {
            return None;
        };
        let (local, goto, mut done) = local_of(inside);
        let output = output.unwrap_or(match step.leave {
            OutputMode::Local => local,
            OutputMode::Nothing | OutputMode::Program(_) => Document::default(),
        });
        let bounds = visit.take_deadline().into_iter().chain(visit.take_total());
        visit.phase = VisitPhase::Succeeded { output, goto };
        visit.failed_task = None;
        let (step, entered) = (visit.step, visit.entered);
        done.append(&mut completed);
        done.extend(undoable);
        if frame.done.is_empty() && !done.is_empty() {
            frame.rewind = Some(Box::new(frame.before(step, entered)));
        }
        frame.done.extend(done);
        self.timers.cancel(bounds);
        for child in retained {
            self.drop_frame(child);
        }
        Some(())
    }

    fn fold_failed(&mut self, flow: &Flow, id: FrameId, step: StepId, failure: &Failure, attempt: u32) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        if visit.step != step {
            return None;
        }
        let (origin, retry_after) = match &visit.phase {
            VisitPhase::Started(StepRun::Task(run)) => match &run.phase {
                TaskPhase::Faulted { retry_after, .. } => (step, *retry_after),
                _ => (step, Seconds::ZERO),
            },
            VisitPhase::Started(StepRun::Children(children)) => match &children.closing {
                Some(Closing::Failed { origin, .. }) => (*origin, Seconds::ZERO),
                _ => (step, Seconds::ZERO),
            },
            VisitPhase::Started(StepRun::Choice(ArmRun::Running {
                child, closing: None, ..
            })) => {
                let child = *child;
                self.leave_list(flow, child);
                match self.frames.get(child).map(|frame| &frame.at) {
                    Some(FramePosition::Failed(_, _, origin)) => (*origin, Seconds::ZERO),
                    _ => return None,
                }
            }
            _ => (step, Seconds::ZERO),
        };
        let frame = self.frames.get_mut(id)?;
        let path = frame.path.clone();
        let visit = frame.active()?;
        visit.attempt = attempt;
        let failed_task = done_of_task(
            flow,
            flow.step(step)?,
            visit,
            &path,
            DoneClass::Failed,
            EventId::default(),
        );
        let deadline = visit.take_deadline();
        let inside = std::mem::replace(
            &mut visit.phase,
            VisitPhase::Failed {
                failure: failure.clone(),
                origin,
                retry_after,
                uncatchable: attempt == 0,
            },
        );
        visit.failed_task = failed_task.map(Box::new).or(visit.failed_task.take());
        self.timers.cancel(deadline);
        self.retain_inside(id, inside);
        for child in self
            .frames
            .get(id)?
            .visit()
            .map(Visit::frames_inside)
            .unwrap_or_default()
        {
            self.update_ready_queue(flow, child);
        }
        Some(())
    }

    fn fold_exited(
        &mut self,
        flow: &Flow,
        id: FrameId,
        step: StepId,
        goto: Option<StepId>,
        caught: Option<&Value>,
    ) -> Option<()> {
        self.drop_retained_inside(id);
        let frame = self.frames.get_mut(id)?;
        let visit = frame.active()?;
        if visit.step != step {
            return None;
        }
        let output = match (&mut visit.phase, caught) {
            (VisitPhase::Failed { .. }, Some(caught)) => caught.clone().into(),
            (VisitPhase::Succeeded { output, .. }, None) => std::mem::take(output),
            _ => return None,
        };
        self.timers.cancel(visit.take_total());
        let compiled = flow.step(step)?;
        let next = match (goto, &compiled.kind) {
            (Some(goto), _) => Some(goto),
            (None, StepKind::Succeed) => None,
            (None, _) => compiled.next,
        };
        // The step is dropped first: it may share the frame's data, and data that is not shared can change without a
        // copy.
        frame.at = next.map_or(FramePosition::Ended, FramePosition::Before);
        match flow.passing {
            OutputPassing::Merge => {
                let were_members = frame.local.other().is_none();
                match output.as_object().filter(|_| were_members) {
                    // Most steps have an empty output.
                    Some(members) if members.is_empty() => {}
                    Some(members) => {
                        frame.local.merge(&output);
                        frame.data.merge(members);
                    }
                    None => {
                        frame.local.merge(&output);
                        // Members of the input that the variables hid are visible again.
                        frame.data = frame.input.clone();
                        frame.data.merge_document(&frame.local);
                    }
                }
            }
            OutputPassing::Replace => {
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

    fn fold_wait(&mut self, id: FrameId, event: EventId, until: Timestamp) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        match &mut visit.phase {
            VisitPhase::Started(StepRun::Wait(run @ WaitRun::New)) => *run = WaitRun::Waiting { until, timer: event },
            _ => return None,
        }
        self.timers.set(until, event, TimerFor::Frame(id));
        Some(())
    }

    fn fold_retry(&mut self, id: FrameId, event: EventId, policy: u32, due: Timestamp) -> Option<()> {
        self.drop_retained_inside(id);
        let visit = self.frames.get_mut(id)?.active()?;
        if !matches!(visit.phase, VisitPhase::Failed { .. }) {
            return None;
        }
        count_retry(&mut visit.retries, policy);
        visit.retried += 1;
        visit.phase = VisitPhase::Retrying { due, timer: event };
        self.timers.set(due, event, TimerFor::Frame(id));
        Some(())
    }
}

/// How long all attempts of a step may take together.
pub(super) fn total_timeout(flow: &Flow, step: StepId, settings: Option<&Settings>) -> Option<Millis> {
    match &flow.step(step)?.kind {
        StepKind::Task(task) => settings
            .and_then(|settings| settings.total_timeout)
            .or(task.total_timeout),
        _ => None,
    }
}

/// Counts one retry of a policy.
pub(super) fn count_retry(retries: &mut Vec<u32>, policy: u32) {
    let index = policy as usize;
    if retries.len() <= index {
        retries.resize(index + 1, 0);
    }
    if let Some(count) = retries.get_mut(index) {
        *count += 1;
    }
}

fn begin(step: &Step, visit: &Visit, event: &Event) -> StepRun {
    match &step.kind {
        StepKind::Pass | StepKind::Succeed | StepKind::Fail(_) => StepRun::Simple,
        StepKind::Wait(_) => StepRun::Wait(WaitRun::New),
        StepKind::Task(task) => StepRun::Task(Box::new(TaskRun {
            calls: 0,
            last_call: EventId::default(),
            called: false,
            timeout_at: visit
                .fixed_bound(step)
                .filter(|_| !is_queue(&task.call.resource))
                .map(|bound| event.time.plus(bound)),
            location: None,
            child: None,
            phase: TaskPhase::Ready,
        })),
        StepKind::Choice(_) => StepRun::Choice(ArmRun::Deciding),
        StepKind::Parallel(parallel) => StepRun::Children(Box::new(Children::new(
            u32::try_from(parallel.branches.len()).unwrap_or(u32::MAX),
        ))),
        StepKind::Foreach(foreach) => StepRun::Children(Box::new(Children::of_foreach(foreach, &visit.input))),
    }
}

/// What an attempt that succeeded leaves: its local (`{}` if that is an array), the step to go to, and what could be
/// undone.
fn local_of(inside: StepRun) -> (Document, Option<StepId>, Vec<crate::state::Done>) {
    match inside {
        StepRun::Task(run) => match run.phase {
            TaskPhase::Answered { result } => (result.into(), None, Vec::new()),
            _ => (Document::default(), None, Vec::new()),
        },
        StepRun::Choice(ArmRun::Ended { local, goto, done }) => (local, goto, done.into_iter().collect()),
        StepRun::Children(children) => (Document::default(), None, children.done.into_iter().collect()),
        _ => (Document::default(), None, Vec::new()),
    }
}

/// What a task leaves to be undone, if it has a rollback and was called.
pub(crate) fn done_of_task(
    flow: &Flow,
    step: &Step,
    visit: &Visit,
    path: &crate::event::StepPath,
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
        TaskPhase::Answered { result } if flow.documents.takes(result) => Some(result.clone()),
        _ => None,
    };
    // A child rolls itself back when it fails or is stopped. Only one that had succeeded must be told to.
    if matches!(rollback.undo, starbridge_flow::graph::Undo::Child) && (result.is_none() || run.child.is_none()) {
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
        path: path.clone(),
        input: visit.input.clone(),
        result: result.map_or_else(Document::default, Document::from),
        child: run.child.clone(),
        own: crate::state::Done::own_bytes(visit.mapped.as_ref(), &visit.input),
    })
}
