//! The result of a simulation.

use starbridge_flow::graph::Flow;
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Event, EventKind, Failure, State, Status, history};

/// The result of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The status; `Refused` if nothing started.
    pub status: String,
    /// The output, if the execution succeeded.
    pub output: Option<Value>,
    /// The failure, if it did not.
    pub failure: Option<Failure>,
    /// The name of the step in which the failure arose.
    pub failed_step: Option<Text>,
    /// Why nothing started.
    pub refusal: Option<String>,
    /// The steps in the order in which they were entered.
    pub steps: Vec<String>,
    /// The tasks that were undone, in order.
    pub rollbacks: Vec<String>,
    /// The types of all events.
    pub events: Vec<String>,
    /// The time from the first event to the last.
    pub elapsed: Millis,
}

impl Outcome {
    /// The outcome if nothing started.
    pub fn refused(why: String) -> Self {
        Self {
            status: "Refused".to_owned(),
            refusal: Some(why),
            ..Self::default()
        }
    }

    /// The outcome that a history and its state show.
    pub fn of(flow: &Flow, state: &State, events: &[Event]) -> Self {
        let name = |event: &Event| {
            event
                .step
                .and_then(|step| flow.step(step))
                .map(|step| step.name.to_string())
                .unwrap_or_default()
        };
        let named = |wanted: fn(&EventKind) -> bool| {
            events
                .iter()
                .filter(|event| wanted(&event.detail))
                .map(name)
                .collect::<Vec<_>>()
        };
        let elapsed = match (events.first(), events.last()) {
            (Some(first), Some(last)) => last.time.since(first.time),
            _ => Millis::ZERO,
        };
        Self {
            status: state.status().as_str().to_owned(),
            output: state.output().cloned(),
            failure: (state.status() != Status::Succeeded)
                .then(|| state.failure().cloned())
                .flatten(),
            failed_step: state
                .failed_step()
                .and_then(|step| flow.step(step))
                .map(|step| step.name.clone()),
            refusal: None,
            steps: named(|detail| matches!(detail, EventKind::StepEntered { .. })),
            rollbacks: named(|detail| matches!(detail, EventKind::RollbackStarted { .. })),
            events: events
                .iter()
                .map(|event| history::type_name(&event.detail).to_owned())
                .collect(),
            elapsed,
        }
    }
}
