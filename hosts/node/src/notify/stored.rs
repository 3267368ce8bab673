//! Notices in a store.
//!
//! Due notices are read some hundreds at a time, and results of deliveries are written in batches, so that a notice
//! needs only a part of a flush. A delivered notice whose result is not written yet is never delivered again, except
//! after a crash.

use super::{Due, Notice, NoticeQueue, Pending};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::EventId;
use starbridge_ports::{NextNotice, NoticeChange, Notices, ShardSet, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How many notices are read at once.
const READ_BATCH: usize = 256;
/// How many results are written together, and after how long the first of them is written in any case.
const WRITE_BATCH: usize = 1_024;
const WRITE_DELAY: Duration = Duration::from_millis(100);
/// The minimum time between two reads of new notices, even if they come faster.
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// The target, execution and event of a notice.
type NoticePosition = (Text, Text, EventId);
/// When to deliver a notice again, and how often delivery failed; `None`: never.
type NextTry = Option<(Timestamp, u32)>;

/// Reads notices from a store and deletes those that were delivered.
pub struct StoredNotices {
    store: Arc<dyn Notices>,
    /// Whether something may have been appended since the store was last read.
    news: AtomicBool,
    desk: Mutex<Desk>,
    failed: watch::Sender<Option<StoreError>>,
}

#[derive(Default)]
struct Desk {
    targets: BTreeMap<Text, Outbox>,
    /// Results of deliveries that are not written yet.
    unwritten: BTreeMap<NoticePosition, NextTry>,
    /// Since when there are unwritten results.
    since: Option<Instant>,
    /// When the store was last read for new notices.
    looked: Option<Instant>,
}

/// The state of a target.
struct Outbox {
    /// Notices that were due when they were read, without those that have a result since.
    due: VecDeque<(EventId, Pending)>,
    /// Whether more notices may be due.
    more: bool,
    /// When the first of the others is due, as far as they were read.
    next: Option<Timestamp>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            due: VecDeque::new(),
            more: true,
            next: None,
        }
    }
}

impl Desk {
    fn settled(&mut self, place: NoticePosition, again: NextTry) {
        self.unwritten.insert(place, again);
        self.since.get_or_insert_with(Instant::now);
    }
}

impl StoredNotices {
    /// The notices of this store.
    pub fn new(store: Arc<dyn Notices>) -> Self {
        Self {
            store,
            news: AtomicBool::new(false),
            desk: Mutex::default(),
            failed: watch::channel(None).0,
        }
    }

    /// Records that something was appended. Returns whether to wake the targets: false if they know
    /// already.
    pub fn note_news(&self) -> bool {
        !self.news.swap(true, Ordering::AcqRel)
    }

    /// Waits until the store fails, and returns the error.
    pub async fn failed(&self) -> StoreError {
        let mut failed = self.failed.subscribe();
        let seen = failed.wait_for(Option::is_some).await.map(|failed| failed.clone());
        match seen {
            Ok(Some(error)) => error,
            // The sender is ours, so it can't be gone.
            _ => std::future::pending().await,
        }
    }

    /// Writes all results that are not written yet.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn write_all(&self) -> Result<(), StoreError> {
        self.write(&mut self.desk())
    }

    fn write(&self, desk: &mut Desk) -> Result<(), StoreError> {
        if desk.unwritten.is_empty() {
            return Ok(());
        }
        let changes: Vec<NoticeChange> = desk.unwritten.iter().map(change).collect();
        self.seen(self.store.change_notices(&changes))?;
        // Other notices of their executions may be next now.
        for change in &changes {
            if let Some(outbox) = desk.targets.get_mut(&change.target) {
                outbox.more = true;
            }
        }
        desk.unwritten.clear();
        desk.since = None;
        Ok(())
    }

    fn seen<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        done.inspect_err(|error| {
            self.failed.send_replace(Some(error.clone()));
        })
    }

    /// Reads the due notices of a target.
    fn read(&self, desk: &mut Desk, target: &Text, now: Timestamp) -> Result<(), StoreError> {
        let of = |place: &&NoticePosition| place.0 == *target;
        let limit = READ_BATCH + desk.unwritten.keys().filter(of).count();
        let read = self.seen(self.store.next_notices(&ShardSet::ALL, target, limit))?;
        let mut outbox = Outbox {
            more: read.len() == limit,
            ..Outbox::default()
        };
        for next in read {
            if next.due > now {
                // They come in the order of due times, so this one is the earliest of the rest, and no more are due.
                (outbox.next, outbox.more) = (Some(next.due), false);
                break;
            }
            let place = (target.clone(), next.execution.clone(), next.event);
            if desk.unwritten.contains_key(&place) {
                continue;
            }
            match pending(&next) {
                Some(pending) => outbox.due.push_back(pending),
                None => {
                    // It can never be delivered, and must not stop those after it.
                    tracing::error!(execution = %next.execution, event = next.event.0, "a notification is not readable");
                    desk.settled(place, None);
                }
            }
        }
        desk.targets.insert(target.clone(), outbox);
        Ok(())
    }

    fn set_outcome(&self, target: &str, id: &str, again: NextTry) -> Result<(), StoreError> {
        let mut desk = self.desk();
        let Some((execution, event)) = parts(id) else {
            return Ok(());
        };
        if let Some(outbox) = desk.targets.get_mut(target) {
            let is = |(of, pending): &(EventId, Pending)| *of == event && pending.notice.execution == execution;
            // Notices that are out are among the first.
            let place = outbox.due.iter().position(is);
            place.and_then(|place| outbox.due.remove(place));
        }
        desk.settled((target.into(), execution.into(), event), again);
        match desk.unwritten.len() >= WRITE_BATCH {
            true => self.write(&mut desk),
            false => Ok(()),
        }
    }

    /// Only a panic that ends this thread can happen while the lock is held.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NoticeQueue for StoredNotices {
    fn due(&self, target: &str, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let (desk, target) = (&mut *self.desk(), Text::from(target));
        if desk.since.is_some_and(|since| since.elapsed() >= WRITE_DELAY) {
            self.write(desk)?;
        }
        let rested = desk.looked.is_none_or(|looked| looked.elapsed() >= POLL_PAUSE);
        if rested && self.news.swap(false, Ordering::AcqRel) {
            desk.looked = Some(Instant::now());
            desk.targets.values_mut().for_each(|outbox| outbox.more = true);
        }
        let outbox = desk.targets.entry(target.clone()).or_default();
        let more = outbox.more || outbox.next.is_some_and(|next| next <= now);
        if more && outbox.due.len() < limit {
            self.read(desk, &target, now)?;
        }
        let outbox = desk.targets.entry(target).or_default();
        let unwritten = desk
            .since
            .map(|since| at(now, WRITE_DELAY.saturating_sub(since.elapsed())));
        let news = self.news.load(Ordering::Acquire).then(|| at(now, POLL_PAUSE));
        Ok(Due {
            notices: outbox
                .due
                .iter()
                .take(limit)
                .map(|(_, pending)| pending.clone())
                .collect(),
            next: outbox.next.into_iter().chain(unwritten).chain(news).min(),
        })
    }

    fn delivered(&self, target: &str, id: &str) -> Result<(), StoreError> {
        self.set_outcome(target, id, None)
    }

    fn postpone(&self, target: &str, id: &str, failures: u32, until: Timestamp) -> Result<(), StoreError> {
        self.set_outcome(target, id, Some((until, failures)))
    }
}

fn pending(next: &NextNotice) -> Option<(EventId, Pending)> {
    let message: Object = serde_json::from_str(&next.text).ok()?;
    let pending = Pending {
        notice: Notice::read(&next.execution, next.event, &message)?,
        failures: next.failures,
    };
    Some((next.event, pending))
}

/// A time plus a duration, on the clock of notices.
fn at(now: Timestamp, after: Duration) -> Timestamp {
    now.plus(after.into())
}

/// The execution and the event in the id of a notice.
fn parts(id: &str) -> Option<(&str, EventId)> {
    let (execution, event) = id.rsplit_once('/')?;
    Some((execution, EventId(event.parse().ok()?)))
}

fn change(((target, execution, event), again): (&NoticePosition, &NextTry)) -> NoticeChange {
    NoticeChange {
        target: target.clone(),
        execution: execution.clone(),
        event: *event,
        again: *again,
    }
}
