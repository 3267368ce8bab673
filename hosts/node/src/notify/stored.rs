//! Notices as a store keeps them.
//!
//! What is due is read some hundreds at a time, and what became of it is written in batches: a notice costs a flush a share
//! of itself. What is told and not yet written so is never given out again, but by a process that comes after a crash.

use super::{Due, NextNotifications, Notice, Pending};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::EventId;
use starbridge_ports::{NextNotice, NoticeChange, Notices, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Notices read in one go.
const READ: usize = 256;
/// Changes are written when there are so many, or when the first of them is so old.
const TOGETHER: usize = 1_024;
const OLDEST: Duration = Duration::from_millis(100);
/// Time between looks for what is new, however fast it comes.
const BREATH: Duration = Duration::from_millis(5);

/// Target, execution and event of a notice.
type NoticePosition = (Text, Text, EventId);
/// When a notice is to be told again, and how often it could not be; nothing, if never.
type Again = Option<(Timestamp, u32)>;

/// Notices of a store.
pub struct StoredNotices {
    store: Arc<dyn Notices>,
    /// Something may have been appended since the store was asked last.
    news: AtomicBool,
    desk: Mutex<Desk>,
    failed: watch::Sender<Option<StoreError>>,
}

#[derive(Default)]
struct Desk {
    targets: BTreeMap<Text, Outbox>,
    /// What became of notices and is not written yet.
    unwritten: BTreeMap<NoticePosition, Again>,
    /// Since when there is something unwritten.
    since: Option<Instant>,
    /// When the store was last asked for what is new.
    looked: Option<Instant>,
}

/// What is known of a target.
struct Outbox {
    /// What is due, as it was read, without what became something else since.
    due: VecDeque<(EventId, Pending)>,
    /// Whether there may be more than that.
    more: bool,
    /// When the first of those not yet due will be, as far as that was read.
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
    fn settled(&mut self, place: NoticePosition, again: Again) {
        self.unwritten.insert(place, again);
        self.since.get_or_insert_with(Instant::now);
    }
}

impl StoredNotices {
    /// The notices of a store.
    pub fn new(store: Arc<dyn Notices>) -> Self {
        Self {
            store,
            news: AtomicBool::new(false),
            desk: Mutex::default(),
            failed: watch::channel(None).0,
        }
    }

    /// Says that something was appended. Answers whether targets are to be woken: they know already otherwise.
    pub fn note_news(&self) -> bool {
        !self.news.swap(true, Ordering::AcqRel)
    }

    /// Waits until the store fails, and says how.
    pub async fn failed(&self) -> StoreError {
        let mut failed = self.failed.subscribe();
        let seen = failed.wait_for(Option::is_some).await.map(|failed| failed.clone());
        match seen {
            Ok(Some(error)) => error,
            // The sender is ours.
            _ => std::future::pending().await,
        }
    }

    /// Writes what became of notices, all that is not written yet.
    pub fn write_all(&self) -> Result<(), StoreError> {
        self.write(&mut self.desk())
    }

    fn write(&self, desk: &mut Desk) -> Result<(), StoreError> {
        if desk.unwritten.is_empty() {
            return Ok(());
        }
        let changes: Vec<NoticeChange> = desk.unwritten.iter().map(change).collect();
        self.seen(self.store.change_notices(&changes))?;
        // Others of their executions may be next now.
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

    /// Reads what is due for a target.
    fn read(&self, desk: &mut Desk, target: &Text, now: Timestamp) -> Result<(), StoreError> {
        let of = |place: &&NoticePosition| place.0 == *target;
        let limit = READ + desk.unwritten.keys().filter(of).count();
        let read = self.seen(self.store.next_notices(target, limit))?;
        let mut outbox = Outbox {
            more: read.len() == limit,
            ..Outbox::default()
        };
        for next in read {
            if next.due > now {
                // In the order of due times: the first is the earliest, and there is nothing more that is due.
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
                    // Nobody can ever be told of it, and what comes after it is not to wait for that.
                    tracing::error!(execution = %next.execution, event = next.event.0, "a notification is not readable");
                    desk.settled(place, None);
                }
            }
        }
        desk.targets.insert(target.clone(), outbox);
        Ok(())
    }

    fn settle(&self, target: &str, id: &str, again: Again) -> Result<(), StoreError> {
        let mut desk = self.desk();
        let Some((execution, event)) = parts(id) else {
            return Ok(());
        };
        if let Some(outbox) = desk.targets.get_mut(target) {
            let is = |(of, pending): &(EventId, Pending)| *of == event && pending.notice.execution == execution;
            // What is out is among the first.
            let place = outbox.due.iter().position(is);
            place.and_then(|place| outbox.due.remove(place));
        }
        desk.settled((target.into(), execution.into(), event), again);
        match desk.unwritten.len() >= TOGETHER {
            true => self.write(&mut desk),
            false => Ok(()),
        }
    }

    /// Nothing panics while the lock is held but what ends the thread that uses this.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NextNotifications for StoredNotices {
    fn due(&self, target: &str, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let (desk, target) = (&mut *self.desk(), Text::from(target));
        if desk.since.is_some_and(|since| since.elapsed() >= OLDEST) {
            self.write(desk)?;
        }
        let rested = desk.looked.is_none_or(|looked| looked.elapsed() >= BREATH);
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
        let unwritten = desk.since.map(|since| at(now, OLDEST.saturating_sub(since.elapsed())));
        let news = self.news.load(Ordering::Acquire).then(|| at(now, BREATH));
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
        self.settle(target, id, None)
    }

    fn postpone(&self, target: &str, id: &str, failures: u32, until: Timestamp) -> Result<(), StoreError> {
        self.settle(target, id, Some((until, failures)))
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

/// So long after that time, by the clock that notices go by.
fn at(now: Timestamp, after: Duration) -> Timestamp {
    now.plus_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
}

/// Execution and event of a notice's id.
fn parts(id: &str) -> Option<(&str, EventId)> {
    let (execution, event) = id.rsplit_once('/')?;
    Some((execution, EventId(event.parse().ok()?)))
}

fn change(((target, execution, event), again): (&NoticePosition, &Again)) -> NoticeChange {
    NoticeChange {
        target: target.clone(),
        execution: execution.clone(),
        event: *event,
        again: *again,
    }
}
