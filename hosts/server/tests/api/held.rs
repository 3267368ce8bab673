//! A store that can be made to wait, and counts what is loaded from it.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    Admissions, Append, AttemptLog, Audit, AuditEntry, AuditPage, AuditQuery, BulkJobs, BulkStore, Catalogue, DeadTask,
    Depth, ExecutionRecord, History, KeptFlow, KeyValue, Listing, Mark, Message, NextNotice, NoticeChange, Notices,
    Page, Query, QueuedTask, Queueing, Receivers, Refusal, Retention, ShardSet, Store, StoreError, StoredHistory,
    TaskLease, Turn, TurnHead,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A store whose appends wait while they are held back. It counts the executions loaded from it, and how often parts
/// of histories are read. It has no bulk jobs and no logs.
pub struct Held {
    store: Arc<dyn Store>,
    holding: Mutex<bool>,
    released: Condvar,
    loaded: AtomicUsize,
    read: AtomicUsize,
    /// Makes writing results of notices fail.
    pub mute: AtomicBool,
    /// The error of reading an execution.
    failing: Mutex<Option<StoreError>>,
    /// Whether reading a list panics.
    panicking: AtomicBool,
}

impl Held {
    pub fn over(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            holding: Mutex::new(false),
            released: Condvar::new(),
            loaded: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            mute: AtomicBool::new(false),
            failing: Mutex::new(None),
            panicking: AtomicBool::new(false),
        })
    }

    /// Makes appends wait, or go on.
    pub fn hold(&self, holding: bool) {
        *self.holding.lock().unwrap() = holding;
        self.released.notify_all();
    }

    /// Sets the error of reading an execution.
    pub fn fail(&self, error: Option<StoreError>) {
        *self.failing.lock().unwrap() = error;
    }

    /// Sets whether reading a list panics.
    pub fn panic_at_lists(&self, panicking: bool) {
        self.panicking.store(panicking, Ordering::SeqCst);
    }

    /// How many executions were loaded.
    pub fn loaded(&self) -> usize {
        self.loaded.load(Ordering::SeqCst)
    }

    /// How often parts of histories were read.
    pub fn read(&self) -> usize {
        self.read.load(Ordering::SeqCst)
    }
}

impl History for Held {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        let holding = self.holding.lock().unwrap();
        drop(self.released.wait_while(holding, |holding| *holding).unwrap());
        self.store.append(batch)
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.loaded.fetch_add(1, Ordering::SeqCst);
        self.store.load(execution)
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.store.load_whole(execution)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.store.parent_of(execution)
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.store.awake(shards)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.store.due(shards, before, limit)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.store.mark(marks, audit)
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.store.messages(to)
    }
}

impl Catalogue for Held {
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError> {
        self.store.put_flow(name, definition, hash, now, audit)
    }

    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.store.hide_flow(name, audit)
    }

    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError> {
        self.store.flows()
    }
}

impl Listing for Held {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        match self.failing.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => self.store.record(execution),
        }
    }

    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        self.store.named(flow, name)
    }

    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        self.store.keyed(flow, once_key)
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        if self.panicking.load(Ordering::SeqCst) {
            std::panic::resume_unwind(Box::new("a list that panics"));
        }
        self.store.list(query)
    }

    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        self.store.counts()
    }

    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        self.read.fetch_add(1, Ordering::SeqCst);
        self.store.turn_of(execution, event)
    }

    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        self.read.fetch_add(1, Ordering::SeqCst);
        self.store.last_turn(execution)
    }

    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        self.read.fetch_add(1, Ordering::SeqCst);
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

    fn logs(&self, _: &str, _: EventId, _: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        Ok(None)
    }
}

impl Retention for Held {
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.clear(before, limit)
    }
}

impl Queueing for Held {
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.store.next_tasks(queue, limit)
    }

    fn first_tasks(&self, queue: &str, below: u8, each: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.store.first_tasks(queue, below, each)
    }

    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError> {
        self.store.leased_tasks(shards)
    }

    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError> {
        self.store.depths(shards)
    }

    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.store.overdue_tasks(shards, before, limit)
    }

    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError> {
        self.store.dead_tasks(queue, after, limit)
    }

    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.store.dead_counts()
    }
}

impl Notices for Held {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        self.store.next_notices(shards, target, limit)
    }

    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        if self.mute.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is away".to_owned()));
        }
        self.store.change_notices(changes)
    }

    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        self.store.forget_notices(target, limit)
    }

    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.store.notice_counts()
    }
}

impl Admissions for Held {}

impl Audit for Held {
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        self.store.audit(query)
    }

    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.store.clear_audit(before, limit)
    }
}

impl BulkStore for Held {
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs> {
        None
    }
}

impl KeyValue for Held {
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.store.put_value(kind, name, text, audit)
    }

    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError> {
        self.store.put_new_value(kind, name, text)
    }

    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        self.store.get_value(kind, name)
    }

    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.store.list_values(kind)
    }

    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.store.delete_value(kind, name, audit)
    }
}
