//! Folding of children of composites: branches and iterations.

use crate::event::{Child, Event, EventKind, Exit, Failure};
use crate::state::{Children, Closing, Frame, FrameId, FramePosition, Outcome, State, VisitPhase};
use crate::steps::{foreach, parallel};
use crate::turn::failure;
use starbridge_flow::graph::{FaultKind, Flow, StepId, StepKind, WaitFor};

impl State {
    pub(super) fn fold_child(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        match &event.detail {
            EventKind::BranchEntered { .. } | EventKind::IterationEntered { .. } => {
                self.fold_child_entered(flow, event, id)
            }
            EventKind::BranchExited(exit) | EventKind::IterationExited(exit) => {
                self.fold_child_exited(flow, event, id, exit)
            }
            _ => None,
        }
    }

    fn fold_child_entered(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        let step = event.step?;
        let kind = &flow.step(step)?.kind;
        let frame = self.frames.get_mut(id)?;
        let path = frame.path.clone();
        // Children that enter one after the other are caused by the event that made room for them, not by each other.
        frame.last = event.caused_by;
        let visit = frame.active()?;
        if visit.step != step {
            return None;
        }
        let input = visit.input.clone();
        let children = visit.children_mut()?;
        let (child, list, number) = match (&event.detail, kind) {
            (EventKind::BranchEntered { branch, .. }, StepKind::Parallel(parallel)) => {
                let list = parallel.branches.get(*branch as usize)?.list;
                (Child::Branch(*branch), list, *branch)
            }
            (EventKind::IterationEntered { index, .. }, StepKind::Foreach(foreach)) => {
                (Child::Iteration(*index), foreach.list, *index)
            }
            _ => return None,
        };
        if children.live.insert(number, event.id).is_some() {
            return None;
        }
        children.entered += 1;
        let collection = children.collection_len();
        let mut inner = Frame::new(flow, list, Some((id, child)), path.inside(step, child), input, event.id);
        match (&event.detail, kind) {
            (EventKind::IterationEntered { index, item }, StepKind::Foreach(foreach)) => {
                inner.input.exempt_also(collection);
                inner.add_extra(foreach.item.clone(), item.clone());
                if let Some(key) = &foreach.index {
                    inner.add_extra(key.clone(), (*index).into());
                }
            }
            (EventKind::BranchEntered { deps: Some(deps), .. }, _) => {
                inner.add_extra("deps".into(), deps.clone().into());
            }
            _ => {}
        }
        self.frames.add(event.id, inner);
        self.update_ready_queue(flow, id);
        Some(())
    }

    fn fold_child_exited(&mut self, flow: &Flow, event: &Event, id: FrameId, exit: &Exit) -> Option<()> {
        let (outer, child) = self.frames.get(id)?.parent?;
        let (Child::Branch(number) | Child::Iteration(number)) = child else {
            return None;
        };
        match exit {
            Exit::Done => {
                let frame = self.drop_frame(id)?;
                if !matches!(frame.at, FramePosition::Ended) {
                    return None;
                }
                let children = self.children_of(outer)?;
                children.live.remove(&number)?;
                children.succeeded += 1;
                children.done.extend(frame.done);
                children.set_outcome(number, Outcome::Done(frame.local.into()));
            }
            Exit::Failed(failure) => {
                self.leave_list(flow, id);
                let origin = match &self.frames.get(id)?.at {
                    FramePosition::Failed(_, _, origin) => *origin,
                    _ => return None,
                };
                self.retain_child(flow, outer, id, number)?;
                let children = self.children_of(outer)?;
                children.set_outcome(number, Outcome::Failed(failure.clone()));
                self.close_if_intolerable(flow, outer, failure, origin)?;
            }
            Exit::Cancelled => {
                self.cancel_frame(id)?;
                self.retain_child(flow, outer, id, number)?;
                self.children_of(outer)?.set_outcome(number, Outcome::Cancelled);
            }
        }
        self.close_if_met(flow, outer)?;
        self.resume_next(flow, event, outer)?;
        if let Some(frame) = self.frames.get_mut(outer) {
            frame.last = event.id;
        }
        if self.data.ending.is_some() {
            self.end_if_closed(flow);
        } else {
            self.update_ready_queue_outward(flow, outer);
        }
        Some(())
    }

    pub(super) fn children_of(&mut self, id: FrameId) -> Option<&mut Children> {
        self.frames.get_mut(id)?.active()?.children_mut()
    }

    /// A failure leaves the list a frame runs. The frame stays where it failed, and its composite counts the failure.
    pub(crate) fn leave_list(&mut self, flow: &Flow, id: FrameId) {
        let Some(frame) = self.frames.get_mut(id) else {
            return;
        };
        let parent = frame.parent;
        let FramePosition::In(visit) = &mut frame.at else {
            return;
        };
        let VisitPhase::Failed { failure, origin, .. } = &visit.phase else {
            return;
        };
        let (failure, origin) = (failure.clone(), *origin);
        let failed_task = visit.failed_task.take();
        self.timers.cancel(visit.take_total());
        frame.done.extend(failed_task.map(|done| *done));
        if let FramePosition::In(visit) = std::mem::replace(&mut frame.at, FramePosition::Ended) {
            frame.at = FramePosition::Failed(visit, failure, origin);
        }
        if let Some((outer, Child::Branch(_) | Child::Iteration(_))) = parent
            && let Some(children) = self.children_of(outer)
        {
            children.failed += 1;
        }
        self.update_ready_queue(flow, id);
    }

    /// Retains a child that did not end well: a redrive goes on from there.
    fn retain_child(&mut self, flow: &Flow, outer: FrameId, id: FrameId, number: u32) -> Option<()> {
        self.frames.set_ready(id, false);
        let children = self.children_of(outer)?;
        children.live.remove(&number)?;
        children.retained.insert(number, id);
        if children.closing == Some(Closing::Met) {
            // What a branch completed is kept although the branch is no longer wanted: it is undone with the rest.
            let done = self.completed_in(flow, &[id]);
            self.clear_undo_stack(id, false);
            self.children_of(outer)?.done.extend(done);
        }
        Some(())
    }

    fn cancel_frame(&mut self, id: FrameId) -> Option<()> {
        self.cancel_waits(id);
        let frame = self.frames.get_mut(id)?;
        frame.at = match std::mem::replace(&mut frame.at, FramePosition::Ended) {
            place @ (FramePosition::In(_) | FramePosition::Before(_) | FramePosition::Ended) => {
                FramePosition::Cancelled(Box::new(place))
            }
            other => other,
        };
        Some(())
    }

    /// After a failure of a child: ends the composite's attempt if it tolerates no more of them.
    fn close_if_intolerable(&mut self, flow: &Flow, outer: FrameId, last: &Failure, origin: StepId) -> Option<()> {
        let visit = self.frames.get(outer)?.visit()?;
        let children = visit.children()?;
        if children.closing.is_some() {
            return Some(());
        }
        let branch_failed = |cause: String| {
            let name = flow.fault_names.name(&FaultKind::Branch);
            Closing::Failed {
                failure: failure(&name, &cause),
                origin: visit.step,
            }
        };
        let closing = match &flow.step(visit.step)?.kind {
            StepKind::Foreach(foreach) => match foreach.tolerance {
                _ if foreach::tolerates(foreach, children.failed, children.total) => return Some(()),
                Some(_) => branch_failed(format!(
                    "{} of {} iterations failed, the last with {}: {}",
                    children.failed, children.total, last.error, last.cause
                )),
                None => Closing::Failed {
                    failure: last.clone(),
                    origin,
                },
            },
            StepKind::Parallel(parallel) => match parallel.wait_for {
                _ if parallel::tolerates(parallel, children, |number| self.is_branch_failing(children, number)) => {
                    return Some(());
                }
                WaitFor::Count(count) => branch_failed(format!(
                    "{count} branches were to succeed and too few are left, the last failed with {}: {}",
                    last.error, last.cause
                )),
                WaitFor::All => Closing::Failed {
                    failure: last.clone(),
                    origin,
                },
            },
            _ => return None,
        };
        self.set_closing(outer, closing)
    }

    fn close_if_met(&mut self, flow: &Flow, outer: FrameId) -> Option<()> {
        let visit = self.frames.get(outer)?.visit()?;
        let children = visit.children()?;
        if children.closing.is_some() {
            return Some(());
        }
        match &flow.step(visit.step)?.kind {
            StepKind::Parallel(parallel) if parallel::is_met(parallel, children) => {
                self.set_closing(outer, Closing::Met)
            }
            _ => Some(()),
        }
    }

    fn set_closing(&mut self, outer: FrameId, closing: Closing) -> Option<()> {
        let visit = self.frames.get_mut(outer)?.active()?;
        let deadline = visit.take_deadline();
        visit.children_mut()?.closing = Some(closing);
        self.timers.cancel(deadline);
        self.suspend(outer);
        Some(())
    }

    /// Whether a failure left the list of a branch that has not exited.
    pub(crate) fn is_branch_failing(&self, children: &Children, number: u32) -> bool {
        let frame = children.live.get(&number).and_then(|id| self.frames.get(*id));
        frame.is_some_and(|frame| matches!(frame.at, FramePosition::Failed(..)))
    }
}
