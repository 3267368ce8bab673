//! Redrives with another definition (section "operating executions").

use super::Shard;
use super::loaded::Redefined;
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, Rejection, Signal, State};
use starbridge_ports::AuditEntry;
use std::sync::Arc;

/// A redrive with another definition.
#[derive(Clone, Debug)]
pub struct RedefineRequest {
    /// The id of the execution.
    pub execution: Text,
    /// The flow it goes on with.
    pub flow: Arc<Flow>,
    /// All its durable events, with the step numbers of that flow.
    pub events: Vec<Event>,
    /// The redrive. It names the definition.
    pub signal: Signal,
    /// The audit entry.
    pub audit: Option<AuditEntry>,
}

impl Shard {
    /// Lets a loaded execution that ended without success go on with another definition. Its
    /// history belongs to that definition from then on. If it has to be admitted, it waits with its
    /// old history.
    ///
    /// # Errors
    ///
    /// [`Rejection::Unknown`] if the execution is not loaded or the turn panics, [`Rejection::NotRedrivable`] if it went on
    /// since the events were read, [`Rejection::Broken`] if they do not fit the flow, or the rejection of the machine.
    pub fn redefine(&mut self, request: RedefineRequest, now: Timestamp) -> Result<(), Rejection> {
        let id = &request.execution;
        let limits = self.limits.clone();
        let live = self.executions.get_mut(id).filter(|live| !live.deleted);
        let live = live.ok_or(Rejection::Unknown)?;
        let last = request.events.last().map_or(EventId(0), |last| last.id);
        if live.state.last_event() != last {
            return Err(Rejection::NotRedrivable);
        }
        let mut state = State::new(id.clone(), limits);
        for event in &request.events {
            state.apply(&request.flow, event);
        }
        if let Some(at) = state.broken_at() {
            return Err(Rejection::Broken { at });
        }
        let RedefineRequest {
            execution,
            flow,
            signal,
            audit,
            ..
        } = request;
        self.turn_with(&execution, Redefined { flow, state }, |shard| {
            shard.signal_audited(&execution, signal, audit, now)
        })
    }

    /// Gives an execution a signal with another definition. If it takes the signal, it runs that definition from then on; if the
    /// signal waits to be admitted, the definition waits with it.
    pub(super) fn turn_with(
        &mut self,
        id: &Text,
        other: Redefined,
        give: impl FnOnce(&mut Self) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let live = self.executions.get_mut(id).ok_or(Rejection::Unknown)?;
        let own = live.exchange(other);
        let given = give(self);
        let Some(live) = self.executions.get_mut(id) else {
            return given;
        };
        if given.is_err() || live.asking.is_some() {
            let other = live.exchange(own);
            live.other = given.is_ok().then(|| Box::new(other));
            return given;
        }
        // INVARIANT: an earlier checkpoint has the step numbers of the old definition.
        let checkpoint = live.state.checkpoint(&live.flow);
        live.noted_checkpoint(checkpoint.len());
        let mut turns = self.pending.iter_mut().rev();
        if let Some(append) = turns.find(|append| append.execution == *id && append.turn.is_some()) {
            append.checkpoint = Some(checkpoint);
        }
        given
    }
}
