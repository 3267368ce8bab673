//! A store in one SQLite file, the default of a server. It does not interpret flows or events.
//!
//! One connection writes, behind a lock, and a batch of appends is one transaction with one flush. A few other
//! connections read committed data. A store has one owner at a time, by a lock on its file; a file
//! beside it records which process that is, and whether the log is needed.
//!
//! Open it with [`SqliteStore::open`], show [`SqliteStore::warnings`] to people, and call it through the traits of
//! `starbridge-ports`, in the order that [`starbridge_ports::History`] gives.
//!
//! ```
//! use starbridge_machine::EventId;
//! use starbridge_ports::{Append, History, ExecutionRecord, Turn};
//! use starbridge_sqlite::SqliteStore;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("store.db");
//! let store = SqliteStore::open(&path)?;
//! let start = Append {
//!     execution: "e-1".into(),
//!     record: Some(ExecutionRecord { flow: "shop".into(), name: "first".into(), awake: true, ..ExecutionRecord::default() }),
//!     turn: Some(Turn { first: EventId(1), events: 1, text: "[]".to_owned(), ..Turn::default() }),
//!     ..Append::default()
//! };
//! let refused = store.append(&[start])?;
//! assert!(refused.is_empty());
//! drop(store);
//!
//! // It is durable: the next process to open the file finds it.
//! let store = SqliteStore::open(&path)?;
//! assert_eq!(store.load("e-1")?.unwrap().turns.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod admission;
mod append;
mod audit;
mod bulk;
mod catalogue;
mod fault;
mod file;
mod head;
mod key_value;
mod list;
mod load;
mod lock_file;
mod log_file;
mod migrate;
mod modes;
mod notices;
mod open;
mod owner;
mod owning;
mod page;
mod queueing;
mod readers;
mod reasons;
mod record;
mod retention;
mod rows;
mod ways;
mod write;

pub use head::MAX_EVENTS;
pub use open::{Flush, OpenError, Options};

use owner::Owner;
use readers::Readers;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    Admissions, Append, AttemptLog, Audit, AuditEntry, AuditPage, AuditQuery, BulkItem, BulkItemId, BulkItems, BulkJob,
    BulkJobs, BulkPage, BulkResult, BulkState, BulkStore, Catalogue, DeadTask, Depth, EndedHolders, ExecutionRecord,
    History, KeptFlow, KeptKey, KeyValue, KeyView, LinePlace, Listing, Mark, Message, MessageId, NextNotice,
    NoticeChange, Notices, OpenJob, Owning, Page, PoolKey, Query, QueuedTask, Queueing, Receivers, Refusal, Retention,
    RowSink, RowSource, ShardSet, StoreError, StoredHistory, Table, TableRows, TaskLease, Turn, TurnHead, Waiter,
    Waiters, WaitingReason,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use write::Writer;

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    // INVARIANT: closed in this order. The last connection moves the log into the file and must
    // know whether this is allowed; and all are closed while the file is still locked.
    readers: Readers,
    writer: Mutex<Writer>,
    /// Held while waiting for the writer, so that a caller that has just written waits behind those
    /// already waiting. Without it, appends under load would keep others from the writer for long.
    next: Mutex<()>,
    warnings: Vec<String>,
    owner: Owner,
}

impl SqliteStore {
    /// Opens a store with the default options. Creates it if there is no file.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if another process has it open, the file is not a store or is a newer one, its
    /// log is lost, or the file can't be used.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens a store with other options than the default ones.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        open::open(path.as_ref(), options)
    }

    /// The path of the store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether opening created the store.
    pub fn is_new(&self) -> bool {
        self.owner.made
    }

    /// Warnings about others who may use its files, each with advice.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Writes a copy of the current content to a new file, while the store stays in use.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the copy can't be written, for example because the file exists.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<(), StoreError> {
        open::copy(&self.path, to.as_ref())
    }

    /// A panic while the lock was held leaves a transaction open. The next one rolls it back first.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, work: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.readers.with(work).map_err(|error| match fault::is_damage(&error) {
            // The writer knows whether the log was cut, and must then stop.
            true => self.writer().cause(&error),
            false => fault::store_error(&self.path, &error),
        })
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl History for SqliteStore {
    fn owning(&self) -> Option<&dyn Owning> {
        Some(self)
    }

    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.writer().transaction(|work| append::append(work, batch))
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.read(|connection| load::load(connection, execution, true))
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.read(|connection| load::load(connection, execution, false))
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.read(|connection| load::parent_of(connection, execution))
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.read(|connection| load::awake(connection, shards))
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.read(|connection| load::due(connection, shards, before, limit))
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.writer().transaction(|work| append::mark(work, marks, audit))
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.read(|connection| load::messages(connection, to))
    }
}

impl Catalogue for SqliteStore {
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError> {
        self.writer()
            .transaction(|work| catalogue::put(work.connection, name, definition, hash, now, audit))
    }

    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.writer()
            .transaction(|work| catalogue::hide(work.connection, name, audit))
    }

    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError> {
        self.read(catalogue::flows)
    }
}

impl Listing for SqliteStore {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        self.read(|connection| record::read(connection, execution).map(|found| found.map(|(_, record)| record)))
    }

    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        self.read(|connection| list::named(connection, flow, name))
    }

    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        self.read(|connection| list::keyed(connection, flow, once_key))
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let place = page::place(query.cursor.as_deref())?;
        self.read(|connection| list::list(connection, query, place))
    }

    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        self.read(list::counts)
    }

    fn reason_counts(&self) -> Result<Option<Vec<(WaitingReason, u64)>>, StoreError> {
        self.read(reasons::counts).map(Some)
    }

    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        self.read(|connection| load::turn_of(connection, execution, event))
    }

    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        self.read(|connection| load::last_turn(connection, execution))
    }

    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        self.read(|connection| load::turns(connection, execution, from, events, backwards))
    }

    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError> {
        self.read(|connection| load::turn_heads(connection, execution, from, events, backwards))
    }

    fn logs(&self, execution: &str, from: EventId, limit: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        self.read(|connection| load::logs(connection, execution, from, limit))
            .map(Some)
    }
}

impl Retention for SqliteStore {
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let asked = Instant::now();
        let mut writer = self.writer();
        let waited = asked.elapsed();
        writer.transaction(|work| retention::clear_for(work, before, limit, waited))
    }
}

impl Queueing for SqliteStore {
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.read(|connection| queueing::next(connection, queue, limit))
    }

    fn first_tasks(&self, queue: &str, below: u8, each: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.read(|connection| queueing::first(connection, queue, below, each))
    }

    fn task_of(
        &self,
        execution: &str,
        call: Option<EventId>,
    ) -> Result<Option<(QueuedTask, Option<TaskLease>)>, StoreError> {
        self.read(|connection| queueing::of_execution(connection, execution, call))
    }

    fn tasks_before(&self, task: &QueuedTask, most: u64) -> Result<Option<u64>, StoreError> {
        self.read(|connection| queueing::before(connection, task, most))
            .map(Some)
    }

    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError> {
        self.read(|connection| queueing::leased(connection, shards))
    }

    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError> {
        self.read(|connection| queueing::depths(connection, shards))
    }

    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.read(|connection| queueing::overdue(connection, shards, before, limit))
    }

    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError> {
        self.read(|connection| queueing::dead(connection, queue, after, limit))
    }

    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.read(queueing::dead_counts)
    }
}

impl Notices for SqliteStore {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        self.read(|connection| notices::next(connection, shards, target, limit))
    }

    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        self.writer()
            .transaction(|work| notices::change(work.connection, changes))
    }

    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        self.writer()
            .transaction(|work| notices::forget(work.connection, target, limit))
    }

    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.read(notices::counts)
    }
}

impl Audit for SqliteStore {
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        let place = page::place(query.cursor.as_deref())?;
        self.read(|connection| audit::list(connection, query, place))
    }

    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer()
            .transaction(|work| audit::clear(work.connection, before, limit))
    }
}

impl Admissions for SqliteStore {
    fn keeps_admission(&self) -> bool {
        true
    }

    fn waiter(&self, execution: &str) -> Result<Option<Waiter>, StoreError> {
        self.read(|connection| admission::waiter(connection, execution))
    }

    fn waiters(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.read(|connection| admission::waiters(connection, which, limit))
    }

    fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<(u64, Text)>, StoreError> {
        self.read(|connection| admission::waiter_ids(connection, which, limit))
    }

    fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> Result<u64, StoreError> {
        self.read(|connection| admission::waiters_before(connection, key, place, most))
    }

    fn last_waiter(&self) -> Result<(u64, u64), StoreError> {
        self.read(admission::last_waiter)
    }

    fn count_waiters(&self) -> Result<u64, StoreError> {
        self.read(admission::count_waiters)
    }

    fn slots_of(&self, execution: &str) -> Result<Vec<PoolKey>, StoreError> {
        self.read(|connection| admission::slots_of(connection, execution))
    }

    fn holders(&self, key: &PoolKey, limit: usize) -> Result<Vec<Text>, StoreError> {
        self.read(|connection| admission::holders(connection, key, limit))
    }

    fn ended_holders(&self, after: &str, limit: usize) -> Result<EndedHolders, StoreError> {
        self.read(|connection| admission::ended_holders(connection, after, limit))
    }

    fn key(&self, key: &PoolKey) -> Result<KeyView, StoreError> {
        self.read(|connection| admission::key(connection, key))
    }

    fn kept_key(&self, key: &PoolKey) -> Result<(KeptKey, u64), StoreError> {
        self.read(|connection| admission::kept_key(connection, key))
    }

    fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Result<Vec<KeptKey>, StoreError> {
        self.read(|connection| admission::kept_keys(connection, after, limit))
    }

    fn stale_keys(&self) -> Result<Vec<PoolKey>, StoreError> {
        self.read(admission::stale_keys)
    }

    fn is_pending(&self, message: &MessageId) -> Result<bool, StoreError> {
        self.read(|connection| admission::is_pending(connection, message))
    }

    fn pending_of(&self, messages: &[MessageId]) -> Result<Vec<MessageId>, StoreError> {
        self.read(|connection| admission::pending_of(connection, messages))
    }

    fn first_messages(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.read(|connection| load::first_messages(connection, limit))
    }

    fn messages_of(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        self.read(|connection| load::messages_of(connection, execution))
    }

    fn all_slots(&self, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, StoreError> {
        self.read(|connection| admission::all_slots(connection, most))
    }

    fn anyone_depends(&self) -> Result<bool, StoreError> {
        self.read(admission::anyone_depends)
    }
}

impl BulkJobs for SqliteStore {
    fn put_job(&self, job: &BulkJob, executions: &[Text], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.writer()
            .transaction(|work| bulk::put(work.connection, job, executions, audit))
    }

    fn add_items(&self, job: &str, first: u64, executions: &[Text], last: bool) -> Result<bool, StoreError> {
        self.writer()
            .transaction(|work| bulk::add_items(work.connection, job, first, executions, last))
    }

    fn job(&self, job: &str) -> Result<Option<BulkJob>, StoreError> {
        self.read(|connection| bulk::job(connection, job))
    }

    fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, StoreError> {
        let before = page::place(cursor)?;
        self.read(|connection| bulk::jobs(connection, before, limit))
    }

    fn jobs_to_run(&self) -> Result<Vec<OpenJob>, StoreError> {
        self.read(bulk::to_run)
    }

    fn items(&self, job: &str, which: BulkItems, after: u64, limit: usize) -> Result<Vec<BulkItem>, StoreError> {
        self.read(|connection| bulk::items(connection, job, which, after, limit))
    }

    fn set_results(&self, results: &[(BulkItemId, BulkResult)]) -> Result<(), StoreError> {
        self.writer()
            .transaction(|work| bulk::set_results(work.connection, results))
    }

    fn change_job(
        &self,
        job: &str,
        from: &[BulkState],
        to: BulkState,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        self.writer()
            .transaction(|work| bulk::change(work.connection, job, from, to, now, audit))
    }

    fn clear_jobs(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer()
            .transaction(|work| bulk::clear(work.connection, before, limit))
    }
}

impl BulkStore for SqliteStore {
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs> {
        Some(self)
    }
}

impl KeyValue for SqliteStore {
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.writer()
            .transaction(|work| key_value::put_value(work.connection, kind, name, text, audit))
    }

    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError> {
        self.writer()
            .transaction(|work| key_value::put_new_value(work.connection, kind, name, text))
    }

    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| key_value::get_value(connection, kind, name))
    }

    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.read(|connection| key_value::list_values(connection, kind))
    }

    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.writer()
            .transaction(|work| key_value::delete_value(work.connection, kind, name, audit))
    }
}

impl TableRows for SqliteStore {
    fn count_rows(&self, table: &Table) -> Result<u64, StoreError> {
        self.read(|connection| rows::count(connection, table))
    }

    fn each_row(&self, table: &Table, sink: &mut RowSink<'_>) -> Result<(), StoreError> {
        self.read(|connection| rows::each(connection, table, sink))?
    }

    fn fill(&self, source: &mut RowSource<'_>) -> Result<(), StoreError> {
        let mut said = Ok(());
        let filled = self.writer().transaction(|work| {
            said = rows::fill(work, source)?;
            // What the source gave so far is taken back.
            said.as_ref()
                .map_err(|_| rusqlite::Error::StatementChangedRows(0))
                .copied()
        });
        said?;
        filled
    }
}
