//! Reading a state: which steps are open, and with what data.

use crate::event::Path;
use crate::state::{Frame, Inside, Phase, ROOT, State, TaskPhase};
use starbridge_flow::graph::StepId;
use starbridge_flow::value::Object;

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
    /// The step.
    pub step: StepId,
    /// The composites around it.
    pub path: Path,
    /// How far the step has come.
    pub state: StepState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Which visit of this step it is, from 1.
    pub visit: u32,
    /// Its input; `{}` before the first attempt.
    pub input: Object,
    /// The local data of the list it stands in.
    pub list_local: Object,
}

impl State {
    /// The flow's input after its mappings.
    pub fn flow_input(&self) -> Object {
        self.frame(ROOT)
            .map(|frame| frame.input.to_object())
            .unwrap_or_default()
    }

    /// The flow's local data: the merged outputs of its steps so far.
    pub fn flow_local(&self) -> Object {
        self.frame(ROOT).map(|frame| frame.local.clone()).unwrap_or_default()
    }

    /// The open steps, in the order in which they were entered: outer before inner.
    pub fn open_steps(&self) -> Vec<OpenStep> {
        let ids = self.frames.ids().into_iter();
        ids.filter_map(|id| self.frame(id)).filter_map(open_step).collect()
    }
}

fn open_step(frame: &Frame) -> Option<OpenStep> {
    let visit = frame.visit()?;
    let state = match (&frame.at, &frame.undoing) {
        (_, Some(undoing)) if undoing.failed => StepState::RollbackFailed,
        (_, Some(_)) => StepState::RollingBack,
        (crate::state::At::Failed(..), _) => StepState::Failed,
        (crate::state::At::Cancelled(_), _) => StepState::Cancelled,
        _ => match &visit.phase {
            Phase::Entered => StepState::Entered,
            Phase::Succeeded { .. } => StepState::Succeeded,
            Phase::Failed { .. } => StepState::Failed,
            Phase::Manual { .. } => StepState::Manual,
            Phase::Retrying { .. } => StepState::Retrying,
            Phase::Started(Inside::Wait(_)) => StepState::Waiting,
            Phase::Started(Inside::Task(run)) => match run.phase {
                TaskPhase::InFlight { .. } => StepState::InFlight,
                TaskPhase::Sleeping { .. } => StepState::Polling,
                _ => StepState::Running,
            },
            Phase::Started(_) => StepState::Running,
        },
    };
    Some(OpenStep {
        step: visit.step,
        path: frame.path.clone(),
        state,
        attempt: visit.attempt,
        visit: visit.number,
        input: visit.input.to_object(),
        list_local: frame.local.clone(),
    })
}
