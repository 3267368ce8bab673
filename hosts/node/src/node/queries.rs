//! Queries of a node's store. They show only durable data.

use super::Node;
use crate::json::{describe_state_within_bounds, describe_steps, describe_waiting};
use crate::offload::INLINE_BYTES;
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::write_event;
use starbridge_machine::{Event, EventId, EventKind, State};
use starbridge_ports::{ExecutionRecord, Query, Store, StoreError, Turn, TurnHead, TurnPage};
use starbridge_runtime::{Snapshot, each_stored_event, each_stored_event_between, kept_input, read_stored};
use std::sync::Arc;

/// What a query answers, or why it can't.
pub type QueryResult<T> = Result<T, QueryError>;

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// There is no such execution.
    NoSuchExecution,
    /// The execution has no such event; the number is that of its last one.
    NoSuchEvent(EventId),
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for QueryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for QueryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchExecution => f.write_str("there is no such execution"),
            Self::NoSuchEvent(EventId(0)) => f.write_str("there is no such event: the execution waits to begin"),
            Self::NoSuchEvent(last) => write!(f, "there is no such event: the history has events 1 to {last}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for QueryError {}

/// Turns of a history whose size is known before they are read.
struct StoredTurns {
    store: Arc<dyn Store>,
    execution: Text,
    flow: Arc<Flow>,
    heads: Vec<TurnHead>,
    /// The turns, if they were read already.
    read: Option<Vec<Turn>>,
}

impl StoredTurns {
    fn bytes(&self) -> usize {
        self.heads.iter().map(|head| head.bytes).sum()
    }

    /// Reads turns that are small, so that they can be used without the store.
    fn prefetch(&mut self) -> QueryResult<()> {
        if self.read.is_none() && self.bytes() <= INLINE_BYTES {
            self.read = Some(
                self.heads
                    .iter()
                    .map(|head| self.turn(head))
                    .collect::<QueryResult<_>>()?,
            );
        }
        Ok(())
    }

    fn turn(&self, head: &TurnHead) -> QueryResult<Turn> {
        // It may have been deleted meanwhile.
        let turn = self.store.turn_of(&self.execution, head.first)?;
        turn.ok_or(QueryError::NoSuchExecution)
    }

    /// Calls `see` with the events of each turn.
    fn each(&self, mut see: impl FnMut(Vec<Event>)) -> QueryResult<()> {
        for (at, head) in self.heads.iter().enumerate() {
            let events = match self.read.as_ref().and_then(|read| read.get(at)) {
                Some(turn) => read_stored(&self.flow, &self.execution, turn)?,
                None => read_stored(&self.flow, &self.execution, &self.turn(head)?)?,
            };
            see(events);
        }
        Ok(())
    }
}

impl std::fmt::Debug for StoredTurns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredTurns")
            .field("execution", &self.execution)
            .field("heads", &self.heads)
            .finish_non_exhaustive()
    }
}

/// A stored execution. The size of its data is known before it is read.
#[derive(Debug)]
pub struct StoredExecution {
    /// The id of the execution.
    pub execution: Text,
    /// The record of the execution.
    pub record: ExecutionRecord,
    /// Whether it has a parent that is no longer stored.
    pub parent_deleted: bool,
    /// The first turn, and the last one if it is another.
    turns: StoredTurns,
    /// How it begins or goes on, if it waits for that.
    request: Option<String>,
}

impl StoredExecution {
    /// How many bytes [`StoredExecution::snapshot`] will read.
    pub fn bytes(&self) -> usize {
        self.turns.bytes() + self.request.as_ref().map_or(0, String::len)
    }

    /// Reads the data if they are small. Otherwise whoever uses them reads them.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`] if it was deleted meanwhile, or [`QueryError::Store`] if the store fails.
    pub fn prefetch(&mut self) -> QueryResult<()> {
        self.turns.prefetch()
    }

    /// The number of its last event; 0 while it waits to begin.
    pub fn last_event(&self) -> EventId {
        self.turns.heads.last().map_or(EventId(0), TurnHead::last)
    }

    /// Reads the data of the execution.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`] if it was deleted meanwhile, or [`QueryError::Store`] if the store fails or a turn does
    /// not fit the flow.
    pub fn snapshot(self) -> QueryResult<Snapshot> {
        let (input, output) = self.data()?;
        Ok(Snapshot {
            execution: self.execution,
            record: self.record,
            input,
            output,
        })
    }

    /// Whether it was started with this input.
    ///
    /// # Errors
    ///
    /// As [`StoredExecution::snapshot`].
    pub fn has_input(&self, input: &Value) -> QueryResult<bool> {
        Ok(self.data()?.0 == *input)
    }

    fn data(&self) -> QueryResult<(Value, Option<Value>)> {
        if let Some(request) = self.request.as_ref().filter(|_| self.turns.heads.is_empty()) {
            return Ok((kept_input(&self.execution, request)?, None));
        }
        let (mut input, mut output) = (None, None);
        self.turns.each(|events| {
            // If a fork goes on from the end of an execution, the output in its first turn is that execution's.
            output = None;
            for event in events {
                match event.detail {
                    EventKind::ExecutionStarted(started) if input.is_none() => input = Some(started.input),
                    EventKind::ExecutionSucceeded { output: last } => output = Some(last),
                    _ => {}
                }
            }
        })?;
        Ok((input.unwrap_or_else(Value::empty_object), output))
    }
}

/// Stored events of an execution. Their size is known before they are read.
#[derive(Debug)]
pub struct StoredEvents {
    turns: StoredTurns,
    from: EventId,
    limit: usize,
    backwards: bool,
}

impl StoredEvents {
    /// How many bytes [`StoredEvents::read`] will read.
    pub fn bytes(&self) -> usize {
        self.turns.bytes()
    }

    /// Reads the turns if they are small. Otherwise [`StoredEvents::read`] reads them.
    ///
    /// # Errors
    ///
    /// As [`StoredExecution::prefetch`].
    pub fn prefetch(&mut self) -> QueryResult<()> {
        self.turns.prefetch()
    }

    /// Reads the events, in the form of section "history".
    ///
    /// # Errors
    ///
    /// As [`StoredExecution::snapshot`].
    pub fn read(self) -> QueryResult<Vec<Object>> {
        let mut events = Vec::new();
        self.turns.each(|mut turn| {
            if self.backwards {
                turn.reverse();
                turn.retain(|event| event.id <= self.from);
            } else {
                turn.retain(|event| event.id >= self.from);
            }
            let left = self.limit.saturating_sub(events.len());
            events.extend(turn.iter().take(left).map(|event| write_event(&self.turns.flow, event)));
        })?;
        Ok(events)
    }
}

impl Node {
    /// An execution with its data.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], or [`QueryError::Store`] if the store fails.
    pub fn execution(&self, id: &str) -> QueryResult<Snapshot> {
        self.stored(id)?.snapshot()
    }

    /// A stored execution.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], or [`QueryError::Store`] if the store fails.
    pub fn stored(&self, id: &str) -> QueryResult<StoredExecution> {
        let (record, request) = self.record_and_request(id)?;
        self.stored_of(id, record, request)
    }

    /// A stored execution, unless it waits to begin: then its size is not known before it is read.
    ///
    /// # Errors
    ///
    /// As [`Node::stored`].
    pub fn stored_if_begun(&self, id: &str) -> QueryResult<Option<StoredExecution>> {
        let begun = Some(self.stored_without_request(id)?);
        Ok(begun.filter(|begun| !begun.record.status.is_before_start()))
    }

    /// A stored execution, of which nothing is to be read but its record.
    ///
    /// # Errors
    ///
    /// As [`Node::stored`].
    pub fn stored_without_request(&self, id: &str) -> QueryResult<StoredExecution> {
        let record = self.store.record(id)?.ok_or(QueryError::NoSuchExecution)?;
        self.stored_of(id, record, None)
    }

    fn stored_of(&self, id: &str, record: ExecutionRecord, request: Option<String>) -> QueryResult<StoredExecution> {
        let flow = self.flow_of(id, &record)?;
        let first = self.store.turn_heads(id, EventId(1), 1, false)?;
        let last = self.store.turn_heads(id, EventId(u64::MAX), 1, true)?;
        let last = last.into_iter().filter(|last| !first.contains(last));
        let parent_deleted = match &record.parent {
            Some(parent) => self.store.record(&parent.execution)?.is_none(),
            None => false,
        };
        Ok(StoredExecution {
            execution: Text::from(id),
            record,
            parent_deleted,
            turns: self.stored_turns(id, flow, first.iter().copied().chain(last).collect()),
            request,
        })
    }

    fn stored_turns(&self, id: &str, flow: Arc<Flow>, heads: Vec<TurnHead>) -> StoredTurns {
        StoredTurns {
            store: Arc::clone(&self.store),
            execution: Text::from(id),
            flow,
            heads,
            read: None,
        }
    }

    /// The record of an execution, and how it begins if it waits to.
    fn record_and_request(&self, id: &str) -> QueryResult<(ExecutionRecord, Option<String>)> {
        let record = self.store.record(id)?.ok_or(QueryError::NoSuchExecution)?;
        if !record.status.is_before_start() {
            return Ok((record, None));
        }
        // It may begin meanwhile.
        let whole = self.store.load_whole(id)?.ok_or(QueryError::NoSuchExecution)?;
        Ok((whole.record, whole.request))
    }

    /// How many executions are set aside.
    ///
    /// # Errors
    ///
    /// [`QueryError::Store`] if the store fails.
    pub fn count_broken(&self) -> QueryResult<u64> {
        let mut query = Query {
            broken: true,
            limit: 1_000,
            ..Query::default()
        };
        let mut count = 0;
        loop {
            let page = self.store.list(&query)?;
            count += page.items.len() as u64;
            query.cursor = page.next;
            if query.cursor.is_none() {
                return Ok(count);
            }
        }
    }

    /// The flow that an execution runs.
    ///
    /// # Errors
    ///
    /// [`QueryError::Store`] if the store does not have the flow.
    pub fn flow_of(&self, id: &str, record: &ExecutionRecord) -> QueryResult<Arc<Flow>> {
        let flow = self.flows.running(&record.flow, record.version);
        flow.ok_or_else(|| corrupt(id, &format!("version {} of `{}` is gone", record.version, record.flow)))
    }

    /// At most `limit` events from event `from` on, in order or backwards, in the form of section "history"; fewer if they are
    /// large.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], [`QueryError::NoSuchEvent`], or [`QueryError::Store`] if the store fails.
    pub fn events(&self, id: &str, from: EventId, limit: usize, backwards: bool) -> QueryResult<Vec<Object>> {
        self.stored_events(id, from, limit, backwards)?.read()
    }

    /// At most `limit` stored events from event `from` on, in order or backwards; fewer if they are large.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], [`QueryError::NoSuchEvent`], or [`QueryError::Store`] if the store fails.
    pub fn stored_events(&self, id: &str, from: EventId, limit: usize, backwards: bool) -> QueryResult<StoredEvents> {
        let record = self.store.record(id)?.ok_or(QueryError::NoSuchExecution)?;
        let flow = self.flow_of(id, &record)?;
        let wanted = u32::try_from(limit).unwrap_or(u32::MAX);
        let heads = self.store.turn_heads(id, from, wanted, backwards)?;
        let mut page = TurnPage::new(from, wanted, backwards).bounded();
        let heads = heads.into_iter().take_while(|head| page.takes(head)).collect();
        Ok(StoredEvents {
            turns: self.stored_turns(id, flow, heads),
            from,
            limit,
            backwards,
        })
    }

    /// The number of an execution's last event; 0 while it waits to begin.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], or [`QueryError::Store`] if the store fails.
    pub fn last_event(&self, id: &str) -> QueryResult<EventId> {
        match self.store.turn_heads(id, EventId(u64::MAX), 1, true)?.first() {
            Some(last) => Ok(last.last()),
            // It waits to begin.
            None => match self.store.record(id)? {
                Some(_) => Ok(EventId(0)),
                None => Err(QueryError::NoSuchExecution),
            },
        }
    }

    /// The state of an execution at the end of the turn with that event, or the last turn: status, input, local and
    /// open steps, as many as [`describe_state_within_bounds`] shows.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], [`QueryError::NoSuchEvent`], or [`QueryError::Store`] if the store fails.
    pub fn state_at(&self, id: &str, event: Option<EventId>) -> QueryResult<Value> {
        let (record, request) = self.record_and_request(id)?;
        if let (Some(request), None) = (&request, event) {
            return Ok(describe_waiting(&record, kept_input(id, request)?));
        }
        let flow = self.flow_of(id, &record)?;
        let state = self.folded(id, &flow, event)?;
        Ok(describe_state_within_bounds(&flow, &state))
    }

    /// The steps that were open at the end of the turn with that event, each in the form of [`describe_steps`].
    ///
    /// # Errors
    ///
    /// As [`Node::state_at`].
    pub fn steps_open_at(&self, id: &str, event: EventId) -> QueryResult<Vec<Value>> {
        let record = self.store.record(id)?.ok_or(QueryError::NoSuchExecution)?;
        let flow = self.flow_of(id, &record)?;
        let state = self.folded(id, &flow, Some(event))?;
        Ok(describe_steps(&flow, &state).collect())
    }

    fn folded(&self, id: &str, flow: &Flow, event: Option<EventId>) -> QueryResult<State> {
        let last = self.last_event(id)?;
        let event = event.unwrap_or(last);
        if event > last || event == EventId(0) {
            return Err(QueryError::NoSuchEvent(last));
        }
        let turn = self.store.turn_heads(id, event, 1, false)?;
        let end = turn.first().copied().unwrap_or_default().last();
        let mut state = State::new(id, self.limits.clone());
        each_stored_event(self.store.as_ref(), flow, id, |event| {
            state.apply(flow, event);
            event.id < end
        })?;
        if state.last_event() != end {
            return Err(corrupt(id, "its history has a gap"));
        }
        Ok(state)
    }

    /// Calls `see` with each event of an execution, in order, until it returns false.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], or [`QueryError::Store`] if the store fails.
    pub fn each_event(&self, id: &str, see: impl FnMut(&Flow, &Event) -> bool) -> QueryResult<()> {
        self.each_event_between(id, (EventId(1), EventId(u64::MAX)), see)
    }

    /// Reads the events from one number to another, and little more than those.
    ///
    /// # Errors
    ///
    /// As [`Node::each_event`].
    pub fn each_event_between(
        &self,
        id: &str,
        events: (EventId, EventId),
        mut see: impl FnMut(&Flow, &Event) -> bool,
    ) -> QueryResult<()> {
        let record = self.store.record(id)?.ok_or(QueryError::NoSuchExecution)?;
        let flow = self.flow_of(id, &record)?;
        each_stored_event_between(self.store.as_ref(), &flow, id, events, |event| see(&flow, event))?;
        Ok(())
    }

    /// An event of an execution.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], [`QueryError::NoSuchEvent`], or [`QueryError::Store`] if the store fails.
    pub fn written_event(&self, id: &str, event: EventId) -> QueryResult<Object> {
        let last = self.last_event(id)?;
        if event > last || event == EventId(0) {
            return Err(QueryError::NoSuchEvent(last));
        }
        let found = self.events(id, event, 1, false)?.into_iter().next();
        found.ok_or_else(|| corrupt(id, "its history has a gap"))
    }

    /// The first event at this time or later; one after the last event if there is none.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], or [`QueryError::Store`] if the store fails.
    pub fn event_at(&self, id: &str, time: Timestamp) -> QueryResult<EventId> {
        let (mut first, mut end) = (EventId(1), self.last_event(id)?.next());
        while first < end {
            let middle = EventId(first.0 + (end.0 - first.0) / 2);
            let turn = self.store.turn_heads(id, middle, 1, false)?;
            let turn = turn.first().ok_or_else(|| corrupt(id, "its history has a gap"))?;
            if turn.time < time {
                first = turn.last().next();
            } else {
                end = turn.first;
            }
        }
        Ok(first)
    }
}

fn corrupt(id: &str, why: &str) -> QueryError {
    QueryError::Store(StoreError::Corrupt(format!("execution {id}: {why}")))
}
