//! Replaying histories: the recorded signals are fed back, and the events are compared with the recorded ones.

use crate::export::ExportedHistory;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::{read_event, write_event};
use starbridge_machine::{Event, EventId, EventKind, Rejection, State, TURN_EVENTS, copied, turn_length};
use std::ops::Range;
use std::sync::Arc;

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The state after the last turn that is the same.
    pub state: State,
    /// How many turns are the same.
    pub turns: usize,
    /// The first difference, if there is one.
    pub divergence: Option<Divergence>,
}

/// The first difference between a replay and a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// The number of the event.
    pub event: EventId,
    /// The recorded event; `None` if the recording has ended.
    pub recorded: Option<Object>,
    /// The replayed event; `None` if there is none.
    pub expected: Option<Object>,
    /// Why there is none, if a signal was rejected.
    pub refused: Option<String>,
}

/// The limits of a replay. The recorded events have happened under any limits.
fn no_limits() -> Arc<Limits> {
    Arc::new(Limits {
        step_data_bytes: usize::MAX,
        collection_bytes: usize::MAX,
        history_events: u64::MAX,
        foreach_items: usize::MAX,
        ..Limits::default()
    })
}

/// The index after the last event of the turn that has this event.
pub fn end_of_turn(events: &[Event], event: EventId) -> usize {
    if event == EventId(1) {
        return turn_length(events);
    }
    let from = usize::try_from(event.0).unwrap_or(usize::MAX).min(events.len());
    events
        .iter()
        .skip(from)
        .position(Event::begins_turn)
        .map_or(events.len(), |more| from + more)
}

/// Folds the events of a history up to the end of the turn with event `until`, or all.
///
/// # Errors
///
/// The number of the first event that does not fit the flow.
pub fn fold(history: &ExportedHistory, until: Option<EventId>) -> Result<State, EventId> {
    let end = until.map_or(history.events.len(), |until| end_of_turn(&history.events, until));
    let mut state = State::new(history.execution.clone(), no_limits());
    for event in history.events.iter().take(end) {
        state.apply(&history.flow, event);
        if let Some(at) = state.broken_at() {
            return Err(at);
        }
    }
    Ok(state)
}

/// Feeds the recorded signals to a flow, the history's own or another one, and compares the events.
/// Events that another definition decided before a redrive are only folded.
pub fn replay(history: &ExportedHistory, flow: &Flow, limits: Limits) -> Replayed {
    replay_but(history, flow, limits, &decided_elsewhere(&history.events))
}

/// [`replay`], but from this event on, events are only folded. So are the events that an earlier redrive did again,
/// whatever decided them: only events that still count have to be the same.
pub fn replay_before(history: &ExportedHistory, flow: &Flow, limits: Limits, folded_from: EventId) -> Replayed {
    let mut folded = done_again(&history.events);
    folded.push(place_of(folded_from)..usize::MAX);
    replay_but(history, flow, limits, &folded)
}

/// [`replay`], but events in these places are only folded.
fn replay_but(history: &ExportedHistory, flow: &Flow, limits: Limits, folded: &[Range<usize>]) -> Replayed {
    let mut state = State::new(history.execution.clone(), Arc::new(limits));
    let mut turns = 0;
    // Events that were copied for a fork were decided by another execution.
    let mut at = copied(&history.events);
    let copied = history.events.get(..at).unwrap_or_default();
    let mut different = fold_as(&mut state, flow, history, copied).err();
    while different.is_none() && at < history.events.len() {
        let end = end_of_turn(&history.events, EventId(at as u64 + 1));
        let recorded = history.events.get(at..end).unwrap_or_default();
        let before = state.clone();
        let first_folded = folded.iter().filter(|range| range.contains(&(end - 1)));
        let first_folded = first_folded.map(|range| range.start).min().unwrap_or(end);
        let compared = first_folded.saturating_sub(at).min(recorded.len());
        different = match compared {
            0 => None,
            _ => differs(&mut state, flow, history, recorded, compared, at),
        };
        if different.is_none() && compared < recorded.len() {
            state = before.clone();
            different = fold_as(&mut state, flow, history, recorded).err();
        }
        if different.is_some() {
            state = before;
            break;
        }
        turns += 1;
        at = end;
    }
    Replayed {
        state,
        turns,
        divergence: different.map(|divergence| *divergence),
    }
}

/// The places of events that another definition decided, before a redrive gave the execution its
/// current one.
fn decided_elsewhere(events: &[Event]) -> Vec<Range<usize>> {
    let redriven = events
        .iter()
        .enumerate()
        .filter_map(|(place, event)| match &event.detail {
            EventKind::ExecutionRedriven {
                from,
                definition: Some(_),
                ..
            } => Some((place_of(*from), place)),
            _ => None,
        });
    redriven
        .map(|(from, place)| {
            let mut turn = events.get(..=from).unwrap_or_default().iter();
            turn.rposition(Event::begins_turn).unwrap_or(0)..place
        })
        .collect()
}

/// The places of events from the first step that a redrive entered again to that redrive.
fn done_again(events: &[Event]) -> Vec<Range<usize>> {
    let redriven = events.iter().enumerate();
    let redriven = redriven.filter_map(|(place, event)| match &event.detail {
        EventKind::ExecutionRedriven { from, .. } => Some(place_of(*from)..place),
        _ => None,
    });
    redriven.collect()
}

fn place_of(event: EventId) -> usize {
    usize::try_from(event.0).unwrap_or(usize::MAX).saturating_sub(1)
}

/// Folds events with another flow than the one they were recorded with. Fails at the first event
/// that does not fit, with the state before it.
fn fold_as(state: &mut State, flow: &Flow, history: &ExportedHistory, events: &[Event]) -> Result<(), Box<Divergence>> {
    for event in events {
        let before = state.clone();
        let written = write_event(&history.flow, event);
        let read = read_event(flow, &written.clone().into());
        if let Ok(event) = &read {
            state.apply(flow, event);
        }
        if read.is_err() || state.broken_at().is_some() {
            let refused = read.err().map(|error| error.message);
            *state = before;
            return Err(Box::new(Divergence {
                event: event.id,
                recorded: Some(written),
                expected: None,
                refused: Some(refused.unwrap_or_else(|| "the event does not fit the flow".to_owned())),
            }));
        }
    }
    Ok(())
}

/// The first difference among the first events of a turn.
fn differs(
    state: &mut State,
    flow: &Flow,
    history: &ExportedHistory,
    recorded: &[Event],
    compared: usize,
    at: usize,
) -> Option<Box<Divergence>> {
    let different = match turn_again(state, flow, history, recorded, at) {
        Ok(mut came) if compared < recorded.len() => {
            came.truncate(compared);
            divergence(history, flow, recorded.get(..compared).unwrap_or_default(), &came, at)
        }
        Ok(came) => divergence(history, flow, recorded, &came, at),
        Err(refused) => recorded.first().map(|first| Divergence {
            event: first.id,
            recorded: Some(write_event(&history.flow, first)),
            expected: None,
            refused: Some(refused),
        }),
    };
    different.map(Box::new)
}

/// Repeats a turn. The bounds at which turns are cut may have been wider when it was recorded.
fn turn_again(
    state: &mut State,
    flow: &Flow,
    history: &ExportedHistory,
    recorded: &[Event],
    at: usize,
) -> Result<Vec<Event>, String> {
    let before = state.clone();
    let next = history.events.get(at + recorded.len());
    let was_cut = next.is_some_and(|next| next.detail == EventKind::TurnContinued);
    let most = was_cut.then_some(recorded.len());
    let came = take_turn(state, flow, &history.flow, recorded, most)?;
    if came.len() >= recorded.len() || !state.must_continue() {
        return Ok(came);
    }
    *state = before;
    take_turn(state, flow, &history.flow, recorded, Some(recorded.len() + TURN_EVENTS))
}

/// Takes the signal that a turn records. The turn ends at its bounds, or after `most` events.
fn take_turn(
    state: &mut State,
    flow: &Flow,
    recorded_flow: &Flow,
    turn: &[Event],
    most: Option<usize>,
) -> Result<Vec<Event>, String> {
    let signal = state
        .recorded_signal(recorded_flow, turn)
        .ok_or_else(|| "nothing waits for what was recorded here".to_owned())?;
    let mut came = Vec::new();
    let time = turn.first().map(|first| first.time).unwrap_or_default();
    let taken = match most {
        Some(most) => state.advance_at_most(flow, signal, time, most, &mut came),
        None => state.advance(flow, signal, time, &mut came),
    };
    taken.map_err(|rejection: Rejection| rejection.to_string())?;
    Ok(came)
}

/// The first event in which a turn differs. The first event of a history names the definition, which may be another
/// one.
fn divergence(
    history: &ExportedHistory,
    flow: &Flow,
    recorded: &[Event],
    came: &[Event],
    at: usize,
) -> Option<Divergence> {
    let most = recorded.len().max(came.len());
    for index in 0..most {
        let was = recorded.get(index).map(|event| write_event(&history.flow, event));
        let is = came.get(index).map(|event| write_event(flow, event));
        let same = match (&was, &is) {
            (Some(was), Some(is)) => without_hash(was) == without_hash(is),
            _ => false,
        };
        if !same {
            return Some(Divergence {
                event: EventId((at + index + 1) as u64),
                recorded: was,
                expected: is,
                refused: None,
            });
        }
    }
    None
}

fn without_hash(event: &Object) -> Object {
    let mut event = event.clone();
    if let Some(Value::Object(detail)) = event.get("detail").cloned()
        && detail.contains_key("definitionHash")
    {
        let mut detail = detail;
        detail.insert(Text::from("definitionHash"), Value::Null);
        event.insert(Text::from("detail"), detail.into());
    }
    event
}
