//! Recovery: an execution taken up again from its history.

use super::{Live, Outgoing, Shard};
use starbridge_fdl::graph::Flow;
use starbridge_fdl::value::Text;
use starbridge_machine::history::HistoryError;
use starbridge_machine::{EventId, Signal, State, Status, history};
use starbridge_ports::StoredHistory;
use std::sync::Arc;

impl Shard {
    /// Takes up an execution from what a store kept: the checkpoint if it is of use, then the events after it.
    ///
    /// What is outstanding leaves again under the same keys. After the last execution is taken up,
    /// [`Shard::recovered`] links children and parents.
    pub fn recover(&mut self, execution: &str, flow: &Arc<Flow>, stored: &StoredHistory) -> Result<(), HistoryError> {
        let id = Text::from(execution);
        let shortcut = stored
            .checkpoint
            .as_ref()
            .and_then(|(_, bytes)| State::from_checkpoint(flow, bytes, self.limits.clone()).ok());
        let mut state = shortcut.unwrap_or_else(|| State::new(id.clone(), self.limits.clone()));
        for object in &stored.events {
            let event = history::read_event(flow, &object.clone().into())?;
            if event.id > state.last_event() {
                state.apply(flow, &event);
            }
        }
        if let Some(at) = state.broken_at() {
            return Err(HistoryError {
                message: format!("event {at} does not fit the flow"),
            });
        }
        if let Some(started) = state.started() {
            self.names
                .insert((started.flow.clone(), started.name.clone()), id.clone());
            if let Some(parent) = &started.parent {
                self.children
                    .insert((parent.execution.clone(), parent.event), id.clone());
            }
        }
        let sends: Vec<_> = state.calls_to_send_after(flow, EventId(0)).collect();
        for call in state.calls_in_flight() {
            if let Some(call) = state.call_to_send(flow, call) {
                self.note_sync(&Outgoing::Send {
                    execution: id.clone(),
                    call: Box::new(call),
                });
            }
        }
        for call in state.given_up() {
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
        if state.must_continue() {
            self.continuing.push_back(id.clone());
        }
        let live = Live {
            flow: flow.clone(),
            state,
            wakeup: None,
            family: vec![id.clone()],
        };
        self.executions.insert(id.clone(), live);
        self.note_wakeup(&id);
        Ok(())
    }

    /// All executions are taken up: families are known, and children tell how they ended where that got lost.
    pub fn recovered(&mut self) {
        let mut ids: Vec<Text> = self.executions.keys().cloned().collect();
        ids.sort_by_key(|id| {
            let started = self.state(id).and_then(|state| state.started());
            started.and_then(|started| {
                started
                    .parent
                    .as_ref()
                    .map(|parent| (parent.execution.clone(), parent.event))
            })
        });
        for id in &ids {
            let mut family = vec![id.clone()];
            let mut next = self.parent_of(id);
            while let Some(outer) = next {
                if family.contains(&outer) {
                    break;
                }
                next = self.parent_of(&outer);
                family.push(outer);
            }
            if let Some(live) = self.executions.get_mut(id) {
                live.family = family;
            }
        }
        for id in ids {
            let Some(state) = self.state(&id) else {
                continue;
            };
            let status = state.status();
            let waiting = state
                .started()
                .and_then(|started| started.parent.clone())
                .is_some_and(|parent| {
                    self.state(&parent.execution)
                        .is_some_and(|outer| outer.is_in_flight(parent.event))
                });
            if status.is_ended() && waiting {
                self.tell_parent(&id, status);
            }
            self.stop_orphan(&id);
        }
    }

    /// A child whose call was given up is stopped, should the message have been lost.
    fn stop_orphan(&mut self, id: &Text) {
        let Some(state) = self.state(id) else {
            return;
        };
        let Some(parent) = state.started().and_then(|started| started.parent.clone()) else {
            return;
        };
        let running = matches!(state.status(), Status::Running);
        let given_up = self
            .state(&parent.execution)
            .is_some_and(|outer| outer.was_given_up(parent.event));
        if running && given_up {
            let stop = Signal::Stop {
                error: None,
                cause: "the task that waited for it was given up".to_owned(),
                by: None,
                rollback: true,
            };
            self.inbox.push_back((id.clone(), stop));
        }
    }

    fn parent_of(&self, id: &Text) -> Option<Text> {
        let started = self.state(id)?.started()?;
        started.parent.as_ref().map(|parent| parent.execution.clone())
    }
}
