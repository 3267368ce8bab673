//! A store in a PostgreSQL database: histories as rows, nothing that PostgreSQL alone must be able to do beyond SQL. One process
//! has it at a time.
//!
//! The words of the tables are those of the store in SQLite; how they lie there, why, and what is written when, is in
//! `migrations/` and in the page on operating it.
//!
//! Two kinds of handles use a store. One that is patient waits while the database is away, and knows afterwards what became of
//! what it wrote: executions are run with that one. One that is not gets an error at once: requests are answered with that one.
//!
//! Open it with [`PostgresStore::open`], and call it through the traits of `starbridge-ports`, in the order that
//! [`starbridge_ports::History`] gives. Settings are checked before anything is sent, so this example runs without PostgreSQL:
//!
//! ```
//! use starbridge_postgres::{PostgresSettings, PostgresStore};
//!
//! let settings = PostgresSettings {
//!     url: "postgres://flows@db.example".to_owned(),
//!     ..PostgresSettings::default()
//! };
//! let refused = PostgresStore::open(&settings).err().unwrap();
//! assert!(refused.to_string().contains("names no database"), "{refused}");
//! ```
#![warn(clippy::missing_errors_doc)]

mod admission;
mod append;
mod audit;
mod bulk;
mod catalogue;
mod checks;
mod clock;
mod codec;
mod fault;
mod final_counts;
mod head;
mod health;
mod key_value;
mod link;
mod list;
mod load;
mod member;
mod migrate;
mod notices;
mod open;
mod open_error;
pub mod outbox;
mod owner;
mod owning;
mod parts;
mod prepare;
mod queueing;
mod readers;
mod reasons;
mod record;
mod retention;
mod rights;
mod rows;
mod segment;
mod session;
mod session_lock;
mod settings;
mod shared;
mod stages;
mod tasks;
mod wait;
mod write;

pub use clock::ClockReading;
pub use head::MAX_EVENTS;
pub use member::{Claim, DRAINS, HeartbeatReply, MAX_MEMBERS, Member, MemberState};
pub use open_error::OpenError;
pub use prepare::{Prepared, Preparing, prepare};
pub use settings::PostgresSettings;

use fault::Failure;
use open::Taking;
use session::Session;
use shared::Shared;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    Admissions, Append, AttemptLog, Audit, AuditEntry, AuditPage, AuditQuery, BulkItem, BulkItemId, BulkItems, BulkJob,
    BulkJobs, BulkPage, BulkResult, BulkState, BulkStore, Catalogue, DeadTask, Depth, EndedHolders, ExecutionRecord,
    History, KeptFlow, KeptKey, KeyValue, KeyView, LinePlace, Listing, Loading, Mark, Message, MessageId, NextNotice,
    NoticeChange, Notices, OpenJob, Owning, Page, PoolKey, Query, QueuedTask, Queueing, Receivers, Refusal, Retention,
    RowSink, RowSource, ShardSet, StoreError, StoredHistory, Table, TableRows, TaskLease, Turn, TurnHead, Waiter,
    Waiters, WaitingReason,
};
use std::cell::RefCell;
use std::sync::Arc;
use write::Work;

/// A store in one schema of a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    patient: bool,
}

impl PostgresStore {
    /// Opens a store, or makes it where there is none. The handle is not patient.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: each says what to do.
    pub fn open(settings: &PostgresSettings) -> Result<Self, OpenError> {
        open::open(settings, &Taking::default())
    }

    fn of(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            patient: false,
        }
    }

    /// A handle of the same store that waits while the database is away.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            patient: true,
        }
    }

    /// Where the database is, for people.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    /// Whether opening made the store.
    pub fn is_new(&self) -> bool {
        self.shared.is_new
    }

    /// What may go wrong with this database, each with what to do.
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// Makes sure that this process still has the store. While the database is away that is not known.
    ///
    /// # Errors
    ///
    /// Who has taken it, or why else nothing is written any more.
    pub fn hold(&self) -> Result<(), StoreError> {
        self.shared.hold()
    }

    /// Leaves the store to others, whoever still has a handle of it: nothing is written any more.
    pub fn give_up(&self) {
        self.shared.give_up();
    }

    /// How many appends were refused because somebody else had taken the store.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[expect(clippy::needless_pass_by_value, reason = "whoever calls it makes it for that")]
    fn read<T>(&self, work: impl AsyncFn(&Session) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.shared.read(self.patient, &work)
    }

    #[expect(clippy::needless_pass_by_value, reason = "whoever calls it makes it for that")]
    fn write<T>(&self, work: impl AsyncFn(&mut Work<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.shared.write(self.patient, &work)
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore")
            .field("place", &self.place())
            .finish_non_exhaustive()
    }
}

impl History for PostgresStore {
    fn owning(&self) -> Option<&dyn Owning> {
        Some(self)
    }

    fn is_away(&self) -> bool {
        self.shared.is_away()
    }

    fn may_lose(&self) -> Result<bool, StoreError> {
        self.read(async |session| checks::standbys(session).await.map(checks::Standbys::may_lose))
    }

    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.write(async |work| append::append(work, batch).await)
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.read(async |session| load::one(session, execution, true).await)
    }

    fn load_many(&self, executions: &[Text]) -> Result<Vec<Loading>, StoreError> {
        let ids: Vec<&str> = executions.iter().map(Text::as_str).collect();
        let all = self.read(async |session| load::load(session, &ids, true).await)?;
        Ok(all
            .into_iter()
            .map(|loaded| loaded.map_err(Failure::into_store_error))
            .collect())
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.read(async |session| load::one(session, execution, false).await)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.read(async |session| load::parent_of(session, execution).await)
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.read(async |session| load::awake(session, shards).await)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.read(async |session| load::due(session, shards, before, limit).await)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.write(async |work| append::mark(work, marks, audit).await)
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.read(async |session| load::messages(session, to).await)
    }
}

impl Catalogue for PostgresStore {
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError> {
        self.write(async |work| catalogue::put(work.session, name, definition, hash, now, audit).await)
    }

    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.write(async |work| catalogue::hide(work.session, name, audit).await)
    }

    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError> {
        self.read(async |session| catalogue::flows(session, None).await)
    }

    fn versions(&self, name: &str) -> Result<Vec<KeptFlow>, StoreError> {
        self.read(async |session| catalogue::flows(session, Some(name)).await)
    }
}

impl Listing for PostgresStore {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        self.read(async |session| Ok(record::read(session, execution).await?.map(|(_, record)| record)))
    }

    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        self.read(async |session| list::named(session, flow, name).await)
    }

    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        self.read(async |session| list::keyed(session, flow, once_key).await)
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let place = list::place(query.cursor.as_ref())?;
        self.read(async |session| list::list(session, query, place).await)
    }

    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        Ok(self.shared.counted())
    }

    fn reason_counts(&self) -> Result<Option<Vec<(WaitingReason, u64)>>, StoreError> {
        self.read(async |session| reasons::counts(session).await).map(Some)
    }

    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        self.read(async |session| load::turn_of(session, execution, event).await)
    }

    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        self.read(async |session| load::last_turn(session, execution).await)
    }

    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        self.read(async |session| load::turns(session, execution, from, events, backwards).await)
    }

    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError> {
        self.read(async |session| load::turn_heads(session, execution, from, events, backwards).await)
    }

    fn logs(&self, execution: &str, from: EventId, limit: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        self.read(async |session| load::logs(session, execution, from, limit).await)
            .map(Some)
    }
}

impl Retention for PostgresStore {
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(async |work| retention::clear(work, before, limit).await)
    }
}

impl Queueing for PostgresStore {
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.read(async |session| queueing::next(session, queue, limit).await)
    }

    fn first_tasks(&self, queue: &str, below: u8, each: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.read(async |session| queueing::first(session, queue, below, each).await)
    }

    fn task_of(
        &self,
        execution: &str,
        call: Option<EventId>,
    ) -> Result<Option<(QueuedTask, Option<TaskLease>)>, StoreError> {
        self.read(async |session| queueing::of_execution(session, execution, call).await)
    }

    fn tasks_before(&self, task: &QueuedTask, most: u64) -> Result<Option<u64>, StoreError> {
        self.read(async |session| queueing::before(session, task, most).await)
            .map(Some)
    }

    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError> {
        self.read(async |session| queueing::leased(session, shards).await)
    }

    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError> {
        self.read(async |session| queueing::depths(session, shards).await)
    }

    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        self.read(async |session| queueing::overdue(session, shards, before, limit).await)
    }

    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError> {
        self.read(async |session| queueing::dead(session, queue, after, limit).await)
    }

    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.read(async |session| queueing::dead_counts(session).await)
    }
}

impl Notices for PostgresStore {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        self.read(async |session| notices::next(session, shards, target, limit).await)
    }

    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        self.write(async |work| notices::change(work.session, changes).await)
    }

    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        self.write(async |work| notices::forget(work.session, target, limit).await)
    }

    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.read(async |session| notices::counts(session).await)
    }
}

impl Audit for PostgresStore {
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        let place = list::place(query.cursor.as_ref())?;
        self.read(async |session| audit::list(session, query, place).await)
    }

    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(async |work| audit::clear(work.session, before, limit).await)
    }
}

impl Admissions for PostgresStore {
    fn keeps_admission(&self) -> bool {
        true
    }

    fn waiter(&self, execution: &str) -> Result<Option<Waiter>, StoreError> {
        self.read(async |session| admission::waiter(session, execution).await)
    }

    fn waiters(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.read(async |session| admission::waiters(session, which, limit).await)
    }

    fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<(u64, Text)>, StoreError> {
        self.read(async |session| admission::waiter_ids(session, which, limit).await)
    }

    fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> Result<u64, StoreError> {
        self.read(async |session| admission::waiters_before(session, key, place, most).await)
    }

    fn last_waiter(&self) -> Result<(u64, u64), StoreError> {
        self.read(async |session| admission::last_waiter(session).await)
    }

    fn count_waiters(&self) -> Result<u64, StoreError> {
        self.read(async |session| admission::count_waiters(session).await)
    }

    fn slots_of(&self, execution: &str) -> Result<Vec<PoolKey>, StoreError> {
        self.read(async |session| admission::slots_of(session, execution).await)
    }

    fn holders(&self, key: &PoolKey, limit: usize) -> Result<Vec<Text>, StoreError> {
        self.read(async |session| admission::holders(session, key, limit).await)
    }

    fn ended_holders(&self, after: &str, limit: usize) -> Result<EndedHolders, StoreError> {
        self.read(async |session| admission::ended_holders(session, after, limit).await)
    }

    fn key(&self, key: &PoolKey) -> Result<KeyView, StoreError> {
        self.read(async |session| admission::key(session, key).await)
    }

    fn kept_key(&self, key: &PoolKey) -> Result<(KeptKey, u64), StoreError> {
        self.read(async |session| admission::kept_key(session, key).await)
    }

    fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Result<Vec<KeptKey>, StoreError> {
        self.read(async |session| admission::kept_keys(session, after, limit).await)
    }

    fn stale_keys(&self) -> Result<Vec<PoolKey>, StoreError> {
        self.read(async |session| admission::stale_keys(session).await)
    }

    fn is_pending(&self, message: &MessageId) -> Result<bool, StoreError> {
        self.read(async |session| load::is_pending(session, message).await)
    }

    fn first_messages(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.read(async |session| load::first_messages(session, limit).await)
    }

    fn messages_of(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        self.read(async |session| load::messages_of(session, execution).await)
    }

    fn all_slots(&self, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, StoreError> {
        self.read(async |session| admission::all_slots(session, most).await)
    }

    fn anyone_depends(&self) -> Result<bool, StoreError> {
        self.read(async |session| admission::anyone_depends(session).await)
    }
}

impl BulkJobs for PostgresStore {
    fn put_job(&self, job: &BulkJob, executions: &[Text], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.write(async |work| bulk::put(work.session, job, executions, audit).await)
    }

    fn add_items(&self, job: &str, first: u64, executions: &[Text], last: bool) -> Result<bool, StoreError> {
        self.write(async |work| bulk::add_items(work.session, job, first, executions, last).await)
    }

    fn job(&self, job: &str) -> Result<Option<BulkJob>, StoreError> {
        self.read(async |session| bulk::job(session, job).await)
    }

    fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, StoreError> {
        let before = bulk::place(cursor)?;
        self.read(async |session| bulk::jobs(session, before, limit).await)
    }

    fn jobs_to_run(&self) -> Result<Vec<OpenJob>, StoreError> {
        self.read(async |session| bulk::to_run(session).await)
    }

    fn items(&self, job: &str, which: BulkItems, after: u64, limit: usize) -> Result<Vec<BulkItem>, StoreError> {
        self.read(async |session| bulk::items(session, job, which, after, limit).await)
    }

    fn set_results(&self, results: &[(BulkItemId, BulkResult)]) -> Result<(), StoreError> {
        self.write(async |work| bulk::set_results(work.session, results).await)
    }

    fn change_job(
        &self,
        job: &str,
        from: &[BulkState],
        to: BulkState,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        self.write(async |work| bulk::change(work.session, job, from, to, now, audit).await)
    }

    fn clear_jobs(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(async |work| bulk::clear(work.session, before, limit).await)
    }
}

impl BulkStore for PostgresStore {
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs> {
        Some(self)
    }
}

impl KeyValue for PostgresStore {
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.write(async |work| key_value::put_value(work.session, kind, name, text, audit).await)
    }

    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError> {
        self.write(async |work| key_value::put_new_value(work.session, kind, name, text).await)
    }

    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        self.read(async |session| key_value::get_value(session, kind, name).await)
    }

    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.read(async |session| key_value::list_values(session, kind).await)
    }

    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        self.write(async |work| key_value::delete_value(work.session, kind, name, audit).await)
    }
}

impl TableRows for PostgresStore {
    fn count_rows(&self, table: &Table) -> Result<u64, StoreError> {
        self.read(async |session| rows::count(session, table).await)
    }

    fn each_row(&self, table: &Table, sink: &mut RowSink<'_>) -> Result<(), StoreError> {
        let sink = RefCell::new(sink);
        self.shared.read(false, &async |session: &Session| {
            rows::each(session, table, &sink).await
        })
    }

    fn fill(&self, source: &mut RowSource<'_>) -> Result<(), StoreError> {
        let source = RefCell::new(source);
        self.shared
            .write(false, &async |work: &mut Work<'_>| rows::fill(work, &source).await)
    }
}
