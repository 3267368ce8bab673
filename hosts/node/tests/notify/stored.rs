//! Notices of a store: delivered from it, with few writes, and never twice except after a crash.

use super::setting::{BEGIN, Targets, TokioClock, notice, refused, taken, targets, world};
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, Status};
use starbridge_node::notify::{Notifier, NotifierSettings, StoredNotices};
use starbridge_node::stores::in_memory;
use starbridge_ports::{
    Append, ExecutionRecord, KeptNotice, NextNotice, NoticeChange, Notices, Request, ShardSet, Store, StoreError, Turn,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A store that counts its calls and can be made to fail.
struct Counting {
    store: Arc<dyn Store>,
    reads: AtomicUsize,
    writes: AtomicUsize,
    failing: AtomicBool,
}

impl Counting {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            store: in_memory(),
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            failing: AtomicBool::new(false),
        })
    }

    /// Appends a turn with notices about its events for `ops`.
    fn append(&self, execution: &str, events: std::ops::RangeInclusive<u64>) {
        let text = |event| Value::from(notice(execution, event, Status::Running).message()).to_json();
        self.append_texts(execution, events.clone(), &events.map(text).collect::<Vec<_>>());
    }

    fn append_texts(&self, execution: &str, events: std::ops::RangeInclusive<u64>, texts: &[String]) {
        let first = *events.start();
        let notices = events.clone().zip(texts).map(|(event, text)| KeptNotice {
            target: "ops".into(),
            event: EventId(event),
            time: BEGIN,
            text: text.clone(),
        });
        let append = Append {
            execution: execution.into(),
            expected: EventId(first - 1),
            turn: Some(Turn {
                first: EventId(first),
                events: u32::try_from(events.count()).unwrap(),
                ..Turn::default()
            }),
            record: (first == 1).then(ExecutionRecord::default),
            notices: notices.collect(),
            ..Append::default()
        };
        assert_eq!(self.store.append(&[append]).unwrap(), []);
    }

    fn left(&self) -> u64 {
        self.store.notice_counts().unwrap().iter().map(|(_, count)| count).sum()
    }

    fn ask<T>(&self, count: &AtomicUsize, done: Result<T, StoreError>) -> Result<T, StoreError> {
        count.fetch_add(1, Ordering::SeqCst);
        match self.failing.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("the disk is away".to_owned())),
            false => done,
        }
    }
}

impl Notices for Counting {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        self.ask(&self.reads, self.store.next_notices(shards, target, limit))
    }
    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        if self.failing.load(Ordering::SeqCst) {
            return self.ask(&self.writes, Ok(()));
        }
        self.ask(&self.writes, self.store.change_notices(changes))
    }
    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        self.store.forget_notices(target, limit)
    }
    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        self.store.notice_counts()
    }
}

type Manner = fn(&Request) -> Option<(Duration, starbridge_ports::Outcome)>;

/// One run of a notifier of `ops`.
struct Life {
    stored: Arc<StoredNotices>,
    targets: Arc<Targets>,
    notifier: Notifier,
}

impl Life {
    fn new(store: &Arc<Counting>, manner: Manner) -> Self {
        let clock = TokioClock::started();
        let stored = Arc::new(StoredNotices::new(store.clone()));
        let answering = Targets::new(clock.clone(), Box::new(manner));
        let world = world(&stored, "redis", answering.clone(), clock);
        Self {
            stored,
            notifier: Notifier::new(targets(&["ops"]), &world, &NotifierSettings::default()),
            targets: answering,
        }
    }

    async fn pass(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.notifier.run()).await;
    }

    fn news(&self) {
        if self.stored.note_news() {
            self.notifier.wake();
        }
    }

    fn told(&self) -> Vec<String> {
        self.targets.of("ops").into_iter().map(|call| call.id).collect()
    }
}

fn quick(_: &Request) -> Option<(Duration, starbridge_ports::Outcome)> {
    taken().map(|(_, outcome)| (Duration::from_millis(1), outcome))
}

#[tokio::test(start_paused = true)]
async fn notice_backlog_takes_few_writes() {
    let store = Counting::new();
    for execution in 0..3_000 {
        store.append(&format!("e{execution}"), 1..=1);
    }
    let life = Life::new(&store, quick);
    life.pass(SECOND * 20).await;
    let told = life.told();
    assert_eq!(told.len(), 3_000);
    assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), 3_000);
    assert_eq!(store.left(), 0);
    // Eight at once take a millisecond: 375 in all.
    let last = life.targets.of("ops").last().unwrap().at.since(BEGIN);
    assert!(last < Millis(1_500), "{last}");
    let (reads, writes) = (store.reads.load(Ordering::SeqCst), store.writes.load(Ordering::SeqCst));
    assert!(writes <= 20 && reads <= 60, "{writes} writes, {reads} reads");
}

#[tokio::test(start_paused = true)]
async fn notice_order_of_an_execution_is_kept() {
    let store = Counting::new();
    store.append("a", 1..=5);
    let fails_first: Manner = |request| match request.attempt {
        1 if request.keys.idempotency == "a/2" => refused(),
        _ => quick(request),
    };
    let life = Life::new(&store, fails_first);
    life.pass(SECOND * 5).await;
    assert_eq!(life.told(), ["a/1", "a/2", "a/2", "a/3", "a/4", "a/5"]);
    assert_eq!(store.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn notices_that_come_fast_are_read_in_batches() {
    let store = Counting::new();
    let life = Life::new(&store, quick);
    let coming = async {
        for execution in 0..1_000 {
            store.append(&format!("e{execution}"), 1..=1);
            life.news();
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        tokio::time::sleep(SECOND).await;
    };
    tokio::select! {
        () = life.notifier.run() => {}
        () = coming => {}
    }
    assert_eq!(life.told().len(), 1_000);
    assert_eq!(store.left(), 0);
    let reads = store.reads.load(Ordering::SeqCst);
    assert!(reads < 300, "{reads} reads in a second");
    let writes = store.writes.load(Ordering::SeqCst);
    assert!(writes <= 15, "{writes} writes in a second");
}

#[tokio::test(start_paused = true)]
async fn notice_is_delivered_again_after_a_crash_only_if_not_recorded() {
    let store = Counting::new();
    for execution in 0..400 {
        store.append(&format!("e{execution}"), 1..=2);
    }
    let mut told = Vec::new();
    while store.left() > 0 {
        // A run ends halfway, and results that were not written are lost.
        let life = Life::new(&store, quick);
        life.pass(Duration::from_millis(130)).await;
        told.push(life.told());
    }
    assert!(told.len() > 1);
    let all: Vec<&String> = told.iter().flatten().collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 800, "each is told");
    for life in &told {
        assert_eq!(
            life.iter().collect::<BTreeSet<_>>().len(),
            life.len(),
            "in one life once"
        );
    }
    for execution in 0..400 {
        let own = |event: u32| format!("e{execution}/{event}");
        let last_first = all.iter().rposition(|id| **id == own(1));
        let first_last = all.iter().position(|id| **id == own(2));
        assert!(
            last_first < first_last,
            "{execution}: none overtakes, not even after a crash"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn notifier_reports_a_store_that_fails() {
    let store = Counting::new();
    store.append("a", 1..=1);
    let life = Life::new(&store, quick);
    store.failing.store(true, Ordering::SeqCst);
    let failed = async {
        tokio::select! {
            () = life.notifier.run() => None,
            error = life.stored.failed() => Some(error),
        }
    };
    let failed = tokio::time::timeout(SECOND * 5, failed).await.unwrap();
    assert_eq!(failed, Some(StoreError::Unavailable("the disk is away".to_owned())));
    assert_eq!(store.left(), 1);
}

#[tokio::test(start_paused = true)]
async fn notice_that_cannot_be_read_blocks_nobody() {
    let store = Counting::new();
    store.append_texts("a", 1..=1, &["{\"flow\":7}".to_owned()]);
    store.append("a", 2..=2);
    let life = Life::new(&store, quick);
    life.pass(SECOND).await;
    assert_eq!(life.told(), ["a/2"]);
    assert_eq!(store.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn notice_outcomes_are_written_at_the_end() {
    let store = Counting::new();
    store.append("a", 1..=1);
    let life = Life::new(&store, quick);
    life.pass(Duration::from_millis(50)).await;
    assert_eq!((life.told().len(), store.left()), (1, 1));
    life.stored.write_all().unwrap();
    assert_eq!(store.left(), 0);
}
