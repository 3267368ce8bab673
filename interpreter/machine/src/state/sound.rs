//! What holds in every state that a history leads to. A checkpoint in which it does not is refused: the parts of a state
//! name each other, and what decides relies on that.

use super::walk::inside_of;
use super::{
    ArmRun, At, Children, Done, Frame, FrameId, Inside, Phase, ROOT, State, Status, TaskPhase, TimerFor, UndoPhase,
    Undoing, Visit,
};
use crate::event::{Child, EventId, PathItem};
use starbridge_fdl::graph::{Flow, ListId, Step, StepId, StepKind};
use std::collections::BTreeSet;

/// Longer histories there are none; numbers up to here can be counted on from without overflow.
const LAST: u64 = u32::MAX as u64 / 2;

fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}

impl State {
    /// `None`: no history leads to this state.
    pub(super) fn sound(&self, flow: &Flow) -> Option<()> {
        let book = &self.book;
        holds(book.broken.is_none() && book.last.0 <= LAST)?;
        if book.started.is_none() {
            return holds(book.frames.is_empty() && book.last == EventId::default() && self.is_idle());
        }
        holds(book.status != Status::New && self.frame_is_there(ROOT))?;
        holds(book.frames.get(&ROOT)?.parent.is_none())?;
        let mut ids: Vec<FrameId> = book.frames.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.sound_frame(flow, id)?;
        }
        self.sound_queue(flow)?;
        self.sound_calls()?;
        self.sound_timers()?;
        let mut manual = book.manual.iter();
        let asks = |(request, id): (&EventId, &FrameId)| {
            let visit = book.frames.get(id).and_then(Frame::visit);
            visit.is_some_and(|visit| matches!(&visit.phase, Phase::Manual { request: asked, .. } if asked == request))
        };
        holds(manual.all(asks))?;
        holds(book.abandoned.iter().all(|call| *call <= book.last))?;
        holds(book.noted.is_disjoint(&book.abandoned) && book.noted.last().is_none_or(|call| *call <= book.last))?;
        let undoing = book.frames.values().filter_map(|frame| frame.undoing.as_ref());
        holds(undoing.filter(|undoing| !undoing.failed).count() == book.undoing as usize)?;
        holds(!book.status.is_ended() || self.is_idle())
    }

    /// Nothing is to be done or waited for.
    fn is_idle(&self) -> bool {
        let book = &self.book;
        book.ready.is_empty() && book.calls.is_empty() && book.timers.is_empty() && book.undoing == 0
    }

    fn frame_is_there(&self, id: FrameId) -> bool {
        self.book.frames.contains_key(&id)
    }

    fn sound_frame(&self, flow: &Flow, id: FrameId) -> Option<()> {
        let frame = self.book.frames.get(&id)?;
        let list = flow.list(frame.list)?;
        holds(id <= self.book.last && frame.last <= self.book.last)?;
        let of_list = |step: StepId| holds(list.steps.contains(&step));
        match frame.parent {
            None => holds(id == ROOT && frame.list == ListId(0))?,
            Some((outer, child)) => {
                // Outer frames are made before inner ones, so no way outward is endless.
                holds(outer < id)?;
                let visit = self.book.frames.get(&outer)?.visit()?;
                holds(is_child(visit, child, id))?;
                holds(list_of(flow.step(visit.step)?, child) == Some(frame.list))?;
            }
        }
        sound_place(&frame.at, of_list)?;
        if let Some(rewind) = &frame.rewind {
            of_list(rewind.step)?;
        }
        let last = self.book.last.0;
        holds(frame.visits.values().all(|count| u64::from(*count) <= last))?;
        frame.done.iter().try_for_each(|done| sound_done(flow, done))?;
        frame.left_over.iter().try_for_each(|done| sound_done(flow, done))?;
        if let Some(undoing) = &frame.undoing {
            sound_undoing(flow, undoing)?;
        }
        if let Some(visit) = frame.visit() {
            self.sound_visit(flow, id, visit)?;
        }
        Some(())
    }

    fn sound_visit(&self, flow: &Flow, id: FrameId, visit: &Visit) -> Option<()> {
        let step = flow.step(visit.step)?;
        let last = self.book.last;
        holds(visit.entered <= last && visit.started <= last)?;
        let counts = visit
            .retries
            .iter()
            .chain([&visit.attempt, &visit.number, &visit.retried, &visit.calls]);
        holds(counts.copied().all(|count| u64::from(count) <= last.0))?;
        visit.failed_task.iter().try_for_each(|done| sound_done(flow, done))?;
        let started = match &visit.phase {
            Phase::Started(inside) => Some(inside),
            _ => None,
        };
        for inside in started.into_iter().chain(visit.kept.as_deref()) {
            self.sound_inside(flow, step, inside)?;
        }
        holds(started.is_none() || visit.started > EventId::default() && visit.attempt > 0)?;
        for child in inside_of(visit) {
            holds(self.book.frames.get(&child)?.parent?.0 == id)?;
        }
        Some(())
    }

    fn sound_inside(&self, flow: &Flow, step: &Step, inside: &Inside) -> Option<()> {
        match (inside, &step.kind) {
            (Inside::Simple, StepKind::Pass | StepKind::Succeed | StepKind::Fail(_)) => Some(()),
            (Inside::Wait(_), StepKind::Wait(_)) => Some(()),
            (Inside::Task(run), StepKind::Task(_)) => {
                let counted = u64::from(run.calls) <= self.book.last.0 && run.last_call <= self.book.last;
                holds(counted)?;
                match run.phase {
                    TaskPhase::InFlight { call } => holds(run.last_call == call),
                    _ => Some(()),
                }
            }
            (Inside::Choice(ArmRun::Ended { done, .. }), StepKind::Choice(_)) => {
                done.iter().try_for_each(|done| sound_done(flow, done))
            }
            (Inside::Choice(_), StepKind::Choice(_)) => Some(()),
            (Inside::Children(children), StepKind::Parallel(parallel)) => {
                holds(children.total as usize == parallel.branches.len())?;
                sound_children(flow, children)
            }
            (Inside::Children(children), StepKind::Foreach(_)) => {
                holds(children.total as usize <= self.limits.foreach_items || children.entered == 0)?;
                sound_children(flow, children)
            }
            _ => None,
        }
    }

    /// The queue has each frame that has something to do once, and no other.
    fn sound_queue(&self, flow: &Flow) -> Option<()> {
        let queued: BTreeSet<FrameId> = self.book.ready.iter().copied().collect();
        holds(queued.len() == self.book.ready.len())?;
        let fits = |(id, frame): (&FrameId, &Frame)| {
            frame.queued == queued.contains(id) && frame.queued == self.has_work(flow, *id)
        };
        holds(queued.iter().all(|id| self.frame_is_there(*id)))?;
        holds(self.book.frames.iter().all(fits))
    }

    /// Every call is waited for by the frame it names.
    fn sound_calls(&self) -> Option<()> {
        for (call, in_flight) in &self.book.calls {
            let frame = self.book.frames.get(&in_flight.frame)?;
            let waited_for = if in_flight.rollback {
                let run = frame.undoing.as_ref()?.current.as_ref()?;
                matches!(run.phase, UndoPhase::InFlight { call: waiting } if waiting == *call)
            } else {
                let run = frame.visit()?.task()?;
                matches!(run.phase, TaskPhase::InFlight { call: waiting } if waiting == *call)
            };
            holds(waited_for && *call <= self.book.last)?;
            if let Some(due) = in_flight.timeout_at {
                holds(self.book.timers.get((due, *call)) == Some(TimerFor::Call))?;
            }
        }
        let waiting = |frame: &Frame| match frame.visit().and_then(Visit::task).map(|run| &run.phase) {
            Some(TaskPhase::InFlight { call }) => self.book.calls.contains_key(call),
            _ => true,
        };
        holds(self.book.frames.values().all(waiting))
    }

    /// Every timer is for something that waits for it.
    fn sound_timers(&self) -> Option<()> {
        self.book.timers.validate_invariants(self.book.last)?;
        for (key, what) in self.book.timers.iter() {
            let (due, set_by) = key;
            let waited_for = match what {
                TimerFor::Execution => true,
                TimerFor::Call => self.book.calls.get(&set_by)?.timeout_at == Some(due),
                TimerFor::Frame(id) => {
                    let visit = self.book.frames.get(&id)?.visit()?;
                    visit.timer_keys().any(|own| own == key)
                }
                TimerFor::Rollback(id) => {
                    let run = self.book.frames.get(&id)?.undoing.as_ref()?.current.as_ref()?;
                    matches!(run.phase, UndoPhase::Retrying { due, timer } if (due, timer) == key)
                }
            };
            holds(waited_for)?;
        }
        Some(())
    }
}

fn sound_place(at: &At, of_list: impl Fn(StepId) -> Option<()>) -> Option<()> {
    match at {
        At::Ended => Some(()),
        At::Before(step) => of_list(*step),
        At::In(visit) => of_list(visit.step),
        At::Failed(visit, ..) => {
            of_list(visit.step)?;
            holds(matches!(visit.phase, Phase::Failed { .. }))
        }
        At::Cancelled(place) => match **place {
            At::Cancelled(_) | At::Failed(..) => None,
            _ => sound_place(place, of_list),
        },
    }
}

fn sound_children(flow: &Flow, children: &Children) -> Option<()> {
    let begun = |number: &u32| *number < children.total;
    let kept = children.live.keys().chain(children.parked.keys());
    holds(kept.clone().all(begun) && children.entered <= children.total)?;
    holds(children.live.keys().all(|number| !children.parked.contains_key(number)))?;
    holds(children.again.iter().all(|number| children.parked.contains_key(number)))?;
    holds(children.results.len() <= children.total as usize)?;
    holds(children.succeeded <= children.total && children.failed <= children.total)?;
    children.done.iter().try_for_each(|done| sound_done(flow, done))
}

fn sound_undoing(flow: &Flow, undoing: &Undoing) -> Option<()> {
    let current = undoing.current.as_ref();
    holds(current.is_some() || !undoing.queue.is_empty() && !undoing.failed)?;
    let all = undoing.queue.iter().chain(current.map(|run| &run.done));
    all.into_iter().try_for_each(|done| sound_done(flow, done))
}

/// What can be undone is a task with a rollback.
fn sound_done(flow: &Flow, done: &Done) -> Option<()> {
    match &flow.step(done.step)?.kind {
        StepKind::Task(task) => holds(task.rollback.is_some())?,
        _ => return None,
    }
    let is_there = |item: &PathItem| list_of(flow.step(item.step)?, item.child).map(|_| ());
    done.path.items().iter().try_for_each(is_there)
}

/// Whether a frame is that child of a visit.
fn is_child(visit: &Visit, child: Child, id: FrameId) -> bool {
    let inside = match &visit.phase {
        Phase::Started(inside) => Some(inside),
        _ => visit.kept.as_deref(),
    };
    match (inside, child) {
        (Some(Inside::Choice(ArmRun::Running { child, .. })), Child::Arm(_)) => *child == id,
        (Some(Inside::Children(children)), Child::Branch(number) | Child::Iteration(number)) => {
            let kept = children.live.get(&number).or_else(|| children.parked.get(&number));
            kept == Some(&id)
        }
        _ => false,
    }
}

/// The list a child of a composite runs.
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
