//! The frames of an execution: which list runs inside which, and which of them have something to do.

mod frame;
mod tree;

pub(crate) use frame::{ArmRun, Frame, FramePosition, StepRun, TaskPhase, TaskRun, Visit, VisitPhase, WaitRun};
pub(super) use tree::FrameTree;

use super::{FrameId, ROOT, TimerFor, Undoing};
use crate::event::{EventId, Failure, StepPath};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

/// The tree of frames and the ready queue.
///
/// A frame is in the tree from [`Frames::add`] to [`Frames::remove`]. After each change, [`Frames::set_ready`] says
/// whether the frame has something to do; only such frames are in the queue, each once. Rollbacks in progress are
/// counted: call [`Frames::begin_rollback`] first, then [`Frames::end_rollback`], or [`Frames::fail_rollback`] and
/// perhaps later [`Frames::resume_rollback`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    by_id: FrameTree,
    /// The frames with something to do, in the order in which they became ready.
    ready: VecDeque<FrameId>,
    /// How many rollbacks are in progress.
    rollbacks: u32,
    /// The frame of the last event, so that most events need no search. A cache: never part of a checkpoint.
    recent: Option<FrameId>,
    /// The bytes that all frames hold, as they were last weighed. Never part of a checkpoint.
    held: usize,
    /// The frames that may have changed since, some more than once.
    touched: Vec<FrameId>,
}

/// After so many changes the frames are weighed, asked for or not, so that the list of changes stays short.
const MANY_CHANGES: usize = 256;

/// The frames in the form of a checkpoint.
pub(super) struct WrittenFrames<'a> {
    pub(super) frames: Cow<'a, FrameTree>,
    pub(super) ready: Cow<'a, VecDeque<FrameId>>,
    pub(super) rollbacks: u32,
}

/// Methods of the tree.
impl Frames {
    pub(crate) fn get(&self, id: FrameId) -> Option<&Frame> {
        self.by_id.get(id)
    }

    /// Mutable access to a frame. Its weight is taken anew before the next decision that needs it.
    pub(crate) fn get_mut(&mut self, id: FrameId) -> Option<&mut Frame> {
        self.touch(id);
        self.by_id.get_mut(id)
    }

    fn touch(&mut self, id: FrameId) {
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// The bytes that all frames hold.
    pub(crate) fn weigh(&mut self) -> usize {
        while let Some(id) = self.touched.pop() {
            if let Some(frame) = self.by_id.get_mut(id) {
                let held = frame.held();
                self.held = self.held.saturating_sub(frame.weighed).saturating_add(held);
                frame.weighed = held;
            }
        }
        self.held
    }

    /// The bytes that a checkpoint repeats.
    pub(super) fn repeated(&self) -> usize {
        let frames = self.by_id.iter().map(|(_, frame)| frame.repeated());
        frames.fold(0, usize::saturating_add)
    }

    /// Weighs every frame.
    fn weigh_all(&mut self) {
        self.touched.clear();
        self.held = 0;
        for frame in self.by_id.values_mut() {
            frame.weighed = frame.held();
            self.held = self.held.saturating_add(frame.weighed);
        }
    }

    /// The frame that a timer is for.
    pub(crate) fn get_of(&self, what: TimerFor) -> Option<&Frame> {
        match what {
            TimerFor::Execution | TimerFor::Call => None,
            TimerFor::Frame(id) | TimerFor::Rollback(id) => self.get(id),
        }
    }

    pub(crate) fn contains(&self, id: FrameId) -> bool {
        self.by_id.get(id).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All frames in the order in which they were made: outer before inner.
    pub(crate) fn ids(&self) -> Vec<FrameId> {
        let mut ids: Vec<FrameId> = self.by_id.iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether a condition holds for each frame.
    pub(crate) fn all(&self, holds: impl Fn(FrameId, &Frame) -> bool) -> bool {
        self.by_id.iter().all(|(id, frame)| holds(id, frame))
    }

    /// Changes each frame, in no particular order.
    pub(crate) fn for_each_mut(&mut self, change: impl FnMut(&mut Frame)) {
        self.by_id.values_mut().for_each(change);
        self.weigh_all();
    }

    /// Adds a frame at the front of the ready queue: it runs before its composite goes on.
    pub(crate) fn add(&mut self, id: FrameId, mut frame: Frame) {
        frame.queued = true;
        frame.weighed = 0;
        self.by_id.insert(id, frame);
        self.touch(id);
        self.ready.push_front(id);
    }

    /// Removes one frame. The frames inside it stay.
    pub(crate) fn remove(&mut self, id: FrameId) -> Option<Frame> {
        let frame = self.by_id.remove(id)?;
        self.held = self.held.saturating_sub(frame.weighed);
        if frame.queued {
            self.dequeue(id);
        }
        if frame.is_rolling_back() {
            self.rollbacks = self.rollbacks.saturating_sub(1);
        }
        Some(frame)
    }

    /// A frame, then the frames around it, from inside out.
    pub(crate) fn outward(&self, id: FrameId) -> impl Iterator<Item = (FrameId, &Frame)> {
        let find = |id: FrameId| Some((id, self.get(id)?));
        std::iter::successors(find(id), move |(_, frame)| find(frame.parent?.0))
    }

    /// The frame at this path, and true; if it is not there, the innermost frame on the way, and false.
    pub(crate) fn at(&self, path: &StepPath) -> (FrameId, bool) {
        let mut id = ROOT;
        for item in path.items() {
            let visit = self.get(id).and_then(Frame::visit);
            let inside = visit
                .filter(|visit| visit.step == item.step)
                .and_then(|visit| visit.running_child(item.child));
            match inside {
                Some(child) if self.contains(child) => id = child,
                _ => return (id, false),
            }
        }
        (id, self.contains(id))
    }

    /// The frame at this path. It is most often the frame of the last event.
    pub(crate) fn find(&self, path: &StepPath) -> Option<FrameId> {
        if let Some(recent) = self.recent
            && self.get(recent).is_some_and(|frame| frame.path == *path)
        {
            return Some(recent);
        }
        match self.at(path) {
            (frame, true) => Some(frame),
            _ => None,
        }
    }

    /// Records that an event is about this frame: it causes the frame's next event.
    pub(crate) fn note_event(&mut self, id: FrameId, event: EventId) {
        self.recent = Some(id);
        if self.touched.len() >= MANY_CHANGES {
            self.weigh();
        }
        if let Some(frame) = self.get_mut(id) {
            frame.last = event;
        }
    }

    /// Forgets the frame of the last event, because frames have changed their places.
    pub(crate) fn forget_recent(&mut self) {
        self.recent = None;
    }

    /// The outermost frame, from this one outward, whose step is being closed.
    pub(crate) fn outermost_closing(&self, id: FrameId) -> Option<FrameId> {
        let is_closing = |(_, frame): &(FrameId, &Frame)| frame.visit().is_some_and(Visit::is_closing);
        self.outward(id).filter(is_closing).last().map(|(id, _)| id)
    }
}

/// Methods of the ready queue.
impl Frames {
    /// Puts a frame at the end of the queue if it has something to do; otherwise takes it out.
    pub(crate) fn set_ready(&mut self, id: FrameId, has_work: bool) {
        let Some(frame) = self.by_id.get_mut(id) else {
            return;
        };
        if frame.queued == has_work {
            return;
        }
        frame.queued = has_work;
        if has_work {
            self.ready.push_back(id);
        } else {
            self.dequeue(id);
        }
    }

    /// The first frame of the queue.
    pub(crate) fn next_ready(&self) -> Option<FrameId> {
        self.ready.front().copied()
    }

    /// Empties the queue, because the execution has ended.
    pub(crate) fn clear_ready(&mut self) {
        for id in std::mem::take(&mut self.ready) {
            if let Some(frame) = self.by_id.get_mut(id) {
                frame.queued = false;
            }
        }
    }

    fn dequeue(&mut self, id: FrameId) {
        if let Some(index) = self.ready.iter().position(|&ready| ready == id) {
            self.ready.remove(index);
        }
    }
}

/// Methods for rollbacks in progress.
impl Frames {
    /// Whether any rollback is in progress.
    pub(crate) fn has_rollback(&self) -> bool {
        self.rollbacks > 0
    }

    /// Whether a rollback is in progress inside the step that a frame is in.
    pub(crate) fn has_rollback_inside(&self, outer: FrameId) -> bool {
        let is_inside = |id: FrameId| self.outward(id).skip(1).any(|(around, _)| around == outer);
        let mut rollbacks = self.by_id.iter().filter(|(_, frame)| frame.is_rolling_back());
        self.has_rollback() && rollbacks.any(|(id, _)| is_inside(id))
    }

    /// The frame on the way to a path that has a rollback, in progress or failed.
    pub(crate) fn rollback_at(&self, path: &StepPath) -> Option<FrameId> {
        let mut way = self.outward(self.at(path).0);
        way.find(|(_, frame)| frame.undoing.is_some()).map(|(id, _)| id)
    }

    /// Begins a rollback in a frame. `None`: the frame has one already, or it is not there.
    pub(crate) fn begin_rollback(&mut self, id: FrameId, undoing: Undoing) -> Option<()> {
        let frame = self.get_mut(id).filter(|frame| frame.undoing.is_none())?;
        frame.undoing = Some(Box::new(undoing));
        self.rollbacks += 1;
        Some(())
    }

    /// Ends the rollback in a frame after everything was undone.
    pub(crate) fn end_rollback(&mut self, id: FrameId) -> Option<()> {
        let undoing = self.get_mut(id)?.undoing.take()?;
        self.rollbacks -= u32::from(!undoing.failed);
        Some(())
    }

    /// Marks the rollback in a frame as failed. Returns the failure because of which it began, or `original` if the
    /// state does not know it.
    pub(crate) fn fail_rollback(&mut self, id: FrameId, original: Option<&Failure>) -> Option<Option<Failure>> {
        self.touch(id);
        let undoing = self.by_id.get_mut(id)?.undoing.as_mut()?;
        self.rollbacks -= u32::from(!undoing.failed);
        undoing.failed = true;
        undoing.failure = undoing.failure.take().or_else(|| original.cloned());
        Some(undoing.failure.clone())
    }

    /// The frames whose rollback failed, outer before inner.
    pub(crate) fn failed_rollbacks(&self) -> Vec<FrameId> {
        let is_failed = |id: &FrameId| {
            let undoing = self.get(*id).and_then(|frame| frame.undoing.as_ref());
            undoing.is_some_and(|undoing| undoing.failed)
        };
        self.ids().into_iter().filter(is_failed).collect()
    }

    /// Marks a failed rollback as in progress again.
    pub(crate) fn resume_rollback(&mut self, id: FrameId) -> Option<&mut Undoing> {
        self.touch(id);
        let undoing = self.by_id.get_mut(id)?.undoing.as_mut()?;
        self.rollbacks += u32::from(undoing.failed);
        undoing.failed = false;
        Some(undoing)
    }
}

impl Frames {
    /// Returns `None` if no history leads to these frames. What depends on the flow is checked by
    /// `State::validate_invariants`.
    pub(super) fn validate_invariants(&self, last: EventId) -> Option<()> {
        let in_tree = |id: FrameId, frame: &Frame| {
            let made_before = id <= last && frame.last <= last;
            // Outer frames are made before inner ones, so every walk outward ends.
            let has_parent = match frame.parent {
                None => id == ROOT,
                Some((outer, _)) => outer < id && self.contains(outer),
            };
            let inside = frame.visit().map(Visit::frames_inside).unwrap_or_default();
            let knows_parent = |child: FrameId| {
                let parent = self.get(child).and_then(|frame| frame.parent);
                parent.is_some_and(|(outer, _)| outer == id)
            };
            made_before && has_parent && inside.into_iter().all(knows_parent)
        };
        let queued: BTreeSet<FrameId> = self.ready.iter().copied().collect();
        let queued_once = queued.len() == self.ready.len() && queued.iter().all(|id| self.contains(*id));
        let marked = self.all(|id, frame| frame.queued == queued.contains(&id));
        let rollbacks = self.by_id.iter().filter(|(_, frame)| frame.is_rolling_back()).count();
        (self.all(in_tree) && queued_once && marked && rollbacks == self.rollbacks as usize).then_some(())
    }

    pub(super) fn to_written(&self) -> WrittenFrames<'_> {
        WrittenFrames {
            frames: Cow::Borrowed(&self.by_id),
            ready: Cow::Borrowed(&self.ready),
            rollbacks: self.rollbacks,
        }
    }

    pub(super) fn from_written(written: WrittenFrames<'_>) -> Self {
        let mut frames = Self {
            by_id: written.frames.into_owned(),
            ready: written.ready.into_owned(),
            rollbacks: written.rollbacks,
            recent: None,
            held: 0,
            touched: Vec::new(),
        };
        frames.weigh_all();
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_flow::graph::{Flow, ListId};
    use starbridge_flow::limits::Limits;
    use starbridge_flow::syntax::Source;
    use starbridge_flow::value::Overlay;
    use std::sync::Arc;

    fn flow() -> Arc<Flow> {
        let text = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}"#;
        let checked = starbridge_fdl::check(&Source::new("flow.json", text.to_owned()), &Limits::default());
        checked.flow.unwrap()
    }

    fn frames() -> Frames {
        let root = Frame::new(&flow(), ListId(0), None, StepPath::default(), Overlay::default(), ROOT);
        let mut frames = Frames::default();
        frames.add(ROOT, root);
        frames
    }

    #[test]
    fn ready_queue_has_a_frame_at_most_once() {
        let mut frames = frames();
        assert_eq!(frames.next_ready(), Some(ROOT));
        frames.set_ready(ROOT, true);
        assert_eq!(frames.ready.len(), 1);
        frames.set_ready(ROOT, false);
        assert_eq!(
            (frames.next_ready(), frames.get(ROOT).unwrap().is_ready()),
            (None, false)
        );
        frames.set_ready(ROOT, true);
        assert_eq!(frames.validate_invariants(ROOT), Some(()));
        frames.ready.push_back(ROOT);
        assert_eq!(frames.validate_invariants(ROOT), None);
        frames.clear_ready();
        assert_eq!(frames.validate_invariants(ROOT), Some(()));
        frames.set_ready(ROOT, true);
        frames.remove(ROOT).unwrap();
        assert!(frames.is_empty() && frames.next_ready().is_none());
    }

    #[test]
    fn rollback_counts_until_it_ends_or_fails() {
        let mut frames = frames();
        frames.begin_rollback(ROOT, Undoing::new(Vec::new(), None)).unwrap();
        assert_eq!(frames.begin_rollback(ROOT, Undoing::new(Vec::new(), None)), None);
        assert!(frames.has_rollback());
        frames.fail_rollback(ROOT, None).unwrap();
        assert!(!frames.has_rollback());
        assert_eq!(frames.failed_rollbacks(), [ROOT]);
        frames.resume_rollback(ROOT).unwrap();
        assert!(frames.has_rollback() && frames.failed_rollbacks().is_empty());
        frames.end_rollback(ROOT).unwrap();
        assert!(!frames.has_rollback());
        assert_eq!(frames.end_rollback(ROOT), None);
        assert_eq!(frames.validate_invariants(ROOT), Some(()));
    }

    #[test]
    fn invariants_refuse_a_frame_without_its_parent() {
        let mut frames = frames();
        frames.get_mut(ROOT).unwrap().last = EventId(7);
        assert_eq!(frames.validate_invariants(EventId(6)), None);
        assert_eq!(frames.validate_invariants(EventId(7)), Some(()));
        frames.get_mut(ROOT).unwrap().parent = Some((EventId(0), crate::event::Child::Branch(0)));
        assert_eq!(frames.validate_invariants(EventId(7)), None);
    }
}
