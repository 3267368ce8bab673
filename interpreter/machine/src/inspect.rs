//! Looking into a state: what is open, and with what data.

use crate::event::Path;
use crate::state::{Frame, Inside, Phase, ROOT, State, TaskPhase};
use starbridge_flow::graph::StepId;
use starbridge_flow::value::Object;

words! {
    /// What an open step does.
    StepState {
        /// An attempt is about to begin.
        Entered = "entered",
        /// An attempt runs.
        Running = "running",
        /// A call is in flight.
        InFlight = "inFlight",
        /// The resource is to be called again later.
        Polling = "polling",
        /// A wait step waits.
        Waiting = "waiting",
        /// The next attempt is waited for.
        Retrying = "retrying",
        /// An operator is waited for.
        Manual = "manual",
        /// It ended well.
        Succeeded = "succeeded",
        /// It failed.
        Failed = "failed",
        /// It was given up.
        Cancelled = "cancelled",
        /// What its list did is being undone.
        RollingBack = "rollingBack",
        /// What its list did can't be undone.
        RollbackFailed = "rollbackFailed",
    }
}

/// A step that has been entered and not been left.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenStep {
    /// The step.
    pub step: StepId,
    /// Where it stands.
    pub path: Path,
    /// What it does.
    pub state: StepState,
    /// The attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The visit, from 1.
    pub visit: u32,
    /// Its input; `{}` before the first attempt.
    pub input: Object,
    /// The local of the list it stands in.
    pub list_local: Object,
}

impl State {
    /// The flow's input, mapped.
    pub fn flow_input(&self) -> Object {
        self.frame(ROOT)
            .map(|frame| frame.input.to_object())
            .unwrap_or_default()
    }

    /// The flow's local: the merged outputs of its steps so far.
    pub fn flow_local(&self) -> Object {
        self.frame(ROOT).map(|frame| frame.local.clone()).unwrap_or_default()
    }

    /// The open steps, outer before inner, in the order entered.
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
