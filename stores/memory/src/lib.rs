//! A store in memory. Its content is lost when the process ends.
//!
//! `exec` and tests use it, and the other stores are compared with it. [`MemoryStore`] has few
//! methods of its own: call it through the traits of `starbridge-ports`, in the order that
//! [`starbridge_ports::History`] gives.
//!
//! ```
//! use starbridge_machine::EventId;
//! use starbridge_ports::{Append, AttemptLog, ExecutionRecord, History, ShardSet, Turn};
//! use starbridge_memory::MemoryStore;
//!
//! let store = MemoryStore::new();
//! let start = Append {
//!     execution: "e-1".into(),
//!     record: Some(ExecutionRecord { flow: "shop".into(), name: "first".into(), awake: true, ..ExecutionRecord::default() }),
//!     turn: Some(Turn { first: EventId(1), events: 1, text: "[]".to_owned(), ..Turn::default() }),
//!     ..Append::default()
//! };
//! let refused = store.append(std::slice::from_ref(&start))?;
//! assert!(refused.is_empty());
//! assert_eq!(store.awake(&ShardSet::ALL)?, ["e-1"]);
//!
//! // The history has an event now, so another start of that execution is refused.
//! assert_eq!(store.append(&[start])?.len(), 1);
//! # Ok::<(), starbridge_ports::StoreError>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod admission;
mod audit;
mod bulk;
mod list;
mod notices;
mod owning;
mod queueing;
mod write;

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{
    ADMISSION, Admissions, Append, AttemptLog, Audit, AuditEntry, AuditPage, AuditQuery, BulkItem, BulkItemId,
    BulkItems, BulkJob, BulkJobs, BulkPage, BulkResult, BulkState, BulkStore, Catalogue, DeadTask, Depth, EndedHolders,
    ExecutionRecord, History, KeptFlow, KeptKey, KeyValue, KeyView, LinePlace, Listing, Mark, Message, MessageId,
    NextNotice, NoticeChange, Notices, OpenJob, Owning, Page, PoolKey, Query, QueuedTask, Queueing, Receivers, Refusal,
    Retention, ShardOwners, ShardSet, StoreError, StoredHistory, TaskLease, Turn, TurnHead, Waiter, Waiters,
    WaitingReason,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store in memory. Its content is lost when the process ends.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By number, in the order of their starts.
    executions: BTreeMap<u64, Execution>,
    numbers: HashMap<Text, u64>,
    /// The numbers of executions by flow and name.
    names: HashMap<(Text, Text), u64>,
    /// The numbers of executions by flow and key.
    keys: HashMap<(Text, Text), u64>,
    last_number: u64,
    /// In the order in which they were sent.
    messages: Vec<Message>,
    /// By name and version.
    flows: BTreeMap<(Text, u64), KeptFlow>,
    /// By kind and name.
    values: BTreeMap<(String, String), String>,
    tasks: queueing::Tasks,
    /// In the order in which they were appended.
    notices: Vec<notices::Kept>,
    /// By number.
    audit: BTreeMap<u64, AuditEntry>,
    last_audit: u64,
    admission: admission::Rows,
    /// In the order in which they were made.
    jobs: Vec<bulk::KeptJob>,
    owners: ShardOwners,
}

#[derive(Debug, Default)]
struct Execution {
    id: Text,
    record: ExecutionRecord,
    /// How it begins, until it has begun.
    request: Option<String>,
    checkpoint: Option<(EventId, Vec<u8>)>,
    turns: Vec<Turn>,
    logs: Vec<AttemptLog>,
}

impl Execution {
    /// The number of the last event.
    fn last(&self) -> EventId {
        self.turns.last().map_or(EventId(0), Turn::last)
    }

    /// How it begins, if it waits to begin.
    fn request(&self) -> Option<String> {
        let waits = self.record.status.is_before_start();
        self.request.clone().filter(|_| waits)
    }

    /// The index of the turn that holds an event. For an event after the last one, the number of turns.
    fn position(&self, event: EventId) -> usize {
        self.turns.partition_point(|turn| turn.last() < event)
    }
}

impl Kept {
    fn get(&self, execution: &str) -> Option<&Execution> {
        self.executions.get(self.numbers.get(execution)?)
    }

    fn get_mut(&mut self, execution: &str) -> Option<&mut Execution> {
        self.executions.get_mut(self.numbers.get(execution)?)
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The ids of all executions, in order.
    pub fn executions(&self) -> Vec<Text> {
        let kept = self.lock();
        let mut ids: Vec<Text> = kept.executions.values().map(|execution| execution.id.clone()).collect();
        ids.sort();
        ids
    }

    /// Nothing panics while the lock is held, so the value of a poisoned lock is intact.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History for MemoryStore {
    fn owning(&self) -> Option<&dyn Owning> {
        Some(self)
    }

    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        Ok(self.lock().append(batch))
    }

    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        let kept = self.lock();
        Ok(kept.get(execution).map(|execution| {
            let after = execution.checkpoint.as_ref().map_or(EventId(0), |(event, _)| *event);
            let turns = execution.turns.iter().filter(|turn| turn.first > after);
            StoredHistory {
                record: execution.record.clone(),
                checkpoint: execution.checkpoint.clone(),
                turns: turns.cloned().collect(),
                request: execution.request(),
                messages: Vec::new(),
            }
        }))
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        let kept = self.lock();
        Ok(kept.get(execution).map(|execution| StoredHistory {
            record: execution.record.clone(),
            checkpoint: None,
            turns: execution.turns.clone(),
            request: execution.request(),
            messages: Vec::new(),
        }))
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        let kept = self.lock();
        let parent = kept.get(execution).and_then(|kept| kept.record.parent.as_ref());
        Ok(parent.map(|parent| parent.execution.clone()))
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        let kept = self.lock();
        let awake = kept.executions.values().filter(|execution| execution.record.awake);
        let awake = awake.filter(|execution| shards.has_execution(&execution.id));
        let mut ids: Vec<Text> = awake.map(|execution| execution.id.clone()).collect();
        ids.sort();
        Ok(ids)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        let kept = self.lock();
        let asleep = kept.executions.values().filter(|execution| !execution.record.awake);
        let asleep = asleep.filter(|execution| shards.has_execution(&execution.id));
        let due = asleep.filter_map(|execution| Some((execution.record.wake_at?, execution.id.clone())));
        let mut due: Vec<(Timestamp, Text)> = due.filter(|(at, _)| *at < before).collect();
        // The sort is stable: executions due at the same time stay in the order of their starts.
        due.sort_by_key(|(at, _)| *at);
        due.truncate(limit);
        Ok(due)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        let mut kept = self.lock();
        for (execution, mark) in marks {
            let record = kept.get_mut(execution).map(|execution| &mut execution.record);
            if let Some(record) = record.filter(|record| record.ended.is_none()) {
                mark.change(record);
            }
        }
        kept.add_audit(audit);
        Ok(())
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        let kept = self.lock();
        let messages = kept.messages.iter().filter(|message| to.have(&message.id.to));
        Ok(messages.cloned().collect())
    }
}

impl Catalogue for MemoryStore {
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError> {
        Ok(self.lock().put_flow(name, definition, hash, now, audit))
    }

    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        let mut kept = self.lock();
        let mut hidden = false;
        for ((flow, _), kept) in &mut kept.flows {
            if flow == name && !kept.hidden {
                kept.hidden = true;
                hidden = true;
            }
        }
        kept.add_audit(audit.filter(|_| hidden));
        Ok(hidden)
    }

    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError> {
        Ok(self.lock().flows.values().cloned().collect())
    }
}

impl Listing for MemoryStore {
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError> {
        Ok(self.lock().get(execution).map(|execution| execution.record.clone()))
    }

    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError> {
        let kept = self.lock();
        let number = kept.names.get(&(Text::from(flow), Text::from(name)));
        let execution = number.and_then(|number| kept.executions.get(number));
        Ok(execution.map(|execution| execution.id.clone()))
    }

    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError> {
        let kept = self.lock();
        let number = kept.keys.get(&(Text::from(flow), Text::from(once_key)));
        let execution = number.and_then(|number| kept.executions.get(number));
        Ok(execution.map(|execution| execution.id.clone()))
    }

    fn list(&self, query: &Query) -> Result<Page, StoreError> {
        self.lock().list(query)
    }

    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError> {
        Ok(self.lock().counts())
    }

    fn reason_counts(&self) -> Result<Option<Vec<(WaitingReason, u64)>>, StoreError> {
        Ok(Some(self.lock().reason_counts()))
    }

    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError> {
        let kept = self.lock();
        let turn = kept
            .get(execution)
            .filter(|_| event.0 > 0)
            .and_then(|execution| execution.turns.get(execution.position(event)));
        Ok(turn.cloned())
    }

    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError> {
        let kept = self.lock();
        Ok(kept
            .get(execution)
            .and_then(|execution| execution.turns.last().cloned()))
    }

    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError> {
        let kept = self.lock();
        let execution = kept.get(execution);
        Ok(execution.map_or_else(Vec::new, |execution| list::turns(execution, from, events, backwards)))
    }

    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError> {
        let kept = self.lock();
        let execution = kept.get(execution);
        Ok(execution.map_or_else(Vec::new, |execution| {
            list::turn_heads(execution, from, events, backwards)
        }))
    }

    fn logs(&self, execution: &str, from: EventId, limit: usize) -> Result<Option<Vec<AttemptLog>>, StoreError> {
        let kept = self.lock();
        let logs = kept.get(execution).map_or(&[][..], |execution| &execution.logs);
        let logs = logs.iter().filter(|log| log.event >= from);
        Ok(Some(logs.take(limit).cloned().collect()))
    }
}

impl Retention for MemoryStore {
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.lock().clear(before, limit))
    }
}

impl Queueing for MemoryStore {
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        Ok(self.lock().next_tasks(queue, limit))
    }

    fn task_of(
        &self,
        execution: &str,
        call: Option<EventId>,
    ) -> Result<Option<(QueuedTask, Option<TaskLease>)>, StoreError> {
        Ok(self.lock().task_of(execution, call))
    }

    fn tasks_before(&self, task: &QueuedTask, most: u64) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.lock().tasks_before(task, most)))
    }

    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError> {
        Ok(self.lock().leased_tasks(shards))
    }

    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError> {
        Ok(self.lock().depths(shards))
    }

    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        Ok(self.lock().overdue_tasks(shards, before, limit))
    }

    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError> {
        Ok(self.lock().dead_tasks(queue, after, limit))
    }

    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        Ok(self.lock().dead_counts())
    }
}

impl Notices for MemoryStore {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        Ok(self.lock().next_notices(shards, target, limit))
    }

    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        self.lock().change_notices(changes);
        Ok(())
    }

    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        Ok(self.lock().forget_notices(target, limit))
    }

    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        Ok(self.lock().notice_counts())
    }
}

impl Audit for MemoryStore {
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        self.lock().audit(query)
    }

    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.lock().clear_audit(before, limit))
    }
}

impl Admissions for MemoryStore {
    fn keeps_admission(&self) -> bool {
        true
    }

    fn waiter(&self, execution: &str) -> Result<Option<Waiter>, StoreError> {
        Ok(self.lock().admission.waiter(execution))
    }

    fn waiters(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        Ok(self.lock().admission.waiters(which, limit))
    }

    fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<(u64, Text)>, StoreError> {
        Ok(self.lock().admission.waiter_ids(which, limit))
    }

    fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> Result<u64, StoreError> {
        Ok(self.lock().admission.waiters_before(key, place, most))
    }

    fn last_waiter(&self) -> Result<(u64, u64), StoreError> {
        Ok(self.lock().admission.last_waiter())
    }

    fn count_waiters(&self) -> Result<u64, StoreError> {
        Ok(self.lock().admission.count_waiters())
    }

    fn slots_of(&self, execution: &str) -> Result<Vec<PoolKey>, StoreError> {
        Ok(self.lock().admission.slots_of(execution))
    }

    fn holders(&self, key: &PoolKey, limit: usize) -> Result<Vec<Text>, StoreError> {
        Ok(self.lock().admission.holders(key, limit))
    }

    fn ended_holders(&self, after: &str, limit: usize) -> Result<EndedHolders, StoreError> {
        let kept = self.lock();
        let holders = kept.admission.holders_after(after).take(limit);
        let ends = holders.map(|id| {
            (
                id.clone(),
                kept.get(id).map_or(Status::New, |known| known.record.status),
            )
        });
        Ok(EndedHolders::of(ends.collect(), limit))
    }

    fn key(&self, key: &PoolKey) -> Result<KeyView, StoreError> {
        Ok(self.lock().admission.key(key))
    }

    fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Result<Vec<KeptKey>, StoreError> {
        Ok(self.lock().admission.kept_keys(after, limit))
    }

    fn stale_keys(&self) -> Result<Vec<PoolKey>, StoreError> {
        Ok(self.lock().admission.stale_keys())
    }

    fn is_pending(&self, message: &MessageId) -> Result<bool, StoreError> {
        Ok(self.lock().messages.iter().any(|kept| kept.id == *message))
    }

    fn first_messages(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        let kept = self.lock();
        let asked = kept.messages.iter().filter(|kept| kept.id.to.as_str() == ADMISSION);
        Ok(asked.take(limit).cloned().collect())
    }

    fn messages_of(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        let kept = self.lock();
        let asked = kept.messages.iter();
        let asked = asked.filter(|kept| kept.id.to.as_str() == ADMISSION && kept.id.from.as_str() == execution);
        Ok(asked.cloned().collect())
    }

    fn all_slots(&self, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, StoreError> {
        Ok(self.lock().admission.all_slots(most))
    }

    fn anyone_depends(&self) -> Result<bool, StoreError> {
        Ok(self.lock().admission.anyone_depends())
    }
}

impl BulkJobs for MemoryStore {
    fn put_job(&self, job: &BulkJob, executions: &[Text], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.lock().put_job(job, executions, audit);
        Ok(())
    }

    fn add_items(&self, job: &str, first: u64, executions: &[Text], last: bool) -> Result<bool, StoreError> {
        Ok(self.lock().add_items(job, first, executions, last))
    }

    fn job(&self, job: &str) -> Result<Option<BulkJob>, StoreError> {
        Ok(self.lock().job(job))
    }

    fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, StoreError> {
        self.lock().jobs(cursor, limit)
    }

    fn jobs_to_run(&self) -> Result<Vec<OpenJob>, StoreError> {
        Ok(self.lock().jobs_to_run())
    }

    fn items(&self, job: &str, which: BulkItems, after: u64, limit: usize) -> Result<Vec<BulkItem>, StoreError> {
        Ok(self.lock().items(job, which, after, limit))
    }

    fn set_results(&self, results: &[(BulkItemId, BulkResult)]) -> Result<(), StoreError> {
        let mut kept = self.lock();
        for (item, result) in results {
            kept.set_result(item, result);
        }
        Ok(())
    }

    fn change_job(
        &self,
        job: &str,
        from: &[BulkState],
        to: BulkState,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        Ok(self.lock().change_job(job, from, to, now, audit))
    }

    fn clear_jobs(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.lock().clear_jobs(before, limit))
    }
}

impl BulkStore for MemoryStore {
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs> {
        Some(self)
    }
}

impl KeyValue for MemoryStore {
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        let place = (kind.to_owned(), name.to_owned());
        let mut kept = self.lock();
        kept.values.insert(place, text.to_owned());
        kept.add_audit(audit);
        Ok(())
    }

    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError> {
        let place = (kind.to_owned(), name.to_owned());
        let mut kept = self.lock();
        Ok(kept.values.entry(place).or_insert_with(|| text.to_owned()).clone())
    }

    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        let place = (kind.to_owned(), name.to_owned());
        Ok(self.lock().values.get(&place).cloned())
    }

    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        let kept = self.lock();
        let all = kept.values.iter().filter(|((of, _), _)| of == kind);
        Ok(all.map(|((_, name), text)| (name.clone(), text.clone())).collect())
    }

    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError> {
        let place = (kind.to_owned(), name.to_owned());
        let mut kept = self.lock();
        let gone = kept.values.remove(&place).is_some();
        kept.add_audit(audit.filter(|_| gone));
        Ok(gone)
    }
}
