//! Finding the way between frames: by path, to parents, to what is ready.

use super::{ArmRun, At, Closing, Frame, FrameId, Inside, Phase, ROOT, State, TaskPhase, Visit, WaitRun};
use crate::close::CloseStep;
use crate::event::{Child, Path};
use starbridge_fdl::graph::{Flow, StepKind};

impl State {
    /// The frame a path leads to, if it is there; the longest part of the way that is there otherwise.
    pub(crate) fn frame_at(&self, path: &Path) -> (FrameId, bool) {
        let mut id = ROOT;
        for item in path.items() {
            let inside = self
                .book
                .frames
                .get(&id)
                .and_then(Frame::visit)
                .filter(|visit| visit.step == item.step)
                .and_then(|visit| child_of(visit, item.child));
            match inside {
                Some(child) if self.book.frames.contains_key(&child) => id = child,
                _ => return (id, false),
            }
        }
        (id, self.book.frames.contains_key(&id))
    }

    /// The frame on the way to a path that has a rollback in progress.
    pub(crate) fn undoing_at(&self, path: &Path) -> Option<FrameId> {
        let (mut id, _) = self.frame_at(path);
        loop {
            let frame = self.book.frames.get(&id)?;
            if frame.undoing.is_some() {
                return Some(id);
            }
            id = frame.parent?.0;
        }
    }

    /// The outermost frame around (or at) a frame whose step is being closed.
    pub(crate) fn outermost_closing(&self, id: FrameId) -> Option<FrameId> {
        let mut found = None;
        let mut next = Some(id);
        while let Some(id) = next {
            let frame = self.book.frames.get(&id)?;
            if frame.visit().is_some_and(is_closing) {
                found = Some(id);
            }
            next = frame.parent.map(|(parent, _)| parent);
        }
        found
    }

    /// Whether a rollback is in progress somewhere inside the step a frame is in.
    pub(crate) fn is_undoing_inside(&self, outer: FrameId) -> bool {
        let inside = |frame: &Frame| {
            let mut parent = frame.parent;
            while let Some((id, _)) = parent {
                if id == outer {
                    return true;
                }
                parent = self.book.frames.get(&id).and_then(|frame| frame.parent);
            }
            false
        };
        let mut undoing = false;
        #[expect(
            clippy::iter_over_hash_type,
            reason = "whether there is one does not depend on the order"
        )]
        for frame in self.book.frames.values() {
            undoing |= frame.undoing.as_ref().is_some_and(|undoing| !undoing.failed) && inside(frame);
        }
        undoing
    }

    /// Whether something further out is being closed, so that nothing new happens here.
    pub(crate) fn is_frozen(&self, frame: &Frame) -> bool {
        if self.book.ending.is_some() {
            return true;
        }
        let mut parent = frame.parent;
        while let Some((id, _)) = parent {
            let Some(frame) = self.book.frames.get(&id) else {
                return true;
            };
            // What a failed attempt had inside is only kept for a redrive.
            let goes_on = |visit: &Visit| matches!(visit.phase, Phase::Started(_)) && !is_closing(visit);
            if !matches!(&frame.at, At::In(visit) if goes_on(visit)) {
                return true;
            }
            parent = frame.parent;
        }
        false
    }

    /// Whether a frame has something to do now.
    pub(crate) fn has_work(&self, flow: &Flow, id: FrameId) -> bool {
        let Some(frame) = self.book.frames.get(&id) else {
            return false;
        };
        if self.book.status.is_ended() {
            return false;
        }
        if let Some(undoing) = frame.undoing.as_ref().filter(|undoing| !undoing.failed) {
            return undoing.has_work();
        }
        if id == ROOT && self.book.ending.is_some() {
            return self.ending_has_work();
        }
        if self.is_frozen(frame) {
            return false;
        }
        match &frame.at {
            At::Before(_) | At::Ended => true,
            At::Cancelled(_) => false,
            At::Failed(..) => self.is_live(id, frame),
            At::In(visit) => self.visit_has_work(flow, id, visit),
        }
    }

    /// Whether the composite around a frame still waits for its exit.
    fn is_live(&self, id: FrameId, frame: &Frame) -> bool {
        frame.parent.is_none_or(|(parent, child)| {
            self.book
                .frames
                .get(&parent)
                .and_then(Frame::visit)
                .and_then(|visit| match (&visit.phase, child) {
                    (Phase::Started(Inside::Choice(ArmRun::Running { child, .. })), _) => Some(*child),
                    (Phase::Started(Inside::Children(children)), Child::Branch(n) | Child::Iteration(n)) => {
                        children.live.get(&n).copied()
                    }
                    _ => None,
                })
                == Some(id)
        })
    }

    fn visit_has_work(&self, flow: &Flow, id: FrameId, visit: &Visit) -> bool {
        match &visit.phase {
            Phase::Entered | Phase::Succeeded { .. } | Phase::Failed { .. } => true,
            Phase::Retrying { .. } | Phase::Manual { .. } => false,
            Phase::Started(inside) => match inside {
                Inside::Simple => true,
                Inside::Wait(run) => !matches!(run, WaitRun::Waiting { .. }),
                Inside::Task(run) => !matches!(
                    run.phase,
                    TaskPhase::InFlight { .. } | TaskPhase::Sleeping { .. } | TaskPhase::Cancelled
                ),
                Inside::Choice(ArmRun::Running { closing: None, .. }) => false,
                Inside::Choice(ArmRun::Running { closing: Some(_), .. }) => self.close_step(id) != CloseStep::Blocked,
                Inside::Choice(_) => true,
                Inside::Children(children) => match &children.closing {
                    Some(_) => self.close_step(id) != CloseStep::Blocked,
                    None if children.invalid || children.is_over() => true,
                    None => match flow.step(visit.step).map(|step| &step.kind) {
                        Some(StepKind::Foreach(foreach)) => {
                            children.entered < children.total && children.live.len() < foreach.concurrency as usize
                        }
                        Some(StepKind::Parallel(parallel)) => children.next_branch(parallel).is_some(),
                        _ => false,
                    },
                },
            },
        }
    }

    /// Puts a frame into the queue if it has something to do, takes it out if not.
    pub(crate) fn settle(&mut self, flow: &Flow, id: FrameId) {
        let has_work = self.has_work(flow, id);
        let Some(frame) = self.book.frames.get_mut(&id) else {
            return;
        };
        if frame.queued == has_work {
            return;
        }
        frame.queued = has_work;
        if has_work {
            self.book.ready.push_back(id);
        } else {
            self.dequeue(id);
        }
    }

    /// Settles a frame and all around it.
    pub(crate) fn settle_outward(&mut self, flow: &Flow, id: FrameId) {
        let mut next = Some(id);
        while let Some(id) = next {
            self.settle(flow, id);
            next = self
                .book
                .frames
                .get(&id)
                .and_then(|frame| frame.parent)
                .map(|(parent, _)| parent);
        }
    }

    fn dequeue(&mut self, id: FrameId) {
        if let Some(place) = self.book.ready.iter().position(|&ready| ready == id) {
            self.book.ready.remove(place);
        }
    }

    /// Puts a new frame in front: it runs before the composite it belongs to goes on.
    pub(crate) fn add_frame(&mut self, id: FrameId, mut frame: Frame) {
        frame.queued = true;
        self.book.frames.insert(id, frame);
        self.book.ready.push_front(id);
    }

    /// Takes a frame and all inside it away.
    pub(crate) fn drop_frame(&mut self, id: FrameId) -> Option<Frame> {
        let frame = self.book.frames.remove(&id)?;
        if frame.queued {
            self.dequeue(id);
        }
        if let Some(visit) = frame.visit() {
            self.drop_inside(visit);
        }
        Some(frame)
    }

    /// Takes all frames inside a visit away, and its timers.
    pub(crate) fn drop_inside(&mut self, visit: &Visit) {
        self.book.timers.cancel(visit.timer_keys());
        if let Phase::Manual { request, .. } = &visit.phase {
            self.book.manual.remove(request);
        }
        for child in inside_of(visit) {
            self.drop_frame(child);
        }
    }

    /// Keeps what a failed attempt had inside, for a redrive.
    pub(crate) fn keep_for_redrive(&mut self, id: FrameId, phase: Phase) {
        if let Phase::Started(
            inside @ (Inside::Choice(ArmRun::Running { .. } | ArmRun::Ended { .. }) | Inside::Children(_)),
        ) = phase
            && let Some(visit) = self.book.frames.get_mut(&id).and_then(Frame::active)
        {
            visit.kept = Some(Box::new(inside));
        }
    }

    /// Lets go of it.
    pub(crate) fn drop_kept(&mut self, id: FrameId) {
        let inside = match self.book.frames.get(&id).and_then(Frame::visit) {
            Some(visit) if visit.kept.is_some() => inside_of(visit),
            _ => return,
        };
        for child in inside {
            self.drop_frame(child);
        }
        if let Some(visit) = self.book.frames.get_mut(&id).and_then(Frame::active) {
            visit.kept = None;
        }
    }

    /// Stops everything inside a visit from going on by itself, but for rollbacks in progress.
    pub(crate) fn freeze(&mut self, visit_of: FrameId) {
        let inside = match self.book.frames.get(&visit_of).and_then(Frame::visit) {
            Some(visit) => inside_of(visit),
            None => return,
        };
        for id in inside {
            let Some(frame) = self.book.frames.get_mut(&id) else {
                continue;
            };
            if frame.undoing.is_none() && frame.queued {
                frame.queued = false;
                self.dequeue(id);
            }
            self.withdraw(id);
            self.freeze(id);
        }
    }

    /// A frame's step waits for nothing any more: neither for timers nor for an operator.
    pub(crate) fn withdraw(&mut self, id: FrameId) {
        let Some(visit) = self.book.frames.get(&id).and_then(Frame::visit) else {
            return;
        };
        let keys = visit.timer_keys();
        if let Phase::Manual { request, .. } = visit.phase {
            self.book.manual.remove(&request);
        }
        self.book.timers.cancel(keys);
    }
}

/// Whether a composite's attempt is coming to its end before all is done.
pub(crate) fn is_closing(visit: &Visit) -> bool {
    match &visit.phase {
        Phase::Started(Inside::Choice(ArmRun::Running { closing, .. })) => closing.is_some(),
        Phase::Started(Inside::Children(children)) => {
            matches!(children.closing, Some(Closing::Failed { .. } | Closing::Met))
        }
        _ => false,
    }
}

fn child_of(visit: &Visit, child: Child) -> Option<FrameId> {
    match (&visit.phase, child) {
        (Phase::Started(Inside::Choice(ArmRun::Running { child, .. })), Child::Arm(_)) => Some(*child),
        (Phase::Started(Inside::Children(children)), Child::Branch(n) | Child::Iteration(n)) => {
            children.live.get(&n).or_else(|| children.parked.get(&n)).copied()
        }
        _ => None,
    }
}

/// The frames directly inside a visit.
pub(crate) fn inside_of(visit: &Visit) -> Vec<FrameId> {
    let inside = match &visit.phase {
        Phase::Started(inside) => Some(inside),
        _ => visit.kept.as_deref(),
    };
    match inside {
        Some(Inside::Choice(ArmRun::Running { child, .. })) => vec![*child],
        Some(Inside::Children(children)) => children
            .live
            .values()
            .chain(children.parked.values())
            .copied()
            .collect(),
        _ => Vec::new(),
    }
}
