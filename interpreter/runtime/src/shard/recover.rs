//! Recovery: loading an execution from its history.

use super::loaded::{LoadedExecution, Origin, Redefined, StoredStatus};
use super::{ForkRequest, Outgoing, Shard};
use crate::flows::FlowTable;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, EventKind, State, history};
use starbridge_ports::{ExecutionRecord, History, KeptRedrive, KeptStart, StoreError, StoredHistory};
use std::sync::Arc;

/// An execution that was loaded from a store.
pub struct Loaded {
    /// The flow it runs.
    pub flow: Arc<Flow>,
    /// The state, folded from the history.
    pub state: State,
    /// What the state was folded from.
    pub stored: StoredHistory,
    /// Its ancestors, the parent first, as far as executions may wait for one another.
    pub ancestors: Vec<Text>,
    /// The other definition of its waiting redrive, if the redrive names one.
    pub(super) other: Option<Redefined>,
}

/// Loads an execution; `None` if it does not exist.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the history can't be folded, or the error of the store.
pub fn load(
    history: &dyn History,
    flows: &FlowTable,
    limits: &Arc<Limits>,
    execution: &str,
) -> Result<Option<Loaded>, StoreError> {
    let Some(stored) = history.load(execution)? else {
        return Ok(None);
    };
    fold_up(history, flows, limits, execution, stored).map(Some)
}

/// Folds an execution from what was read of it.
pub(crate) fn fold_up(
    history: &dyn History,
    flows: &FlowTable,
    limits: &Arc<Limits>,
    execution: &str,
    mut stored: StoredHistory,
) -> Result<Loaded, StoreError> {
    let corrupt = |why: String| StoreError::Corrupt(format!("execution {execution}: {why}"));
    let ExecutionRecord {
        flow: name, version, ..
    } = &stored.record;
    let flow = flows
        .running(name, *version)
        .ok_or_else(|| corrupt(format!("there is no version {version} of the flow `{name}`")))?;
    let mut folded = fold(execution, &flow, &stored, limits);
    // The history alone is always enough.
    if folded.is_err() && stored.checkpoint.is_some() {
        stored = history.load_whole(execution)?.unwrap_or_default();
        folded = fold(execution, &flow, &stored, limits);
    }
    let state = folded.map_err(corrupt)?;
    let ancestors = ancestors(history, &stored.record, limits.child_depth)?;
    let other = redefined(history, flows, limits, execution, &stored)?;
    Ok(Loaded {
        flow,
        state,
        stored,
        ancestors,
        other,
    })
}

/// The execution under the definition with which its waiting redrive will go on. `None` if no
/// redrive waits, or if the history does not fit that definition.
fn redefined(
    history: &dyn History,
    flows: &FlowTable,
    limits: &Arc<Limits>,
    execution: &str,
    stored: &StoredHistory,
) -> Result<Option<Redefined>, StoreError> {
    let kept = stored.request.as_deref().map(serde_json::from_str::<KeptRedrive>);
    let Some(definition) = kept.and_then(Result::ok).and_then(|kept| kept.definition) else {
        return Ok(None);
    };
    let flow = flows.running(&stored.record.flow, definition.version);
    let Some(flow) = flow.filter(|flow| flow.hash == definition.hash) else {
        return Ok(None);
    };
    let whole = history.load_whole(execution)?.unwrap_or_default();
    let state = fold(execution, &flow, &whole, limits).ok();
    Ok(state.map(|state| Redefined { flow, state }))
}

/// What a waiting fork goes on from. `None` if it is not a fork, or if that history is gone or does
/// not fit its flow.
pub(crate) fn kept_fork(
    history: &dyn History,
    flows: &FlowTable,
    stored: &StoredHistory,
) -> Result<Option<ForkRequest>, StoreError> {
    let kept = stored.request.as_deref().map(serde_json::from_str::<KeptStart>);
    let Some((Some(fork), start)) = kept.and_then(Result::ok).map(|kept| (kept.fork, kept.start)) else {
        return Ok(None);
    };
    let flow = flows.running(&stored.record.flow, stored.record.version);
    let (Some(flow), Some(old)) = (flow, history.load_whole(&fork.of)?) else {
        return Ok(None);
    };
    let mut events = Vec::new();
    for turn in old.turns.iter().take_while(|turn| turn.first <= fork.event) {
        match history::read_turn(&flow, turn.first, turn.time, &turn.text) {
            Ok(read) => events.extend(read),
            Err(_) => return Ok(None),
        }
    }
    // An operator may have given another input.
    if let Some(first) = events.first_mut()
        && let EventKind::ExecutionStarted(started) = &mut first.detail
    {
        started.input = start.input;
        started.tokens = start.tokens;
    }
    Ok(Some(ForkRequest {
        of: fork.of,
        old_flow: flow.clone(),
        flow,
        version: Some(start.version),
        events,
        event: fork.event,
        name: Some(start.name),
        audit: None,
        by: fork.by,
    }))
}

/// The ancestors of an execution, at most `most`. An ancestor that was deleted ends the line.
fn ancestors(history: &dyn History, record: &ExecutionRecord, most: u32) -> Result<Vec<Text>, StoreError> {
    let mut ancestors = Vec::new();
    let mut next = record.parent.as_ref().map(|parent| parent.execution.clone());
    while let Some(ancestor) = next
        && ancestors.len() < most as usize
    {
        next = history.parent_of(&ancestor)?;
        ancestors.push(ancestor);
    }
    Ok(ancestors)
}

/// Folds the checkpoint, if there is one, and the turns after it.
fn fold(execution: &str, flow: &Flow, stored: &StoredHistory, limits: &Arc<Limits>) -> Result<State, String> {
    let mut state = match &stored.checkpoint {
        None => State::new(execution, limits.clone()),
        Some((_, bytes)) => State::from_checkpoint(flow, bytes, limits.clone())
            .map_err(|error| format!("its checkpoint is of no use: {error:?}"))?,
    };
    for turn in &stored.turns {
        let events = history::read_turn(flow, turn.first, turn.time, &turn.text);
        for event in events.map_err(|error| error.message)? {
            if event.id > state.last_event() {
                state.apply(flow, &event);
            }
        }
    }
    match state.broken_at() {
        None => Ok(state),
        Some(at) => Err(format!("event {at} does not fit the flow")),
    }
}

impl Shard {
    /// Takes a loaded execution into the shard. Outstanding calls leave again under the same keys.
    pub fn recover(&mut self, loaded: Loaded) {
        let Loaded {
            flow,
            state,
            stored,
            ancestors,
            other,
        } = loaded;
        let id = state.execution().clone();
        let record = &stored.record;
        let origin = Origin::of_record(&id, record, ancestors);
        let sends: Vec<_> = state.calls_to_send_after(&flow, EventId(0)).collect();
        let waiting: Vec<_> = state
            .calls_in_flight()
            .filter_map(|call| state.call_to_send(&flow, call))
            .collect();
        let given_up: Vec<_> = state.given_up().collect();
        let since = state.last_time();
        let taken_up = state.last_event();
        let mut live = LoadedExecution::new(flow, state, origin);
        live.attempts = record.attempts;
        live.watched = record.watched;
        live.asking = stored.request.as_ref().and_then(|text| serde_json::from_str(text).ok());
        live.other = other.map(Box::new);
        live.taken_up = taken_up;
        live.queues = self.fair_queue.is_some();
        live.heartbeats &= !self.heartbeats_elsewhere;
        live.kept = Some(StoredStatus {
            status: record.status,
            awake: record.awake,
            wake_at: record.wake_at,
            paused: record.paused.is_some(),
            waits: record.waits.clone(),
        });
        if let Some((_, bytes)) = &stored.checkpoint {
            live.noted_checkpoint(bytes.len());
        }
        self.forget(&id);
        self.executions.insert(id.clone(), live);
        self.weigh(&id, usize::MAX);
        for call in &waiting {
            self.note_sync(&id, call);
        }
        // Before a crash, these calls may have been given up without cancelling them. They are cancelled now.
        for call in given_up {
            self.held.push(Outgoing::Cancel {
                execution: id.clone(),
                call,
            });
        }
        self.take_up_calls(&id, sends, since, false);
        self.note_undecided(&id);
        self.note_idle(id);
    }

    /// Whether a call may have been sent before the execution was loaded here. The history does not say which calls
    /// had left.
    pub fn may_have_left_before(&self, execution: &str, call: EventId) -> bool {
        let live = self.executions.get(execution);
        live.is_none_or(|live| call <= live.taken_up)
    }
}
