//! What holds in every state that a history leads to. A checkpoint in which it does not hold is refused: the parts of
//! a state refer to each other, and decisions rely on that. What concerns one part alone is checked in that part's
//! own file.

use super::{
    ArmRun, Children, Done, Frame, FrameId, FramePosition, ROOT, State, Status, StepRun, TaskPhase, TimerFor,
    UndoPhase, Undoing, Visit, VisitPhase,
};
use crate::event::{Child, EventId, PathItem};
use starbridge_flow::graph::{Flow, ListId, Step, StepId, StepKind};

/// No history is longer than this. Numbers up to here can be counted on without overflow.
const MAX_EVENT: u64 = u32::MAX as u64 / 2;

fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}

impl State {
    /// Returns `None` if no history leads to this state. Each part checks itself; this checks what holds between the
    /// parts and the flow.
    pub(super) fn validate_invariants(&self, flow: &Flow) -> Option<()> {
        let data = &self.data;
        holds(data.broken.is_none() && data.last.0 <= MAX_EVENT)?;
        self.frames.validate_invariants(data.last)?;
        self.calls.validate_invariants(data.last)?;
        self.timers.validate_invariants(data.last)?;
        if data.started.is_none() {
            return holds(self.frames.is_empty() && data.last == EventId::default() && self.is_idle());
        }
        holds(data.status != Status::New)?;
        holds(self.frames.get(ROOT)?.parent.is_none())?;
        for id in self.frames.ids() {
            self.validate_frame(flow, id)?;
        }
        holds(self.frames.all(|id, frame| frame.is_ready() == self.has_work(flow, id)))?;
        self.validate_calls()?;
        self.validate_timers()?;
        let asks = |(request, id): (&EventId, &FrameId)| {
            let visit = self.frames.get(*id).and_then(Frame::visit);
            visit.is_some_and(
                |visit| matches!(&visit.phase, VisitPhase::Manual { request: asked, .. } if asked == request),
            )
        };
        holds(data.manual.iter().all(asks))?;
        if let Some(paused) = &data.paused {
            holds(!data.status.is_ended() && paused.event <= data.last && paused.since <= data.last_time)?;
        }
        holds(!data.status.is_ended() || self.is_idle())
    }

    /// Whether nothing is to be done and nothing is waited for.
    fn is_idle(&self) -> bool {
        let rests = self.frames.next_ready().is_none() && !self.frames.has_rollback();
        rests && self.calls.is_empty() && self.timers.is_empty()
    }

    fn validate_frame(&self, flow: &Flow, id: FrameId) -> Option<()> {
        let frame = self.frames.get(id)?;
        let list = flow.list(frame.list)?;
        let of_list = |step: StepId| holds(list.steps.contains(&step));
        match frame.parent {
            None => holds(frame.list == ListId(0))?,
            Some((outer, child)) => {
                let visit = self.frames.get(outer)?.visit()?;
                holds(visit.inside()?.frame_of(child) == Some(id))?;
                holds(list_of(flow.step(visit.step)?, child) == Some(frame.list))?;
            }
        }
        validate_place(&frame.at, of_list)?;
        if let Some(rewind) = &frame.rewind {
            of_list(rewind.step)?;
        }
        let last = self.data.last.0;
        holds(frame.visits.values().all(|count| u64::from(*count) <= last))?;
        frame.done.iter().try_for_each(|done| validate_done(flow, done))?;
        frame
            .pending_undo
            .iter()
            .try_for_each(|done| validate_done(flow, done))?;
        if let Some(undoing) = &frame.undoing {
            validate_undoing(flow, undoing)?;
        }
        if let Some(visit) = frame.visit() {
            self.validate_visit(flow, visit)?;
        }
        Some(())
    }

    fn validate_visit(&self, flow: &Flow, visit: &Visit) -> Option<()> {
        let step = flow.step(visit.step)?;
        let last = self.data.last;
        holds(visit.entered <= last && visit.started <= last)?;
        let counts = visit
            .retries
            .iter()
            .chain([&visit.attempt, &visit.number, &visit.retried, &visit.calls]);
        holds(counts.copied().all(|count| u64::from(count) <= last.0))?;
        visit
            .failed_task
            .iter()
            .try_for_each(|done| validate_done(flow, done))?;
        let started = match &visit.phase {
            VisitPhase::Started(inside) => Some(inside),
            _ => None,
        };
        for inside in started.into_iter().chain(visit.retained_inside.as_deref()) {
            self.validate_inside(flow, step, inside)?;
        }
        holds(started.is_none() || visit.started > EventId::default() && visit.attempt > 0)?;
        Some(())
    }

    fn validate_inside(&self, flow: &Flow, step: &Step, inside: &StepRun) -> Option<()> {
        match (inside, &step.kind) {
            (StepRun::Simple, StepKind::Pass | StepKind::Succeed | StepKind::Fail(_)) => Some(()),
            (StepRun::Wait(_), StepKind::Wait(_)) => Some(()),
            (StepRun::Task(run), StepKind::Task(_)) => {
                let counted = u64::from(run.calls) <= self.data.last.0 && run.last_call <= self.data.last;
                holds(counted)?;
                match run.phase {
                    TaskPhase::InFlight { call } => holds(run.last_call == call),
                    _ => Some(()),
                }
            }
            (StepRun::Choice(ArmRun::Ended { done, .. }), StepKind::Choice(_)) => {
                done.iter().try_for_each(|done| validate_done(flow, done))
            }
            (StepRun::Choice(_), StepKind::Choice(_)) => Some(()),
            (StepRun::Children(children), StepKind::Parallel(parallel)) => {
                holds(children.total as usize == parallel.branches.len())?;
                validate_children(flow, children)
            }
            (StepRun::Children(children), StepKind::Foreach(_)) => {
                holds(children.total as usize <= self.limits.foreach_items || children.entered == 0)?;
                validate_children(flow, children)
            }
            _ => None,
        }
    }

    /// For every call there is the frame that waits for it.
    fn validate_calls(&self) -> Option<()> {
        for (call, in_flight) in self.calls.iter() {
            let frame = self.frames.get(in_flight.frame)?;
            let waited_for = if in_flight.rollback {
                let run = frame.undoing.as_ref()?.current.as_ref()?;
                matches!(run.phase, UndoPhase::InFlight { call: waiting } if waiting == call)
            } else {
                let run = frame.visit()?.task()?;
                matches!(run.phase, TaskPhase::InFlight { call: waiting } if waiting == call)
            };
            holds(waited_for)?;
            if let Some(due) = in_flight.timeout_at {
                holds(self.timers.get((due, call)) == Some(TimerFor::Call))?;
            }
        }
        let waiting = |_, frame: &Frame| match frame.visit().and_then(Visit::task).map(|run| &run.phase) {
            Some(TaskPhase::InFlight { call }) => self.calls.get(*call).is_some(),
            _ => true,
        };
        holds(self.frames.all(waiting))
    }

    /// For every timer there is something that waits for it.
    fn validate_timers(&self) -> Option<()> {
        for (key, what) in self.timers.iter() {
            let (due, set_by) = key;
            let waited_for = match what {
                TimerFor::Execution => true,
                TimerFor::Call => self.calls.get(set_by)?.timeout_at == Some(due),
                TimerFor::Frame(id) => {
                    let visit = self.frames.get(id)?.visit()?;
                    visit.timer_keys().any(|own| own == key)
                }
                TimerFor::Rollback(id) => {
                    let run = self.frames.get(id)?.undoing.as_ref()?.current.as_ref()?;
                    run.timer_keys().any(|own| own == key)
                }
            };
            holds(waited_for)?;
        }
        Some(())
    }
}

fn validate_place(at: &FramePosition, of_list: impl Fn(StepId) -> Option<()>) -> Option<()> {
    match at {
        FramePosition::Ended => Some(()),
        FramePosition::Before(step) => of_list(*step),
        FramePosition::In(visit) => of_list(visit.step),
        FramePosition::Failed(visit, ..) => {
            of_list(visit.step)?;
            holds(matches!(visit.phase, VisitPhase::Failed { .. }))
        }
        FramePosition::Cancelled(place) => match **place {
            FramePosition::Cancelled(_) | FramePosition::Failed(..) => None,
            _ => validate_place(place, of_list),
        },
    }
}

fn validate_children(flow: &Flow, children: &Children) -> Option<()> {
    let begun = |number: &u32| *number < children.total;
    let mut numbers = children.live.keys().chain(children.retained.keys());
    holds(numbers.all(begun) && children.entered <= children.total)?;
    holds(
        children
            .live
            .keys()
            .all(|number| !children.retained.contains_key(number)),
    )?;
    holds(
        children
            .to_resume
            .iter()
            .all(|number| children.retained.contains_key(number)),
    )?;
    holds(children.results.len() <= children.total as usize)?;
    holds(children.succeeded <= children.total && children.failed <= children.total)?;
    children.done.iter().try_for_each(|done| validate_done(flow, done))
}

fn validate_undoing(flow: &Flow, undoing: &Undoing) -> Option<()> {
    let current = undoing.current.as_ref();
    holds(current.is_some() || !undoing.queue.is_empty() && !undoing.failed)?;
    let all = undoing.queue.iter().chain(current.map(|run| &run.done));
    all.into_iter().try_for_each(|done| validate_done(flow, done))
}

/// Only a task with a rollback can be undone.
fn validate_done(flow: &Flow, done: &Done) -> Option<()> {
    match &flow.step(done.step)?.kind {
        StepKind::Task(task) => holds(task.rollback.is_some())?,
        _ => return None,
    }
    let is_there = |item: &PathItem| list_of(flow.step(item.step)?, item.child).map(|_| ());
    done.path.items().iter().try_for_each(is_there)
}

/// The list that a child of a composite runs.
fn list_of(step: &Step, child: Child) -> Option<ListId> {
    match (&step.kind, child) {
        (StepKind::Parallel(parallel), Child::Branch(number)) => {
            parallel.branches.get(number as usize).map(|branch| branch.list)
        }
        (StepKind::Foreach(foreach), Child::Iteration(_)) => Some(foreach.list),
        (StepKind::Choice(choice), Child::Arm(None)) => choice.default.as_ref()?.list,
        (StepKind::Choice(choice), Child::Arm(Some(number))) => choice.arms.get(number as usize)?.list,
        _ => None,
    }
}
