//! What a node logs about executions: names, ids and names of errors. Never data of a flow.

use starbridge_machine::{EventKind, Status};
use starbridge_runtime::{Outgoing, Shard};

/// Logs what leaves a shard.
pub(super) fn tell(shard: &Shard, outgoing: &Outgoing) {
    match outgoing {
        Outgoing::Started { execution, .. } => {
            let started = shard.state(execution).and_then(|state| state.started());
            let flow = started.map(|started| started.flow.as_str()).unwrap_or_default();
            tracing::debug!(%execution, flow, "started");
        }
        Outgoing::Ended { execution, status } => {
            let failure = shard.state(execution).and_then(|state| state.failure());
            let error = failure.map(|failure| failure.error.as_str()).unwrap_or_default();
            let status_word = status.as_str();
            if *status == Status::RollbackFailed {
                // An operator has to act: what was done is neither kept nor undone.
                tracing::warn!(%execution, error, "could not be undone");
            } else {
                tracing::debug!(%execution, status = status_word, error, "ended");
            }
        }
        Outgoing::Turn { execution, events } if tracing::enabled!(tracing::Level::DEBUG) => {
            for event in events {
                if let EventKind::StepFailed { failure, attempt } = &event.detail {
                    let step = event
                        .step
                        .zip(shard.flow(execution))
                        .and_then(|(step, flow)| flow.step(step));
                    let step = step.map(|step| step.name.as_str()).unwrap_or_default();
                    tracing::debug!(%execution, step, attempt, error = %failure.error, "an attempt failed");
                }
            }
        }
        _ => {}
    }
}
