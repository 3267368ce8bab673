//! A store that fails where it is told to.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    Admissions, Append, AttemptLog, Audit, AuditEntry, AuditPage, AuditQuery, BulkItem, BulkItemId, BulkItems, BulkJob,
    BulkJobs, BulkPage, BulkResult, BulkState, BulkStore, Catalogue, DeadTask, Depth, EndedHolders, Epochs,
    ExecutionRecord, History, Incarnation, IncarnationState, KeptFlow, KeptKey, KeyValue, KeyView, LinePlace, Listing,
    Mark, Message, MessageId, NextNotice, NoticeChange, Notices, OpenJob, Owning, Page, PoolKey, Query, QueuedTask,
    Queueing, Receivers, Refusal, Retention, ShardSet, Store, StoreError, StoredHistory, TaskLease, Turn, TurnHead,
    Waiter, Waiters,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The treatment of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not done, and says that it failed.
    Before,
    /// It is done, and says so; the next operation fails.
    After,
    /// It is done, and says that it failed: the answer was lost.
    Lost,
    /// It is not done, and the caller panics.
    Panic,
}

/// When and how a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of the operation, from 1.
    pub operation: u64,
    /// The fault.
    pub fault: Fault,
    /// Whether all later ones fail too, until [`Faulty::mend`]: the process that used the store is gone.
    pub for_good: bool,
}

/// A store that fails where it is told to, and counts its operations.
#[derive(Debug)]
pub struct Faulty<S> {
    store: S,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    operations: u64,
    plan: Option<Plan>,
    broken: bool,
}

impl<S: Store> Faulty<S> {
    /// A store that does not fail yet.
    pub fn new(store: S) -> Self {
        Self {
            store,
            book: Mutex::default(),
        }
    }

    /// Sets what is to fail, counts from the beginning again, and ends what failed for good.
    pub fn plan(&self, plan: Option<Plan>) {
        *self.book() = Book {
            plan,
            ..Book::default()
        };
    }

    /// Fails no more.
    pub fn mend(&self) {
        self.plan(None);
    }

    /// How many operations there were since the plan was set.
    pub fn operations(&self) -> u64 {
        self.book().operations
    }

    /// The store behind, which does not fail.
    pub fn behind(&self) -> &S {
        &self.store
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of the next operation.
    fn next(&self) -> Option<Fault> {
        let mut book = self.book();
        book.operations += 1;
        if book.broken {
            return Some(Fault::Before);
        }
        let operation = book.operations;
        let plan = book.plan.filter(|plan| plan.operation == operation)?;
        book.broken = plan.for_good || plan.fault == Fault::After;
        Some(plan.fault)
    }

    fn run<T>(&self, operation: impl FnOnce(&S) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let failed = || Err(StoreError::Unavailable("planned".to_owned()));
        match self.next() {
            Some(Fault::Before) => failed(),
            Some(Fault::Lost) => operation(&self.store).and_then(|_| failed()),
            // Without a word on stderr: it is meant.
            Some(Fault::Panic) => std::panic::resume_unwind(Box::new("planned")),
            Some(Fault::After) | None => operation(&self.store),
        }
    }
}

impl<S: Store> Faulty<S> {
    fn with_jobs<T>(&self, operation: impl FnOnce(&dyn BulkJobs) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.run(|store| match store.bulk_jobs() {
            Some(jobs) => operation(jobs),
            None => Err(StoreError::Unavailable("the store has no bulk jobs".to_owned())),
        })
    }
}

impl<S: Store> Faulty<S> {
    fn with_owners<T>(&self, operation: impl FnOnce(&dyn Owning) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.run(|store| match store.owning() {
            Some(owning) => operation(owning),
            None => Err(StoreError::Unavailable("the shards have no owners".to_owned())),
        })
    }
}

impl<S: Store> Owning for Faulty<S> {
    fn join(&self, name: &str) -> Result<Incarnation, StoreError> {
        self.with_owners(|owning| owning.join(name))
    }

    fn heartbeat(&self, own: Incarnation) -> Result<Vec<IncarnationState>, StoreError> {
        self.with_owners(|owning| owning.heartbeat(own))
    }

    fn claim(&self, own: Incarnation, shards: &ShardSet) -> Result<Epochs, StoreError> {
        self.with_owners(|owning| owning.claim(own, shards))
    }

    fn give_back(&self, own: Incarnation, shards: &ShardSet) -> Result<(), StoreError> {
        self.with_owners(|owning| owning.give_back(own, shards))
    }

    fn end(&self, incarnation: Incarnation) -> Result<(), StoreError> {
        self.with_owners(|owning| owning.end(incarnation))
    }
}

impl<S: Store> History for Faulty<S> {
    fn owning(&self) -> Option<&dyn Owning> {
        self.store.owning().map(|_| self as &dyn Owning)
    }

    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.run(|store| store.append(batch))
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.run(|store| store.load(execution))
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.run(|store| store.load_whole(execution))
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.run(|store| store.parent_of(execution))
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.run(|store| store.awake(shards))
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.run(|store| store.due(shards, before, limit))
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.run(|store| store.mark(marks, audit))
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.run(|store| store.messages(to))
    }
}

impl<S: Store> Catalogue for Faulty<S> {
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError> {
        self.run(|store| store.put_flow(name, definition, hash, now, audit))
    }

    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.run(|store| store.hide_flow(name, audit))
    }

    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError> {
        self.run(S::flows)
    }
}

impl<S: Store> Listing for Faulty<S> {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        self.run(|store| store.record(execution))
    }

    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        self.run(|store| store.named(flow, name))
    }

    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        self.run(|store| store.keyed(flow, once_key))
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.run(|store| store.list(query))
    }

    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        self.run(S::counts)
    }

    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        self.run(|store| store.turn_of(execution, event))
    }

    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        self.run(|store| store.last_turn(execution))
    }

    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        self.run(|store| store.turns(execution, from, events, backwards))
    }

    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError> {
        self.run(|store| store.turn_heads(execution, from, events, backwards))
    }

    fn logs(&self, execution: &str, from: EventId, limit: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        self.run(|store| store.logs(execution, from, limit))
    }
}

impl<S: Store> Retention for Faulty<S> {
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.run(|store| store.clear(before, limit))
    }
}

impl<S: Store> Queueing for Faulty<S> {
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.run(|store| store.next_tasks(queue, limit))
    }

    fn first_tasks(&self, queue: &str, below: u8, each: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.run(|store| store.first_tasks(queue, below, each))
    }

    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError> {
        self.run(|store| store.leased_tasks(shards))
    }

    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError> {
        self.run(|store| store.depths(shards))
    }

    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.run(|store| store.overdue_tasks(shards, before, limit))
    }

    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError> {
        self.run(|store| store.dead_tasks(queue, after, limit))
    }

    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.run(|store| store.dead_counts())
    }
}

impl<S: Store> Notices for Faulty<S> {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        self.run(|store| store.next_notices(shards, target, limit))
    }

    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        self.run(|store| store.change_notices(changes))
    }

    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        self.run(|store| store.forget_notices(target, limit))
    }

    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.run(|store| store.notice_counts())
    }
}

impl<S: Store> Admissions for Faulty<S> {
    fn keeps_admission(&self) -> bool {
        self.store.keeps_admission()
    }

    fn waiter(&self, execution: &str) -> Result<Option<Waiter>, StoreError> {
        self.run(|store| store.waiter(execution))
    }

    fn waiters(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.run(|store| store.waiters(which, limit))
    }

    fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<(u64, Text)>, StoreError> {
        self.run(|store| store.waiter_ids(which, limit))
    }

    fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> Result<u64, StoreError> {
        self.run(|store| store.waiters_before(key, place, most))
    }

    fn last_waiter(&self) -> Result<(u64, u64), StoreError> {
        self.run(|store| store.last_waiter())
    }

    fn slots_of(&self, execution: &str) -> Result<Vec<PoolKey>, StoreError> {
        self.run(|store| store.slots_of(execution))
    }

    fn holders(&self, key: &PoolKey, limit: usize) -> Result<Vec<Text>, StoreError> {
        self.run(|store| store.holders(key, limit))
    }

    fn ended_holders(&self, after: &str, limit: usize) -> Result<EndedHolders, StoreError> {
        self.run(|store| store.ended_holders(after, limit))
    }

    fn key(&self, key: &PoolKey) -> Result<KeyView, StoreError> {
        self.run(|store| store.key(key))
    }

    fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Result<Vec<KeptKey>, StoreError> {
        self.run(|store| store.kept_keys(after, limit))
    }

    fn stale_keys(&self) -> Result<Vec<PoolKey>, StoreError> {
        self.run(|store| store.stale_keys())
    }

    fn is_pending(&self, message: &MessageId) -> Result<bool, StoreError> {
        self.run(|store| store.is_pending(message))
    }

    fn pending_of(&self, messages: &[MessageId]) -> Result<Vec<MessageId>, StoreError> {
        self.run(|store| store.pending_of(messages))
    }

    fn first_messages(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.run(|store| store.first_messages(limit))
    }

    fn messages_of(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        self.run(|store| store.messages_of(execution))
    }

    fn all_slots(&self, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, StoreError> {
        self.run(|store| store.all_slots(most))
    }

    fn anyone_depends(&self) -> Result<bool, StoreError> {
        self.run(|store| store.anyone_depends())
    }
}

impl<S: Store> Audit for Faulty<S> {
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        self.run(|store| store.audit(query))
    }

    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.run(|store| store.clear_audit(before, limit))
    }
}

impl<S: Store> BulkJobs for Faulty<S> {
    fn put_job(&self, job: &BulkJob, executions: &[Text], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.with_jobs(|jobs| jobs.put_job(job, executions, audit))
    }

    fn add_items(&self, job: &str, first: u64, executions: &[Text], last: bool) -> Result<bool, StoreError> {
        self.with_jobs(|jobs| jobs.add_items(job, first, executions, last))
    }

    fn job(&self, job: &str) -> Result<Option<BulkJob>, StoreError> {
        self.with_jobs(|jobs| jobs.job(job))
    }

    fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, StoreError> {
        self.with_jobs(|jobs| jobs.jobs(cursor, limit))
    }

    fn jobs_to_run(&self) -> Result<Vec<OpenJob>, StoreError> {
        self.with_jobs(|jobs| jobs.jobs_to_run())
    }

    fn items(&self, job: &str, which: BulkItems, after: u64, limit: usize) -> Result<Vec<BulkItem>, StoreError> {
        self.with_jobs(|jobs| jobs.items(job, which, after, limit))
    }

    fn set_results(&self, results: &[(BulkItemId, BulkResult)]) -> Result<(), StoreError> {
        self.with_jobs(|jobs| jobs.set_results(results))
    }

    fn change_job(
        &self,
        job: &str,
        from: &[BulkState],
        to: BulkState,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        self.with_jobs(|jobs| jobs.change_job(job, from, to, now, audit))
    }

    fn clear_jobs(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.with_jobs(|jobs| jobs.clear_jobs(before, limit))
    }
}

impl<S: Store> BulkStore for Faulty<S> {
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs> {
        self.store.bulk_jobs().is_some().then_some(self as &dyn BulkJobs)
    }
}

impl<S: Store> KeyValue for Faulty<S> {
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.run(|store| store.put_value(kind, name, text, audit))
    }

    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError> {
        self.run(|store| store.put_new_value(kind, name, text))
    }

    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        self.run(|store| store.get_value(kind, name))
    }

    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.run(|store| store.list_values(kind))
    }

    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.run(|store| store.delete_value(kind, name, audit))
    }
}
