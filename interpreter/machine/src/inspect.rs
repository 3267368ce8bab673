//! Looking into a state: what is open, and with what data.

use crate::event::Path;
use crate::state::{Frame, Inside, Phase, ROOT, State, TaskPhase};
use starbridge_fdl::graph::StepId;
use starbridge_fdl::value::Object;

/// A step that has been entered and not been left.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenStep {
    /// The step.
    pub step: StepId,
    /// Where it stands.
    pub path: Path,
    /// What it does: one word.
    pub state: &'static str,
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
        (_, Some(undoing)) if undoing.failed => "rollbackFailed",
        (_, Some(_)) => "rollingBack",
        (crate::state::At::Failed(..), _) => "failed",
        (crate::state::At::Cancelled(_), _) => "cancelled",
        _ => match &visit.phase {
            Phase::Entered => "entered",
            Phase::Succeeded { .. } => "succeeded",
            Phase::Failed { .. } => "failed",
            Phase::Manual { .. } => "manual",
            Phase::Retrying { .. } => "retrying",
            Phase::Started(Inside::Wait(_)) => "waiting",
            Phase::Started(Inside::Task(run)) => match run.phase {
                TaskPhase::InFlight { .. } => "inFlight",
                TaskPhase::Sleeping { .. } => "polling",
                _ => "running",
            },
            Phase::Started(_) => "running",
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
