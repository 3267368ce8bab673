//! A store as admission reads it, with a bug in the reading or without.

use super::Bug;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    Admissions, AttemptLog, EndedHolders, ExecutionRecord, KeptKey, KeyView, LinePlace, Listing, Message, MessageId,
    Page, PoolKey, Query, StoreError, Turn, TurnHead, Waiter, Waiters,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Rows<'a> {
    pub(super) store: &'a MemoryStore,
    pub(super) bug: Option<Bug>,
    /// Names that were looked for before they were kept.
    pub(super) missed: &'a BTreeSet<Text>,
    pub(super) restarted: bool,
    /// How often one waiter, holder, message or name, or a part of a line, was read.
    pub(super) reads: Option<&'a AtomicU64>,
    /// How many whole rows of waiters were read.
    pub(super) rows_read: Option<&'a AtomicU64>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(store: &'a MemoryStore, bug: Option<Bug>, missed: &'a BTreeSet<Text>, restarted: bool) -> Self {
        Self {
            store,
            bug,
            missed,
            restarted,
            reads: None,
            rows_read: None,
        }
    }

    fn count(&self) {
        if let Some(reads) = self.reads {
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn count_rows(&self, rows: usize) {
        if let Some(rows_read) = self.rows_read {
            rows_read.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }
}

impl Listing for Rows<'_> {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        self.store.record(execution)
    }
    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        if self.bug == Some(Bug::NameLookedUpFirst) && self.missed.contains(name) {
            return Ok(None);
        }
        self.count();
        self.store.named(flow, name)
    }
    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        self.store.keyed(flow, once_key)
    }
    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.store.list(query)
    }
    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        self.store.counts()
    }
    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        self.store.turn_of(execution, event)
    }
    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        self.store.last_turn(execution)
    }
    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        self.store.turns(execution, from, events, backwards)
    }
    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError> {
        self.store.turn_heads(execution, from, events, backwards)
    }
    fn logs(&self, execution: &str, from: EventId, limit: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        self.store.logs(execution, from, limit)
    }
}

impl Admissions for Rows<'_> {
    fn waiter(&self, execution: &str) -> Result<Option<Waiter>, StoreError> {
        self.count();
        let waiter = self.store.waiter(execution)?;
        self.count_rows(usize::from(waiter.is_some()));
        Ok(waiter)
    }
    fn waiters(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.count();
        let found = match (self.bug, which) {
            (Some(Bug::OrderReversed), Waiters::InLine(..)) => {
                let mut all = self.store.waiters(which, usize::MAX)?;
                all.reverse();
                all.truncate(limit);
                all
            }
            (Some(Bug::ClaimIgnored), Waiters::Claimed(_)) => Vec::new(),
            _ => self.store.waiters(which, limit)?,
        };
        self.count_rows(found.len());
        Ok(found)
    }
    fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<(u64, Text)>, StoreError> {
        self.count();
        self.store.waiter_ids(which, limit)
    }
    fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> Result<u64, StoreError> {
        self.store.waiters_before(key, place, most)
    }
    fn count_waiters(&self) -> Result<u64, StoreError> {
        self.store.count_waiters()
    }
    fn last_waiter(&self) -> Result<(u64, u64), StoreError> {
        self.store.last_waiter()
    }
    fn slots_of(&self, execution: &str) -> Result<Vec<PoolKey>, StoreError> {
        self.count();
        self.store.slots_of(execution)
    }
    fn holders(&self, key: &PoolKey, limit: usize) -> Result<Vec<Text>, StoreError> {
        self.store.holders(key, limit)
    }
    fn ended_holders(&self, after: &str, limit: usize) -> Result<EndedHolders, StoreError> {
        match self.bug {
            Some(Bug::SlotLeaked) => Ok(EndedHolders::default()),
            _ => self.store.ended_holders(after, limit),
        }
    }
    fn key(&self, key: &PoolKey) -> Result<KeyView, StoreError> {
        let mut view = self.store.key(key)?;
        if self.bug == Some(Bug::LimitExceededAtRestart) && self.restarted {
            view.held = 0;
        }
        Ok(view)
    }
    fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Result<Vec<KeptKey>, StoreError> {
        self.store.kept_keys(after, limit)
    }
    fn stale_keys(&self) -> Result<Vec<PoolKey>, StoreError> {
        self.store.stale_keys()
    }
    fn pending_of(&self, messages: &[MessageId]) -> Result<Vec<MessageId>, StoreError> {
        self.count();
        self.store.pending_of(messages)
    }
    fn first_messages(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        let mut messages = self.store.first_messages(limit)?;
        if self.bug == Some(Bug::LaterPagesLost) && messages.len() == limit {
            // A page that is not full is the last one.
            messages.pop();
        }
        Ok(messages)
    }
    fn messages_of(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        self.store.messages_of(execution)
    }
    fn all_slots(&self, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, StoreError> {
        self.store.all_slots(most)
    }
    fn anyone_depends(&self) -> Result<bool, StoreError> {
        self.store.anyone_depends()
    }
    fn is_pending(&self, message: &MessageId) -> Result<bool, StoreError> {
        self.count();
        self.store.is_pending(message)
    }
}
