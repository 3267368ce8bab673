//! What a node says of executions in its log. No data of a flow is in it: names, ids and errors' names only.

use starbridge_machine::{EventKind, Status};
use starbridge_runtime::{Outgoing, Shard};

/// Writes what leaves to the log.
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
                // Somebody has to look: what was done is neither kept nor undone.
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
