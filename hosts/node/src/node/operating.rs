//! The data of an execution that acts of operators need before they are carried out.

use super::flows::PutError;
use super::queries::{QueryError, QueryResult};
use super::{Node, Operator};
use crate::export::ExportedHistory;
use crate::replay::{Divergence, replay};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Event, EventId, EventKind, ResolutionAction, StepPath};
use starbridge_runtime::{ForkRequest, stored_events};
use std::sync::Arc;

/// The fork that an operator requests.
#[derive(Clone, Debug, Default)]
pub struct WantedFork {
    /// The event to go on from.
    pub event: EventId,
    /// The name of the fork; `None`: its id.
    pub name: Option<Text>,
    /// The version of the flow that it runs; `None`: that of the old execution.
    pub version: Option<u64>,
    /// The definition that it runs in place of a version. It is put as one once the fork fits: [`Node::fork_defined`].
    pub definition: Option<Arc<Flow>>,
    /// The input that it is as if started with; `None`: that of the old execution.
    pub input: Option<Value>,
    /// The name of the operator, if it is known.
    pub by: Option<Text>,
}

/// Why a fork can't be requested.
#[derive(Debug)]
pub enum ForkRefusal {
    /// The execution can't be read, or it has no such event.
    Query(QueryError),
    /// The flow has no such version.
    NoSuchVersion {
        /// The name of the flow.
        flow: Text,
        /// The requested version.
        version: u64,
    },
    /// That version or input would have done something else before the event.
    DoesNotFit(Box<Divergence>),
    /// A concurrency key of that version can't be made of the execution's input. The text says why.
    InvalidKey(String),
}

/// Why a fork with a definition can't be asked for.
#[derive(Debug)]
pub enum DefinedForkRefusal {
    /// The definition can't be put.
    Put(PutError),
    /// The fork can't be asked for. Nothing is put.
    Fork(ForkRefusal),
}

impl From<PutError> for DefinedForkRefusal {
    fn from(error: PutError) -> Self {
        Self::Put(error)
    }
}

impl From<ForkRefusal> for DefinedForkRefusal {
    fn from(refusal: ForkRefusal) -> Self {
        Self::Fork(refusal)
    }
}

impl From<QueryError> for ForkRefusal {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

/// An operator's decision that is in a history.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedStep {
    /// The number of its event.
    pub event: EventId,
    /// The decision.
    pub action: ResolutionAction,
    /// The operator.
    pub by: Text,
    /// The time of the decision.
    pub time: Timestamp,
}

/// Looks for the last decision about one visit of a step.
struct Decisions {
    /// The event that names the visit: its `StepEntered`, or a `ManualRequested` of it.
    of: EventId,
    last: EventId,
    /// The step of that event, and whether the event is a request.
    place: Option<(Event, bool)>,
    found: Option<ResolvedStep>,
}

impl Decisions {
    /// Takes the next event. Returns false when the visit is over.
    fn see(&mut self, event: &Event) -> bool {
        self.last = event.id;
        if event.id == self.of {
            let is_request = matches!(event.detail, EventKind::ManualRequested(_));
            if is_request || matches!(event.detail, EventKind::StepEntered { .. }) {
                self.place = Some((event.clone(), is_request));
            }
            return true;
        }
        let Some((begin, is_request)) = &self.place else {
            return true;
        };
        let path: &StepPath = &begin.path;
        if event.step != begin.step || event.path != *path {
            return true;
        }
        match &event.detail {
            EventKind::StepEntered { .. } => return false,
            EventKind::ManualResolved(resolution) if !is_request || event.caused_by == self.of => {
                self.found = Some(ResolvedStep {
                    event: event.id,
                    action: resolution.decision.action(),
                    by: resolution.by.clone(),
                    time: event.time,
                });
            }
            _ => {}
        }
        true
    }
}

impl Node {
    /// The last decision of an operator about a step, given by its `StepEntered` or by a `ManualRequested`; `None` if
    /// there is none.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], [`QueryError::NoSuchEvent`], or [`QueryError::Store`] if the store fails.
    pub fn resolved_step(&self, id: &str, of: EventId) -> QueryResult<Option<ResolvedStep>> {
        let mut decisions = Decisions {
            of,
            last: EventId(0),
            place: None,
            found: None,
        };
        self.each_event(id, |_, event| decisions.see(event))?;
        if of > decisions.last || of == EventId(0) {
            return Err(QueryError::NoSuchEvent(decisions.last));
        }
        Ok(decisions.found)
    }

    /// The request to fork an execution. With another version or input, the events up to the given
    /// one must be the same.
    ///
    /// # Errors
    ///
    /// [`ForkRefusal`] if the execution, the event or the version does not exist, version or input
    /// do not fit, or the store fails.
    pub fn fork_request(&self, id: &str, wanted: WantedFork) -> Result<ForkRequest, ForkRefusal> {
        let record = self.store.record(id).map_err(QueryError::from)?;
        let record = record.ok_or(QueryError::NoSuchExecution)?;
        let WantedFork {
            event,
            name,
            version,
            definition,
            input,
            by,
        } = wanted;
        let last = self.last_event(id)?;
        if event > last || event == EventId(0) {
            return Err(QueryError::NoSuchEvent(last).into());
        }
        let old_flow = self.flow_of(id, &record)?;
        let mut events = stored_events(self.store.as_ref(), &old_flow, id, event.0).map_err(QueryError::from)?;
        let is_new = version.is_some() || definition.is_some() || input.is_some();
        if let Some(input) = input {
            start_with(&mut events, input);
        }
        let version = version.filter(|version| *version != record.version);
        let flow = match (definition, version) {
            (Some(flow), _) => flow,
            (None, None) => old_flow.clone(),
            (None, Some(version)) => {
                self.flows
                    .running(&record.flow, version)
                    .ok_or_else(|| ForkRefusal::NoSuchVersion {
                        flow: record.flow.clone(),
                        version,
                    })?
            }
        };
        // After a redrive with another version the first event still names the old one.
        let version = version.or_else(|| was_started_with_another(&events, record.version).then_some(record.version));
        let request = ForkRequest {
            of: Text::from(id),
            flow,
            old_flow,
            version,
            events,
            event,
            name,
            by,
            audit: None,
        };
        if is_new {
            check_fit(&request, &self.limits)?;
        }
        Ok(request)
    }

    /// The request to fork an execution with a definition. Only one that fits is put, as the latest version of the flow.
    ///
    /// # Errors
    ///
    /// [`DefinedForkRefusal`] if the definition can't be put, or as [`Node::fork_request`].
    pub fn fork_defined(
        &self,
        id: &str,
        wanted: WantedFork,
        definition: String,
        operator: &Operator,
    ) -> Result<ForkRequest, DefinedForkRefusal> {
        let record = self
            .store
            .record(id)
            .map_err(QueryError::from)
            .map_err(ForkRefusal::from)?;
        let record = record.ok_or(ForkRefusal::Query(QueryError::NoSuchExecution))?;
        let checked = self.check_flow(&record.flow, definition, None)?;
        let definition = Some(checked.flow.clone());
        let mut request = self.fork_request(id, WantedFork { definition, ..wanted })?;
        let put = self.put_checked(&record.flow, checked, Some(operator))?;
        request.flow = put.flow;
        request.version = Some(put.version);
        Ok(request)
    }
}

/// Whether the first of these events names another version than this.
fn was_started_with_another(events: &[Event], version: u64) -> bool {
    events.first().is_some_and(|first| match &first.detail {
        EventKind::ExecutionStarted(started) => started.version != version,
        _ => false,
    })
}

/// Puts another input into the first event of a history. References to tokens in the old input are
/// removed with it.
fn start_with(events: &mut [Event], input: Value) {
    if let Some(first) = events.first_mut()
        && let EventKind::ExecutionStarted(started) = &mut first.detail
    {
        started.input = input;
        started.tokens = Vec::new();
    }
}

/// Whether the flow of a fork repeats the old history.
fn check_fit(request: &ForkRequest, limits: &Limits) -> Result<(), ForkRefusal> {
    let history = ExportedHistory {
        execution: request.of.clone(),
        flow: request.old_flow.clone(),
        events: request.events.clone(),
    };
    let flow: &Arc<Flow> = &request.flow;
    match replay(&history, flow, limits.clone()).divergence {
        None => Ok(()),
        Some(divergence) => Err(ForkRefusal::DoesNotFit(Box::new(divergence))),
    }
}
