//! Redrives with another definition (section "operating executions").

use super::Shard;
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
    /// What the audit list says of it.
    pub audit: Option<AuditEntry>,
}

impl Shard {
    /// Lets a loaded execution that ended without success go on with another definition, of which its history is from now on.
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
        let old_flow = std::mem::replace(&mut live.flow, request.flow);
        let old_state = std::mem::replace(&mut live.state, state);
        let given = self.signal_audited(id, request.signal, request.audit, now);
        let live = self.executions.get_mut(id);
        match (&given, live) {
            (Err(_), Some(live)) => {
                live.flow = old_flow;
                live.state = old_state;
            }
            (Ok(()), Some(live)) => {
                // INVARIANT: an earlier checkpoint has the step numbers of the old definition.
                let checkpoint = live.state.checkpoint(&live.flow);
                live.noted_checkpoint(checkpoint.len());
                let turns = self.pending.iter_mut().rev();
                let own = turns
                    .into_iter()
                    .find(|append| append.execution == *id && append.turn.is_some());
                if let Some(append) = own {
                    append.checkpoint = Some(checkpoint);
                }
            }
            (_, None) => {}
        }
        given
    }
}
