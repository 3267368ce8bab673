//! The store of a simulation: the one in memory, with a bug where one is planted.

use super::Bug;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::Text;
use starbridge_machine::EventId;
use starbridge_memory::MemoryStore;
use starbridge_ports::{Append, History, Listing, Message, Refusal, StoredHistory, Turn};

/// A refusal of an append by its position.
pub(super) type Refusals = Vec<(usize, Refusal)>;

/// Keeps histories. It never fails by itself: whether an append arrives, the world decides.
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

    pub(super) fn append(&self, mut batch: Vec<Append>) -> Refusals {
        if self.planted == Some(Bug::IgnoresExpected) {
            for append in &mut batch {
                self.move_to_the_end(append);
            }
        }
        self.store.append(&batch).unwrap_or_default()
    }

    fn move_to_the_end(&self, append: &mut Append) {
        let last = self.store.last_turn(&append.execution).ok().flatten();
        let last = last.map(|turn| EventId(turn.first.0 + u64::from(turn.events) - 1));
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
            self.append(batch);
        }
    }

    pub(super) fn load(&self, execution: &str, whole: bool) -> Option<StoredHistory> {
        let loaded = if whole {
            self.store.load_whole(execution)
        } else {
            self.store.load(execution)
        };
        let mut stored = loaded.ok().flatten()?;
        if self.planted == Some(Bug::ReadsBehind) && stored.turns.len() > 1 {
            stored.turns.pop();
        }
        Some(stored)
    }

    pub(super) fn awake(&self) -> Vec<Text> {
        let mut awake = self.store.awake().unwrap_or_default();
        if self.planted == Some(Bug::ForgetsAwake) {
            awake.pop();
        }
        awake
    }

    pub(super) fn sleepers(&self) -> Vec<(Timestamp, Text)> {
        match self.planted {
            Some(Bug::ForgetsSleepers) => Vec::new(),
            _ => self.store.due(Timestamp(i64::MAX), 1_000_000).unwrap_or_default(),
        }
    }

    pub(super) fn messages(&self) -> Vec<Message> {
        match self.planted {
            Some(Bug::ForgetsMessages) => Vec::new(),
            _ => self.store.messages().unwrap_or_default(),
        }
    }

    /// The turn that holds an event, if it is durable.
    pub(super) fn turn_of(&self, execution: &str, event: EventId) -> Option<Turn> {
        self.store.turn_of(execution, event).ok().flatten()
    }
}
