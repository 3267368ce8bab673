//! Reading a state: which steps are open, and with what data.

use crate::event::{Child, Event, EventId, EventKind, Failure, StepPath};
use crate::state::resource_again;
use crate::state::{
    ArmRun, Frame, FramePosition, ROOT, State, Status, StepRun, TaskPhase, UndoPhase, UndoRun, VisitPhase,
};
use starbridge_flow::graph::{Flow, Rollback, Root, StepId, StepKind, Undo};
use starbridge_flow::value::{Text, Value};

words! {
    /// The state of an open step.
    StepState {
        /// An attempt is about to begin.
        Entered = "entered",
        /// An attempt runs.
        Running = "running",
        /// A call is in flight.
        InFlight = "inFlight",
        /// The resource is to be called again later.
        Polling = "polling",
        /// A wait step is waiting.
        Waiting = "waiting",
        /// The step waits for its next attempt.
        Retrying = "retrying",
        /// The step waits for an operator.
        Manual = "manual",
        /// The attempt succeeded.
        Succeeded = "succeeded",
        /// The attempt failed.
        Failed = "failed",
        /// The step was cancelled.
        Cancelled = "cancelled",
        /// The rollback of its list is in progress.
        RollingBack = "rollingBack",
        /// The rollback of its list failed.
        RollbackFailed = "rollbackFailed",
    }
}

/// A step that was entered and has not exited.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenStep {
    /// Its number in the flow.
    pub step: StepId,
    /// The composites around it.
    pub path: StepPath,
    /// How far the step has come.
    pub state: StepState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Which visit of this step it is, from 1.
    pub visit: u32,
    /// Its input; `{}` before the first attempt.
    pub input: Value,
    /// The local data of the list it stands in.
    pub list_local: Value,
}

/// A step that waits for an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct ManualRequest {
    /// The number of its `ManualRequested` event.
    pub event: EventId,
    /// Its number in the flow.
    pub step: StepId,
    /// Where it stands: its iteration and branch.
    pub path: StepPath,
    /// Why an operator is asked.
    pub failure: Failure,
}

/// A rollback that failed, and with it the execution.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedRollback {
    /// The step that could not be undone.
    pub step: StepId,
    /// Why.
    pub failure: Failure,
    /// The steps that are left to be undone in the order in which they would have been; that step is the first.
    pub left: Vec<StepId>,
}

/// A call that ended without a result and whose consequence is not decided yet.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedCall {
    /// The number of its `TaskScheduled` event.
    pub call: EventId,
    /// The number of the step that called.
    pub step: StepId,
    /// The composites around it.
    pub path: StepPath,
    /// The resource that was called.
    pub resource: Text,
}

/// Data around an event that is not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventData {
    /// For a step that was entered, the input of the list it stands in. For an attempt, its own
    /// input.
    pub input: Option<Value>,
    /// The local data of the list in which the step stands.
    pub local: Option<Value>,
}

impl State {
    /// The failed calls whose consequence is not decided yet, because of a pause or because the
    /// turn was full.
    pub fn undecided_calls(&self, flow: &Flow) -> Vec<FailedCall> {
        let frames = self.frames.ids().into_iter().filter_map(|id| self.frame(id));
        let found = frames.flat_map(|frame| [undecided_task(flow, frame), undecided_undo(flow, frame)]);
        found.flatten().filter(|found| found.call.0 > 0).collect()
    }

    /// The latest calls of the undos because of which the execution ended as [`Status::RollbackFailed`].
    pub fn failed_undo_calls(&self) -> Vec<EventId> {
        let frames = self.frames.failed_rollbacks().into_iter();
        let runs = frames.filter_map(|id| self.frame(id)?.undoing.as_ref()?.current.as_ref());
        runs.map(|run| run.last_call).filter(|call| call.0 > 0).collect()
    }

    /// What could not be undone, if the execution ended for that reason.
    pub fn failed_rollback(&self) -> Option<FailedRollback> {
        if self.data.status != Status::RollbackFailed {
            return None;
        }
        let failed = self.frames.failed_rollbacks();
        let undoing = || failed.iter().filter_map(|id| self.frame(*id)?.undoing.as_ref());
        let (step, failure) = undoing().find_map(|undoing| {
            let run = undoing.current.as_ref()?;
            Some((run.done.step, failure_of(run)?.clone()))
        })?;
        let left = undoing().flat_map(|undoing| {
            let current = undoing.current.iter().map(|run| run.done.step);
            current.chain(undoing.queue.iter().rev().map(|done| done.step))
        });
        Some(FailedRollback {
            step,
            failure,
            left: left.collect(),
        })
    }

    /// The steps that wait for an operator, in the order in which they asked.
    pub fn manual_requests(&self) -> impl Iterator<Item = ManualRequest> + '_ {
        self.data.manual.iter().filter_map(|(event, frame)| {
            let frame = self.frame(*frame)?;
            let visit = frame.visit()?;
            let VisitPhase::Manual { failure, .. } = &visit.phase else {
                return None;
            };
            Some(ManualRequest {
                event: *event,
                step: visit.step,
                path: frame.path.clone(),
                failure: failure.clone(),
            })
        })
    }

    /// The step in which the error of an execution arose. If it arose in none because the execution
    /// was stopped: the innermost step that the execution was in; of several, the one that was
    /// entered first.
    pub fn failed_at(&self) -> Option<StepId> {
        match self.data.status {
            Status::Stopped => self.data.failed_step.or_else(|| self.standing_in()),
            Status::RollbackFailed => self
                .data
                .failed_step
                .or_else(|| self.failed_in())
                .or_else(|| self.standing_in()),
            _ => self.data.failed_step,
        }
    }

    /// Where the failure of the outermost list that failed arose.
    fn failed_in(&self) -> Option<StepId> {
        let frames = self.frames.ids();
        frames.into_iter().find_map(|id| match &self.frame(id)?.at {
            FramePosition::Failed(_, _, origin) => Some(*origin),
            _ => None,
        })
    }

    fn standing_in(&self) -> Option<StepId> {
        let mut step = None;
        let mut list = ROOT;
        for id in self.frames.ids() {
            // Lists come after those they are in.
            let Some(frame) = self.frame(id) else {
                continue;
            };
            let inside = id == ROOT || frame.parent.is_some_and(|(outer, _)| outer == list);
            if let Some(visit) = frame.visit().filter(|_| inside) {
                step = Some(visit.step);
                list = id;
            }
        }
        step
    }

    /// The list that runs in these composites.
    fn frame_at(&self, path: &StepPath) -> Option<&Frame> {
        let mut id = ROOT;
        for item in path.items() {
            id = match (&self.frame(id)?.visit()?.phase, item.child) {
                (VisitPhase::Started(StepRun::Choice(ArmRun::Running { child, .. })), Child::Arm(_)) => *child,
                (VisitPhase::Started(StepRun::Children(children)), Child::Branch(n) | Child::Iteration(n)) => {
                    *children.live.get(&n)?
                }
                _ => return None,
            };
        }
        self.frame(id)
    }

    /// The data that the event just applied concerns but does not carry. Empty for most events.
    pub fn data_around(&self, event: &Event) -> EventData {
        let Some(frame) = event.step.and_then(|_| self.frame_at(&event.path)) else {
            return EventData::default();
        };
        match &event.detail {
            EventKind::StepEntered { .. } => EventData {
                input: Some(frame.input.to_value()),
                local: Some(frame.local.to_value()),
            },
            EventKind::StepStarted { .. } => EventData {
                input: frame.visit().map(|visit| visit.input.to_value()),
                local: None,
            },
            EventKind::StepExited { .. } => EventData {
                input: None,
                local: Some(frame.local.to_value()),
            },
            _ => EventData::default(),
        }
    }

    /// The flow's input after its mappings.
    pub fn flow_input(&self) -> Value {
        self.frame(ROOT)
            .map_or_else(Value::empty_object, |frame| frame.input.to_value())
    }

    /// The flow's local data: the merged outputs of its steps so far.
    pub fn flow_local(&self) -> Value {
        self.frame(ROOT)
            .map_or_else(Value::empty_object, |frame| frame.local.to_value())
    }

    /// The open steps, in the order in which they were entered: outer before inner.
    pub fn open_steps(&self) -> Vec<OpenStep> {
        self.each_open_step().collect()
    }

    /// The open steps, each made when it is asked for: the inputs of many can be much larger than the state.
    pub fn each_open_step(&self) -> impl Iterator<Item = OpenStep> {
        let ids = self.frames.ids().into_iter();
        ids.filter_map(|id| self.frame(id)).filter_map(open_step)
    }

    /// How many steps are open.
    pub fn open_step_count(&self) -> usize {
        let frames = self.frames.ids().into_iter().filter_map(|id| self.frame(id));
        frames.filter(|frame| frame.visit().is_some()).count()
    }
}

fn failure_of(run: &UndoRun) -> Option<&Failure> {
    match &run.phase {
        UndoPhase::Failed { failure, .. } | UndoPhase::Faulted { failure, .. } => Some(failure),
        _ => None,
    }
}

fn open_step(frame: &Frame) -> Option<OpenStep> {
    let visit = frame.visit()?;
    let state = match (&frame.at, &frame.undoing) {
        (_, Some(undoing)) if undoing.failed => StepState::RollbackFailed,
        (_, Some(_)) => StepState::RollingBack,
        (FramePosition::Failed(..), _) => StepState::Failed,
        (FramePosition::Cancelled(_), _) => StepState::Cancelled,
        _ => match &visit.phase {
            VisitPhase::Entered => StepState::Entered,
            VisitPhase::Succeeded { .. } => StepState::Succeeded,
            VisitPhase::Failed { .. } => StepState::Failed,
            VisitPhase::Manual { .. } => StepState::Manual,
            VisitPhase::Retrying { .. } => StepState::Retrying,
            VisitPhase::Started(StepRun::Wait(_)) => StepState::Waiting,
            VisitPhase::Started(StepRun::Task(run)) => match run.phase {
                TaskPhase::InFlight { .. } => StepState::InFlight,
                TaskPhase::Sleeping { .. } => StepState::Polling,
                _ => StepState::Running,
            },
            VisitPhase::Started(_) => StepState::Running,
        },
    };
    Some(OpenStep {
        step: visit.step,
        path: frame.path.clone(),
        state,
        attempt: visit.attempt,
        visit: visit.number,
        input: visit.input.to_value(),
        list_local: frame.local.to_value(),
    })
}

fn undecided_task(flow: &Flow, frame: &Frame) -> Option<FailedCall> {
    let visit = frame.visit()?;
    let run = visit
        .task()
        .filter(|run| matches!(run.phase, TaskPhase::Faulted { .. }))?;
    let StepKind::Task(task) = &flow.step(visit.step)?.kind else {
        return None;
    };
    let resource = || resource_again(&task.call, Root::from(&visit.input));
    Some(FailedCall {
        call: run.last_call,
        step: visit.step,
        path: frame.path.clone(),
        resource: run.location.clone().unwrap_or_else(resource),
    })
}

fn undecided_undo(flow: &Flow, frame: &Frame) -> Option<FailedCall> {
    let run = frame.undoing.as_ref()?.current.as_ref()?;
    if !matches!(run.phase, UndoPhase::Faulted { .. }) {
        return None;
    }
    let StepKind::Task(task) = &flow.step(run.done.step)?.kind else {
        return None;
    };
    let Some(Rollback {
        undo: Undo::Call(undo), ..
    }) = &task.rollback
    else {
        return None;
    };
    Some(FailedCall {
        call: run.last_call,
        step: run.done.step,
        path: run.done.path.clone(),
        resource: resource_again(undo, Root::from(&run.input)),
    })
}
