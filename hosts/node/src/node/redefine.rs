//! Redrives with another version of the flow: whether it fits what was done.

use super::operating::ForkRefusal;
use super::queries::QueryError;
use super::{Node, NotTaken};
use crate::export::ExportedHistory;
use crate::replay::{Divergence, fold, replay_before};
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::value::Text;
use starbridge_machine::history::{read_event, write_event};
use starbridge_machine::{EditedInput, EventId, NewDefinition, Signal};
use starbridge_ports::AuditEntry;
use starbridge_runtime::{Command, RedefineRequest, Reply};
use tokio::sync::oneshot;

/// The redrive with another version that an operator wants.
#[derive(Clone, Debug, Default)]
pub struct WantedRedrive {
    /// The version of the flow; `None`: the latest.
    pub version: Option<u64>,
    /// Inputs for steps that are entered again.
    pub inputs: Vec<EditedInput>,
    /// The name of the operator, where it is known.
    pub by: Option<String>,
    /// What the audit list says of it.
    pub audit: Option<AuditEntry>,
}

/// A redrive that may be asked for.
#[derive(Debug)]
pub enum Redrive {
    /// The execution runs that version, or begins with it: this one.
    Same(Signal, u64),
    /// It goes on with another one.
    Other(Box<RedefineRequest>),
}

impl Node {
    /// The request to redrive an execution with another version of its flow. Before the first step that is entered again, the
    /// same must have been done, and what comes after must be something that version knows.
    ///
    /// # Errors
    ///
    /// [`ForkRefusal`] if the execution or the version is not there, the version does not fit, or the store fails.
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
        let governed = self
            .admission
            .as_ref()
            .is_some_and(|admission| admission.governs(&record.flow));
        if governed || !flow.concurrency.is_empty() || !old.concurrency.is_empty() {
            return Err(ForkRefusal::NeedsSlot);
        }
        let history = ExportedHistory::of_execution(self.store.as_ref(), old, &Text::from(id));
        let history = history.map_err(QueryError::from)?;
        let state = fold(&history, None).map_err(|_| QueryError::NoSuchEvent(EventId(0)))?;
        let Some((from, steps)) = state.redriven_steps(&history.flow) else {
            return Ok(Redrive::Same(redrive(None), version));
        };
        let replayed = replay_before(&history, &flow, self.limits.as_ref().clone(), from);
        if let Some(divergence) = replayed.divergence {
            return Err(ForkRefusal::DoesNotFit(Box::new(divergence)));
        }
        let again = replayed.state.redriven_steps(&flow);
        let again = again.map(|(_, steps)| names(&flow, &steps)).unwrap_or_default();
        let wanted_steps = names(&history.flow, &steps);
        if again != wanted_steps {
            return Err(ForkRefusal::DoesNotFit(Box::new(other_steps(
                &history,
                from,
                &wanted_steps,
                &again,
            ))));
        }
        let events = history.events.iter().map(|event| {
            let written = write_event(&history.flow, event);
            read_event(&flow, &written.into()).map_err(|_| ForkRefusal::Query(QueryError::NoSuchEvent(event.id)))
        });
        let definition = NewDefinition {
            version,
            hash: flow.hash.clone(),
        };
        Ok(Redrive::Other(Box::new(RedefineRequest {
            execution: Text::from(id),
            events: events.collect::<Result<_, _>>()?,
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
        self.owners.owner_of(&execution, Command::Redefine { request, reply })?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }
}

fn names(flow: &Flow, steps: &[StepId]) -> Vec<Text> {
    let name = |step: &StepId| flow.step(*step).map(|step| step.name.clone()).unwrap_or_default();
    steps.iter().map(name).collect()
}

/// The difference where other steps would be entered again.
fn other_steps(history: &ExportedHistory, from: EventId, wanted: &[Text], again: &[Text]) -> Divergence {
    let place = usize::try_from(from.0).unwrap_or(0).saturating_sub(1);
    let event = history.events.get(place);
    let listed = |steps: &[Text]| match steps {
        [] => "none".to_owned(),
        steps => steps
            .iter()
            .map(|step| format!("`{step}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    Divergence {
        event: from,
        recorded: event.map(|event| write_event(&history.flow, event)),
        expected: None,
        refused: Some(format!(
            "the steps to enter again are {}, and with that version {}",
            listed(wanted),
            listed(again)
        )),
    }
}
