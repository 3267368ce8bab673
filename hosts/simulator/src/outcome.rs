//! What came of a rehearsal.

use starbridge_flow::graph::Flow;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{Event, EventKind, Failure, State, Status, history};

/// What came of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The status' word; `Refused` where nothing started.
    pub status: String,
    /// The output.
    pub output: Option<Object>,
    /// The error.
    pub failure: Option<Failure>,
    /// Where it arose.
    pub failed_step: Option<Text>,
    /// Why nothing started.
    pub refusal: Option<String>,
    /// Steps in the order entered.
    pub steps: Vec<String>,
    /// Tasks undone, in order.
    pub rollbacks: Vec<String>,
    /// Types of all events.
    pub events: Vec<String>,
    /// From the first event to the last, in milliseconds.
    pub elapsed_ms: u64,
}

impl Outcome {
    /// Nothing started.
    pub fn refused(why: String) -> Self {
        Self {
            status: "Refused".to_owned(),
            refusal: Some(why),
            ..Self::default()
        }
    }

    /// What a history and the state it leads to say.
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
            (Some(first), Some(last)) => last.time.millis_since(first.time),
            _ => 0,
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
            steps: named(|detail| matches!(detail, EventKind::StepEntered)),
            rollbacks: named(|detail| matches!(detail, EventKind::RollbackStarted { .. })),
            events: events
                .iter()
                .map(|event| history::type_name(&event.detail).to_owned())
                .collect(),
            elapsed_ms: elapsed,
        }
    }
}
