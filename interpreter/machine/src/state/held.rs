//! The bytes of data that an execution holds at once. What it holds is bounded (section "limits"), and the count is the same on
//! every host and after every way of loading, because it decides what comes next.
//!
//! Counted is what events brought and nothing has released yet: as compact JSON, which values know without a walk over
//! them. What a step sees by default is shared with the list around it and is not counted again.

use super::{
    ArmRun, Children, Done, DoneList, Frame, State, StepRun, TaskPhase, UndoPhase, Undoing, Visit, VisitPhase,
};
use crate::event::Failure;
use starbridge_flow::graph::{Fault, FaultKind};

/// What a list that runs takes beside its data.
const FRAME_BYTES: usize = 1024;
/// What a task that could be undone takes beside its data.
const DONE_BYTES: usize = 512;
/// What the outcome of a child takes beside its data.
const OUTCOME_BYTES: usize = 64;
/// What the count of one step's visits takes.
const VISITS_BYTES: usize = 32;

impl State {
    /// The bytes of data that the execution holds: its input, what its lists and steps hold, and what was made for calls. [`Limits::execution_bytes`]
    /// bounds them.
    ///
    /// [`Limits::execution_bytes`]: starbridge_flow::limits::Limits::execution_bytes
    pub fn held(&mut self) -> usize {
        let started = self.data.started.as_deref();
        let input = started.map_or(0, |started| started.input.json_len());
        let made = self.data.flow_input.as_ref().map_or(0, |made| made.json_len());
        sum([self.frames.weigh(), self.calls.held(), input, made])
    }

    /// The bytes that a checkpoint would have beside what the state [holds](State::held): it writes the input of each task
    /// that could be undone in full, also where they share one in memory.
    pub fn repeated_bytes(&self) -> usize {
        self.frames.repeated()
    }

    /// The fault of an execution that holds more than it may. Until something is released no step begins and no result
    /// is taken, so one step or result at most exceeds the limit.
    pub(crate) fn over_share(&mut self) -> Option<Fault> {
        let limit = self.limits.execution_bytes;
        (self.held() > limit).then(|| {
            let cause = format!("the execution holds more than the limit of {limit} bytes of data");
            Fault::new(FaultKind::Limit, cause)
        })
    }
}

impl Frame {
    /// The bytes that the list holds, without those that it shares with the list around it.
    pub(super) fn held(&self) -> usize {
        sum([
            FRAME_BYTES,
            self.extra.json_len(),
            self.local.json_len(),
            self.visits.len() * VISITS_BYTES,
            self.done.held(),
            self.rewind.as_ref().map_or(0, |rewind| rewind.local.json_len()),
            self.pending_undo.as_ref().map_or(0, |done| done.held()),
            self.edited.as_ref().map_or(0, |input| input.json_len()),
            self.undoing.as_ref().map_or(0, |undoing| undoing.held()),
            self.visit().map_or(0, Visit::held),
        ])
    }
}

impl Frame {
    /// The bytes of the inputs of what could be undone that a checkpoint repeats.
    pub(super) fn repeated(&self) -> usize {
        let visit = self.visit();
        let undoing = self.undoing.as_deref();
        let current = undoing.and_then(|undoing| undoing.current.as_ref());
        let alone = self.pending_undo.as_deref();
        let alone = alone
            .into_iter()
            .chain(visit.and_then(|visit| visit.failed_task.as_deref()));
        let alone = alone.chain(current.map(|run| &run.done));
        let lists = [Some(&self.done), undoing.map(|undoing| &undoing.queue)];
        let inside = visit.and_then(Visit::inside).and_then(StepRun::done);
        let listed = lists.into_iter().chain([inside]).flatten().flat_map(|list| list.iter());
        let entries = alone.chain(listed).map(Done::repeated);
        entries.fold(current.map_or(0, |run| run.input.json_len()), usize::saturating_add)
    }
}

impl Visit {
    fn held(&self) -> usize {
        let inside = match &self.phase {
            VisitPhase::Started(inside) => inside.held(),
            VisitPhase::Succeeded { output, .. } => output.json_len(),
            VisitPhase::Failed { failure, .. } | VisitPhase::Manual { failure, .. } => failure.held(),
            VisitPhase::Entered | VisitPhase::Retrying { .. } => 0,
        };
        sum([
            inside,
            self.mapped.as_ref().map_or(0, |input| input.json_len()),
            self.edited.as_ref().map_or(0, |input| input.json_len()),
            self.failed_task.as_ref().map_or(0, |done| done.held()),
            self.retained_inside.as_ref().map_or(0, |inside| inside.held()),
        ])
    }
}

impl StepRun {
    fn held(&self) -> usize {
        match self {
            Self::Task(run) => match &run.phase {
                TaskPhase::Answered { result } => result.json_len(),
                TaskPhase::Faulted { failure, .. } => failure.held(),
                _ => 0,
            },
            Self::Choice(ArmRun::Ended { local, done, .. }) => sum([local.json_len(), done.held()]),
            Self::Children(children) => children.held(),
            Self::Simple | Self::Wait(_) | Self::Choice(_) => 0,
        }
    }

    /// What those inside did that could be undone and that are over.
    fn done(&self) -> Option<&DoneList> {
        match self {
            Self::Choice(ArmRun::Ended { done, .. }) => Some(done),
            Self::Children(children) => Some(&children.done),
            _ => None,
        }
    }
}

impl Children {
    fn held(&self) -> usize {
        let outcomes = self.results.len() * OUTCOME_BYTES;
        sum([self.results_len, outcomes, self.done.held()])
    }
}

impl Done {
    /// The bytes that the entry holds.
    pub(super) fn held(&self) -> usize {
        sum([DONE_BYTES, self.own, self.result.json_len()])
    }

    fn repeated(&self) -> usize {
        self.input.json_len().saturating_sub(self.own)
    }
}

impl Undoing {
    fn held(&self) -> usize {
        let current = self.current.as_ref().map_or(0, |run| {
            let answer = match &run.phase {
                UndoPhase::Polled { result } => result.json_len(),
                _ => 0,
            };
            run.done.held().saturating_add(answer)
        });
        self.queue.held().saturating_add(current)
    }
}

impl Failure {
    fn held(&self) -> usize {
        self.error.json_len() + self.cause.json_len()
    }
}

/// A damaged checkpoint may say any size.
fn sum<const N: usize>(parts: [usize; N]) -> usize {
    parts.into_iter().fold(0, usize::saturating_add)
}
