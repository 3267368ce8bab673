//! Recovery: an execution taken up again from its history.

use super::live::{Live, Standing};
use super::{Outgoing, Shard};
use starbridge_fdl::graph::Flow;
use starbridge_fdl::limits::Limits;
use starbridge_fdl::value::Text;
use starbridge_machine::history::HistoryError;
use starbridge_machine::{EventId, State, history};
use starbridge_ports::StoredHistory;
use std::sync::Arc;

/// Folds what a store kept: the checkpoint if it is of use, then the turns after it.
///
/// A checkpoint that is of no use can't be replaced by the turns after it: `None` asks for the whole history.
pub fn fold(
    execution: &str,
    flow: &Flow,
    stored: &StoredHistory,
    limits: &Arc<Limits>,
) -> Result<Option<State>, HistoryError> {
    let mut state = match &stored.checkpoint {
        None => State::new(execution, limits.clone()),
        Some((_, bytes)) => match State::from_checkpoint(flow, bytes, limits.clone()) {
            Ok(state) => state,
            Err(_) => return Ok(None),
        },
    };
    for turn in &stored.turns {
        for event in history::read_turn(flow, turn.first, turn.time, &turn.text)? {
            if event.id > state.last_event() {
                state.apply(flow, &event);
            }
        }
    }
    match state.broken_at() {
        None => Ok(Some(state)),
        Some(at) => Err(HistoryError {
            message: format!("event {at} does not fit the flow"),
        }),
    }
}

impl Shard {
    /// Takes up an execution from its folded history. What is outstanding leaves again under the same keys.
    pub fn recover(&mut self, flow: &Arc<Flow>, state: State, stored: &StoredHistory) {
        let id = state.execution().clone();
        let record = &stored.record;
        let family = [&id].into_iter().chain(&record.ancestors).cloned().collect();
        let sends: Vec<_> = state.calls_to_send_after(flow, EventId(0)).collect();
        let waiting: Vec<_> = state
            .calls_in_flight()
            .filter_map(|call| state.call_to_send(flow, call))
            .collect();
        let given_up: Vec<_> = state.given_up().collect();
        let must_continue = state.must_continue();
        let mut live = Live::new(flow.clone(), state, family, record.awaited);
        live.kept = Some(Standing {
            status: record.status,
            awake: record.awake,
            wake_at: record.wake_at,
        });
        if let Some((_, bytes)) = &stored.checkpoint {
            live.noted_checkpoint(bytes.len());
        }
        self.executions.insert(id.clone(), live);
        for call in &waiting {
            self.note_sync(&id, call);
        }
        // Who was not told before a crash is told now.
        for call in given_up {
            self.held.push(Outgoing::Cancel {
                execution: id.clone(),
                call,
            });
        }
        for call in sends {
            self.held.push(Outgoing::Send {
                execution: id.clone(),
                call: Box::new(call),
            });
        }
        if must_continue {
            self.continuing.push_back(id.clone());
        }
        self.note_wakeup(&id);
        self.note_idle(id);
    }

    /// Where an execution stands, as the store was told.
    pub fn standing(&self, execution: &str) -> Option<Standing> {
        self.executions.get(execution)?.kept
    }
}

/// The name and version of the flow of an execution.
pub fn flow_of(stored: &StoredHistory) -> (&Text, u64) {
    (&stored.record.flow, stored.record.version)
}
