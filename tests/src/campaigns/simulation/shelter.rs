//! The store of a simulation: the one in memory, with a bug where one is planted.

use super::Bug;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    Append, AuditEntry, History, Listing, Mark, Message, Receivers, Refusal, ShardSet, StoreError, StoredHistory, Turn,
};

/// A refusal of an append by its position.
pub(super) type Refusals = Vec<(usize, Refusal)>;

/// Keeps histories. It never fails on its own: the world decides whether an append arrives.
pub(super) struct Shelter {
    store: MemoryStore,
    planted: Option<Bug>,
}

impl Shelter {
    pub(super) fn new(planted: Option<Bug>) -> Self {
        Self {
            store: MemoryStore::new(),
            planted,
        }
    }

    /// The store itself, for those who look from outside.
    pub(super) fn store(&self) -> &MemoryStore {
        &self.store
    }

    pub(super) fn keep(&self, mut batch: Vec<Append>) -> Refusals {
        if self.planted == Some(Bug::IgnoresExpected) {
            for append in &mut batch {
                self.move_to_the_end(append);
            }
        }
        self.store.append(&batch).unwrap_or_default()
    }

    /// The history that was read, as the planted bug shows it.
    fn seen(&self, loaded: Option<StoredHistory>) -> Option<StoredHistory> {
        let mut stored = loaded?;
        if self.planted == Some(Bug::ReadsBehind) && stored.turns.len() > 1 {
            stored.turns.pop();
        }
        Some(stored)
    }

    fn move_to_the_end(&self, append: &mut Append) {
        let last = self.store.last_turn(&append.execution).ok().flatten();
        let last = last.map(|turn| turn.last());
        if let (Some(last), Some(turn)) = (last, &mut append.turn)
            && append.expected != EventId(0)
        {
            append.expected = last;
            turn.first = last.next();
        }
    }

    /// An append fails.
    pub(super) fn fail(&self, mut batch: Vec<Append>) {
        if self.planted == Some(Bug::KeepsHalf) {
            for append in &mut batch {
                append.sent.clear();
                append.record = append.record.take().filter(|_| append.expected == EventId(0));
            }
            self.keep(batch);
        }
    }

    /// The turn that holds an event, if it is durable.
    pub(super) fn turn_of(&self, execution: &str, event: EventId) -> Option<Turn> {
        self.store.turn_of(execution, event).ok().flatten()
    }
}

impl History for Shelter {
    fn append(&self, batch: &[Append]) -> Result<Refusals, StoreError> {
        Ok(self.keep(batch.to_vec()))
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.store.load(execution).map(|loaded| self.seen(loaded))
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.store.load_whole(execution).map(|loaded| self.seen(loaded))
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.store.parent_of(execution)
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        let mut awake = self.store.awake(shards)?;
        if self.planted == Some(Bug::ForgetsAwake) {
            awake.pop();
        }
        Ok(awake)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        match self.planted {
            Some(Bug::ForgetsSleepers) => Ok(Vec::new()),
            _ => self.store.due(shards, before, limit),
        }
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.store.mark(marks, audit)
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        match self.planted {
            Some(Bug::ForgetsMessages) => Ok(Vec::new()),
            _ => self.store.messages(to),
        }
    }
}
