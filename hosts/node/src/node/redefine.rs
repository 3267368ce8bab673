//! Redrives with another version of the flow: checks whether it fits the history.

use super::operating::ForkRefusal;
use super::queries::QueryError;
use super::{Node, NotTaken};
use crate::export::ExportedHistory;
use crate::fit::{FitError, fit};
use crate::replay::fold;
use starbridge_flow::value::Text;
use starbridge_machine::{EditedInput, EventId, NewDefinition, Signal};
use starbridge_ports::AuditEntry;
use starbridge_runtime::{Command, RedefineRequest, Reply, check_keys};
use tokio::sync::oneshot;

/// The redrive with another version that an operator requests.
#[derive(Clone, Debug, Default)]
pub struct WantedRedrive {
    /// The version of the flow; `None`: the latest.
    pub version: Option<u64>,
    /// Inputs for steps that are entered again.
    pub inputs: Vec<EditedInput>,
    /// The name of the operator, if it is known.
    pub by: Option<String>,
    /// The audit entry.
    pub audit: Option<AuditEntry>,
}

/// A redrive that may be requested.
#[derive(Debug)]
pub enum Redrive {
    /// The execution runs that version, or begins with it: this one.
    Same(Signal, u64),
    /// It goes on with another version.
    Other(Box<RedefineRequest>),
}

impl Node {
    /// The request to redrive an execution with another version of its flow. Before the first step
    /// that is entered again, both versions must have done the same; the later events must be known
    /// to the new version.
    ///
    /// # Errors
    ///
    /// [`ForkRefusal`] if the execution or the version does not exist, the version does not fit, or
    /// the store fails.
    pub fn redrive_request(&self, id: &str, wanted: WantedRedrive) -> Result<Redrive, ForkRefusal> {
        let record = self.store.record(id).map_err(QueryError::from)?;
        let record = record.ok_or(QueryError::NoSuchExecution)?;
        let no_version = |version| ForkRefusal::NoSuchVersion {
            flow: record.flow.clone(),
            version,
        };
        let (flow, version) = match wanted.version {
            Some(version) => (self.flows.running(&record.flow, version), version),
            None => self
                .flows
                .get(&record.flow, None)
                .map_or((None, 0), |(flow, version)| (Some(flow), version)),
        };
        let flow = flow.ok_or_else(|| no_version(version))?;
        let redrive = |definition| Signal::Redrive {
            by: wanted.by.clone(),
            inputs: wanted.inputs.clone(),
            definition,
        };
        if version == record.version || record.ended.is_none() {
            return Ok(Redrive::Same(redrive(None), version));
        }
        let old = self.flow_of(id, &record)?;
        let history = ExportedHistory::of_execution(self.store.as_ref(), old, &Text::from(id));
        let history = history.map_err(QueryError::from)?;
        let state = fold(&history, None).map_err(|_| QueryError::NoSuchEvent(EventId(0)))?;
        if let Some(started) = state.started() {
            let checked = check_keys(&flow, &started.flow, &started.input, &self.limits);
            checked.map_err(|error| ForkRefusal::InvalidKey(error.to_string()))?;
        }
        let events = match fit(&history, &flow, &self.limits) {
            Ok(Some(events)) => events,
            Ok(None) => return Ok(Redrive::Same(redrive(None), version)),
            Err(FitError::Broken(at)) => return Err(QueryError::NoSuchEvent(at).into()),
            Err(FitError::Differs(divergence)) => return Err(ForkRefusal::DoesNotFit(divergence)),
        };
        let definition = NewDefinition {
            version,
            hash: flow.hash.clone(),
        };
        Ok(Redrive::Other(Box::new(RedefineRequest {
            execution: Text::from(id),
            events,
            signal: redrive(Some(definition)),
            audit: wanted.audit.map(|entry| entry.with("version", version)),
            flow,
        })))
    }

    /// Redrives an execution with another version of its flow, and waits until that is durable or refused.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn redefine(&self, request: RedefineRequest) -> Result<Reply, NotTaken> {
        let execution = request.execution.clone();
        let (reply, answer) = oneshot::channel();
        let request = Box::new(request);
        self.owners
            .owner_of(&execution, Command::Redefine { request, reply })
            .await?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }
}
