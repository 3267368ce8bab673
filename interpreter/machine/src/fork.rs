//! Forks: a new execution that goes on from an event of an old one (section "operating executions").
//!
//! Its history is the old one up to the end of that event's turn, then `ExecutionForked`. Calls that are in flight
//! there are sent again by the fork, under its own keys and tokens.

use crate::event::{Event, EventId, EventKind};
use crate::history::{read_event, write_event};
use crate::signal::{Rejection, Signal};
use crate::state::State;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use std::sync::Arc;

/// What to fork, and the identity of the new execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// The id of the old execution.
    pub of: Text,
    /// The event to go on from. The fork keeps the turn of this event to its end.
    pub event: EventId,
    /// The id of the new execution.
    pub execution: Text,
    /// The name of the new execution.
    pub name: Text,
    /// The version of the flow that the fork runs, if it differs from the old one.
    pub version: Option<u64>,
    /// The name of the operator, where it is known.
    pub by: Option<Text>,
}

/// The beginning of a fork.
#[derive(Clone, Debug)]
pub struct Forked {
    /// The state after the first append.
    pub state: State,
    /// The turns of the first append: the copied ones, each with its own time, then the turn of the fork itself.
    pub turns: Vec<Vec<Event>>,
}

/// Why a fork is not possible.
#[derive(Clone, Debug, PartialEq)]
pub enum ForkError {
    /// The old history does not have the event.
    NoSuchEvent,
    /// The old history does not match the flow from this event on.
    DoesNotFit {
        /// The number of the first event that does not match.
        at: EventId,
    },
    /// The machine rejected the fork.
    Refused(Rejection),
}

impl std::fmt::Display for ForkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchEvent => f.write_str("the history has no such event"),
            Self::DoesNotFit { at } => write!(f, "the history does not fit the flow from event {at} on"),
            Self::Refused(rejection) => rejection.fmt(f),
        }
    }
}

impl std::error::Error for ForkError {}

impl State {
    /// Begins a fork that runs `flow`. `old` is the history of an execution of `old_flow`, which may be the same
    /// flow; `now` is the time of the fork's own turn.
    ///
    /// # Errors
    ///
    /// [`ForkError::NoSuchEvent`] if `old` does not have the event, [`ForkError::DoesNotFit`] if `flow` can't repeat
    /// `old` up to it, [`ForkError::Refused`] if the machine rejects the fork.
    pub fn fork(
        flow: &Flow,
        old_flow: &Flow,
        old: &[Event],
        fork: &Fork,
        limits: Arc<Limits>,
        now: Timestamp,
    ) -> Result<Forked, ForkError> {
        if fork.event == EventId::default() || !old.iter().any(|event| event.id == fork.event) {
            return Err(ForkError::NoSuchEvent);
        }
        let mut state = Self::new(fork.execution.clone(), limits);
        let mut turns: Vec<Vec<Event>> = Vec::new();
        for event in old {
            if event.id > fork.event && event.begins_turn() {
                break;
            }
            let event = fork
                .copy(flow, old_flow, event)
                .ok_or(ForkError::DoesNotFit { at: event.id })?;
            state.apply(flow, &event);
            if let Some(at) = state.broken_at() {
                return Err(ForkError::DoesNotFit { at });
            }
            match turns.last_mut().filter(|_| !event.begins_turn()) {
                Some(turn) => turn.push(event),
                None => turns.push(vec![event]),
            }
        }
        let signal = Signal::Fork {
            of: fork.of.clone(),
            event: fork.event,
            name: fork.name.clone(),
            by: fork.by.clone(),
        };
        let mut turn = Vec::new();
        state
            .advance(flow, signal, now, &mut turn)
            .map_err(ForkError::Refused)?;
        turns.push(turn);
        Ok(Forked { state, turns })
    }
}

impl Fork {
    /// An event as the fork records it: with the step numbers of the new flow and the fork's own tokens. `None`: the
    /// new flow lacks a step.
    fn copy(&self, flow: &Flow, old_flow: &Flow, event: &Event) -> Option<Event> {
        let written = self.own_tokens(&write_event(old_flow, event).into());
        let mut event = read_event(flow, &written).ok()?;
        // The first event names the definition of the fork.
        if let EventKind::ExecutionRedriven { definition, .. } = &mut event.detail {
            *definition = None;
        }
        if let EventKind::ExecutionStarted(started) = &mut event.detail {
            started.definition_hash = flow.hash.clone();
            started.version = self.version.unwrap_or(started.version);
            // The key is the old execution's, and nobody waits for the fork.
            started.terms.once_key = None;
            started.terms.report_to = None;
        }
        Some(event)
    }

    fn own_tokens(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match self.own_token(text) {
                Some(own) => own.into(),
                None => value.clone(),
            },
            Value::Array(items) => Value::Array(items.values().iter().map(|item| self.own_tokens(item)).collect()),
            Value::Object(members) => {
                let members = members.iter();
                Value::Object(
                    members
                        .map(|(key, value)| (key.clone(), self.own_tokens(value)))
                        .collect::<Object>(),
                )
            }
            _ => value.clone(),
        }
    }

    /// The fork's own token reference in place of one of the old execution.
    fn own_token(&self, text: &str) -> Option<String> {
        let call = text.strip_prefix("task-token:")?.strip_prefix(self.of.as_str())?;
        let number = call.strip_prefix('/')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("task-token:{}/{number}", self.execution))
    }
}

/// How many events at the beginning of a history a fork copied. Another execution made these decisions, so replay
/// folds them without checking and begins after them.
pub fn copied(events: &[Event]) -> usize {
    let forked = |event: &Event| matches!(event.detail, EventKind::ExecutionForked { .. });
    events.iter().rposition(forked).unwrap_or(0)
}
