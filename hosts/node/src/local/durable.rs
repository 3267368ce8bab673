//! Runs with a store: begun once, and continued as often as needed.

use super::{LocalError, LocalRun, LocalStart, redriven_with};
use crate::export::ExportedHistory;
use crate::fit::{FitError, fit};
use crate::flow_loading;
use crate::node::{NodeError, token_keys};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{CallToSend, Event, NewDefinition, Rejection, State, Status};
use starbridge_ports::{ExecutionRecord, History, Query, Store, StoreError};
use starbridge_runtime::{Engine, FlowTable, RedefineRequest, TokenKeys, stored_events};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many executions are read at once.
const PAGE: usize = 1_000;

/// A store, and the flows of a run.
pub(super) struct RunStore {
    store: Arc<dyn Store>,
    /// The flows of the store.
    flows: FlowTable,
    /// The flows that were given.
    given: FlowTable,
    limits: Limits,
}

impl From<NodeError> for LocalError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Store(error) => Self::Store(error),
            NodeError::System(message) => Self::System(message),
        }
    }
}

impl From<StoreError> for LocalError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl RunStore {
    pub(super) fn open(store: Arc<dyn Store>, given: FlowTable, limits: &Limits) -> Result<Self, LocalError> {
        let flows = flow_loading::load(store.as_ref(), limits)?;
        let limits = limits.clone();
        Ok(Self {
            store,
            flows,
            given,
            limits,
        })
    }

    pub(super) fn token_keys(&self) -> Result<TokenKeys, LocalError> {
        Ok(token_keys(self.store.as_ref(), &[])?)
    }

    pub(super) fn flows(&self) -> FlowTable {
        self.flows.clone()
    }

    pub(super) fn history(&self) -> Arc<dyn History> {
        self.store.clone()
    }

    /// The execution and its descendants that have not ended.
    fn family(&self, execution: &Text) -> Result<BTreeSet<Text>, StoreError> {
        let mut family = BTreeSet::from([execution.clone()]);
        let mut query = Query {
            statuses: vec![Status::Running, Status::Manual, Status::RollingBack],
            limit: PAGE,
            ..Query::default()
        };
        loop {
            let page = self.store.list(&query)?;
            let related = page
                .items
                .into_iter()
                .filter(|listed| listed.record.root.as_ref() == Some(execution));
            family.extend(related.map(|listed| listed.id));
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(family);
            }
        }
    }

    /// The flow that an execution runs, and the given flow with its name.
    fn ran_and_given(&self, record: &ExecutionRecord) -> Result<(Arc<Flow>, Arc<Flow>), LocalError> {
        let ran = self.flows.running(&record.flow, record.version);
        let given = self.given.get(&record.flow, None);
        let (Some(ran), Some((given, _))) = (ran, given) else {
            let message = format!("version {} of the flow `{}` is gone", record.version, record.flow);
            return Err(LocalError::Store(StoreError::Corrupt(message)));
        };
        Ok((ran, given))
    }

    /// Checks that an execution was started with the given flow and input. For a redrive, the flow
    /// may be another one.
    fn check(
        &self,
        id: &Text,
        record: &ExecutionRecord,
        input: Option<&Value>,
        is_redriven: bool,
    ) -> Result<(), LocalError> {
        let (ran, given) = self.ran_and_given(record)?;
        if ran.hash != given.hash && !is_redriven {
            return Err(LocalError::OtherDefinition {
                name: record.name.to_string(),
                version: record.version,
            });
        }
        let Some(input) = input else {
            return Ok(());
        };
        let first = stored_events(self.store.as_ref(), &ran, id, 1)?;
        let begun = first.into_iter().find_map(|event| match event.detail {
            starbridge_machine::EventKind::ExecutionStarted(started) => Some(started.input),
            _ => None,
        });
        if begun.as_ref().is_some_and(|begun| begun != input) {
            return Err(LocalError::OtherInput(record.name.to_string()));
        }
        Ok(())
    }
}

impl LocalRun {
    /// Stores the given flows, and loads the execution with that name, if there is one.
    pub(super) fn take_up(
        &mut self,
        flow: &str,
        input: Option<&Value>,
        name: Option<&str>,
        is_redriven: bool,
    ) -> Result<Option<LocalStart>, LocalError> {
        let engine = self.engine.as_mut().ok_or_else(super::given_up)?;
        let now = engine.now();
        let Some(kept) = &self.kept else {
            return Ok(None);
        };
        let known = match name {
            Some(name) => kept.store.named(flow, name)?,
            None => None,
        };
        let mut record = None;
        if let Some(id) = &known {
            record = kept.store.record(id)?;
            if let Some(record) = &record {
                kept.check(id, record, input, is_redriven)?;
            }
        }
        if is_redriven && record.is_none() {
            return Ok(None);
        }
        for (name, flow) in kept.given.latest() {
            let is_same = |record: &ExecutionRecord| record.flow.as_str() == name;
            // An execution goes on with the version it began with, and needs no later one.
            if !record.as_ref().is_some_and(is_same) {
                let text = flow.definition.to_json();
                let (version, _) = kept.store.put_flow(&name, &text, &flow.hash, now, None)?;
                kept.flows.set(&name, version, flow);
            }
        }
        let (Some(id), Some(record)) = (known, record) else {
            return Ok(None);
        };
        let family = kept.family(&id)?;
        engine.take_up_only(&family)?;
        if engine.shard().waits_to_begin(&id) {
            let until = record.wake_at.map(|at| format!(" until {at}")).unwrap_or_default();
            let message = format!("the execution {id} waits to begin{until}: a server with this store begins it");
            return Err(LocalError::System(message));
        }
        if engine.shard().state(&id).is_none() {
            // Reading it again gives the reason.
            if let Some(flow) = kept.flows.running(&record.flow, record.version) {
                stored_events(kept.store.as_ref(), &flow, &id, u64::MAX)?;
            }
            let message = format!("the execution {id} can't be taken up");
            return Err(LocalError::Store(StoreError::Corrupt(message)));
        }
        Ok(Some(match record.ended {
            None => LocalStart::TakenUp(id),
            Some(_) => LocalStart::Ended(id),
        }))
    }

    /// The request to redrive an execution with the given definition, if that differs from its own.
    /// The definition is stored if it fits.
    pub(super) fn redefinition(&mut self, execution: &Text) -> Result<Option<RedefineRequest>, LocalError> {
        let now = self.engine.as_ref().ok_or_else(super::given_up)?.now();
        let Some(kept) = &self.kept else {
            return Ok(None);
        };
        let Some(record) = kept.store.record(execution)? else {
            return Ok(None);
        };
        let (ran, given) = kept.ran_and_given(&record)?;
        if ran.hash == given.hash || record.ended.is_none() {
            return Ok(None);
        }
        let history = ExportedHistory::of_execution(kept.store.as_ref(), ran, execution)?;
        let events = match fit(&history, &given, &kept.limits) {
            Ok(Some(events)) => events,
            Ok(None) => return Ok(None),
            Err(FitError::Broken(at)) => return Err(LocalError::NotRedriven(Rejection::Broken { at })),
            Err(FitError::Differs(divergence)) => {
                return Err(LocalError::DoesNotFit {
                    name: record.name.to_string(),
                    divergence,
                });
            }
        };
        let text = given.definition.to_json();
        let (version, _) = kept.store.put_flow(&record.flow, &text, &given.hash, now, None)?;
        kept.flows.set(&record.flow, version, given.clone());
        let hash = given.hash.clone();
        Ok(Some(RedefineRequest {
            execution: execution.clone(),
            events,
            signal: redriven_with(Some(NewDefinition { version, hash })),
            audit: None,
            flow: given,
        }))
    }

    /// The events of an execution that were stored before this run.
    ///
    /// # Errors
    ///
    /// [`LocalError::Store`] if the store fails or the history does not fit its flow.
    pub fn kept_events(&self, execution: &str) -> Result<Vec<Event>, LocalError> {
        match (&self.kept, self.flow(execution)) {
            (Some(kept), Some(flow)) => Ok(stored_events(kept.store.as_ref(), flow, execution, u64::MAX)?),
            _ => Ok(Vec::new()),
        }
    }

    /// The executions of this run, each with its flow and its state.
    pub fn states(&self) -> impl Iterator<Item = (&Text, &Arc<Flow>, &State)> {
        let shard = self.engine.iter().map(Engine::shard);
        shard.flat_map(|shard| {
            let executions = shard.executions();
            executions.filter_map(|execution| Some((execution, shard.flow(execution)?, shard.state(execution)?)))
        })
    }

    /// Calls that were sent before this run and whose results others report.
    pub fn reported_calls(&self) -> Vec<(Text, CallToSend)> {
        let mut calls = Vec::new();
        let Some(engine) = &self.engine else {
            return calls;
        };
        let shard = engine.shard();
        for execution in shard.executions() {
            let Some((state, flow)) = shard.state(execution).zip(shard.flow(execution)) else {
                continue;
            };
            let waiting = state.calls_in_flight().filter(|call| !state.is_to_be_sent(*call));
            calls.extend(waiting.filter_map(|call| Some((execution.clone(), state.call_to_send(flow, call)?))));
        }
        calls
    }
}
