//! What a node logs about executions: names, ids and names of errors, never data of a flow.

use starbridge_flow::value::Text;
use starbridge_machine::{EventKind, Status};
use starbridge_runtime::{Outgoing, Shard};

fn ended(shard: &Shard, execution: &Text, status: Status) {
    let needs_a_look = matches!(status, Status::RollbackFailed | Status::Failed | Status::TimedOut);
    if !needs_a_look && !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let record = shard.record(execution).unwrap_or_default();
    let (flow, name) = (record.flow.as_str(), record.name.as_str());
    let failure = record.failure.unwrap_or_default();
    let (error, step) = (failure.error.as_str(), failure.step.as_str());
    match status {
        // A person has to look: the effects are neither kept nor undone.
        Status::RollbackFailed => {
            let undo = record.rollback.unwrap_or_default();
            let (failed, why, left) = (undo.step.as_str(), undo.error.as_str(), undo.left.join(", "));
            tracing::warn!(
                %execution, flow, name, error, step, undo = failed, undo_error = why, left, "could not be undone"
            );
        }
        Status::Failed | Status::TimedOut => {
            let status = status.as_str();
            tracing::info!(%execution, flow, name, status, error, step, "failed");
        }
        _ => tracing::debug!(%execution, flow, name, status = status.as_str(), error, step, "ended"),
    }
}

/// Logs the output of a shard.
pub(super) fn log_outgoing(shard: &Shard, outgoing: &Outgoing) {
    match outgoing {
        Outgoing::Started { execution, .. } => {
            let started = shard.state(execution).and_then(|state| state.started());
            let flow = started.map(|started| started.flow.as_str()).unwrap_or_default();
            tracing::debug!(%execution, flow, "started");
        }
        Outgoing::Ended { execution, status } => {
            ended(shard, execution, *status);
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
