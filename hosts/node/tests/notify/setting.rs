//! Notices in memory, targets whose behaviour a test sets, and time that passes when nothing else
//! happens.

use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_node::notify::{Due, Notice, NoticeQueue, NotifierDeps, Pending, Target, TargetConfig};
use starbridge_ports::{Clock, Connector, Outcome, OutcomeFuture, Request, Secret, Secrets, StoreError};
use starbridge_runtime::Connectors;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The beginning of each test: 2024-01-01T00:00:00Z.
pub const BEGIN: Timestamp = Timestamp(1_704_067_200_000);

/// A clock that follows tokio's time, which tests control.
pub struct TokioClock(Instant);

impl TokioClock {
    pub fn started() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        BEGIN.plus(self.0.elapsed().into())
    }
}

struct Row {
    target: String,
    id: String,
    due: Timestamp,
    pending: Pending,
}

/// The notices that a store would have.
#[derive(Default)]
pub struct Kept {
    rows: Mutex<Vec<Row>>,
    pub asked: AtomicUsize,
    /// Makes reads and writes fail.
    pub unreadable: AtomicBool,
    pub unwritable: AtomicBool,
}

impl Kept {
    pub fn add(&self, target: &str, notice: &Notice) {
        self.rows.lock().unwrap().push(Row {
            target: target.to_owned(),
            id: notice.id(),
            due: notice.time,
            pending: Pending {
                notice: notice.clone(),
                failures: 0,
            },
        });
    }

    pub fn left(&self) -> usize {
        self.rows.lock().unwrap().len()
    }

    fn write(&self) -> Result<(), StoreError> {
        match self.unwritable.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("the disk is away".to_owned())),
            false => Ok(()),
        }
    }
}

impl NoticeQueue for Kept {
    fn due(&self, target: &str, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.unreadable.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is away".to_owned()));
        }
        let rows = self.rows.lock().unwrap();
        let of = |row: &&Row| row.target == target;
        let is_first = |row: &&Row| {
            let event = |other: &Row| other.pending.notice.event;
            let same = rows.iter().filter(of);
            let mut same = same.filter(|other| other.pending.notice.execution == row.pending.notice.execution);
            !same.any(|other| event(other) < event(row))
        };
        let mut firsts: Vec<&Row> = rows.iter().filter(of).filter(is_first).collect();
        firsts.sort_by_key(|row| row.due);
        let (due, later): (Vec<&Row>, Vec<&Row>) = firsts.into_iter().partition(|row| row.due <= now);
        Ok(Due {
            notices: due.into_iter().take(limit).map(|row| row.pending.clone()).collect(),
            next: later.first().map(|row| row.due),
        })
    }

    fn delivered(&self, target: &str, id: &str) -> Result<(), StoreError> {
        self.write()?;
        let mut rows = self.rows.lock().unwrap();
        rows.retain(|row| row.target != target || row.id != id);
        Ok(())
    }

    fn postpone(&self, target: &str, id: &str, failures: u32, until: Timestamp) -> Result<(), StoreError> {
        self.write()?;
        let mut rows = self.rows.lock().unwrap();
        let row = rows.iter_mut().find(|row| row.target == target && row.id == id);
        let row = row.expect("only what is kept is postponed");
        row.due = until;
        row.pending.failures = failures;
        Ok(())
    }
}

/// A call that a target received.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub at: Timestamp,
    pub target: String,
    pub execution: String,
    pub id: String,
    pub attempt: u32,
    /// Whether the target accepted it.
    pub taken: bool,
}

/// How a target behaves: after how long it answers, and with what. `None`: it never answers.
pub type Manner = Box<dyn Fn(&Request) -> Option<(Duration, Outcome)> + Send + Sync>;

/// A connector for targets `redis:NAME`.
pub struct Targets {
    clock: Arc<TokioClock>,
    manner: Manner,
    pub calls: Mutex<Vec<Call>>,
    /// The target and notice of each call that is out.
    out: Mutex<Vec<(String, String)>>,
    /// The largest number of calls that were out at once, to one target.
    pub most: AtomicUsize,
}

impl Targets {
    pub fn new(clock: Arc<TokioClock>, manner: Manner) -> Arc<Self> {
        Arc::new(Self {
            clock,
            manner,
            calls: Mutex::new(Vec::new()),
            out: Mutex::new(Vec::new()),
            most: AtomicUsize::new(0),
        })
    }

    /// The calls that a target received.
    pub fn of(&self, target: &str) -> Vec<Call> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.target == target).cloned().collect()
    }
}

/// Removes a call from the list of those that are out when it is dropped.
struct Out<'a>(&'a Targets, (String, String));

impl Drop for Out<'_> {
    fn drop(&mut self) {
        let mut out = self.0.out.lock().unwrap();
        let place = out.iter().position(|call| *call == self.1);
        place.map(|place| out.remove(place));
    }
}

impl Connector for Targets {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        let target = request.target.trim_start_matches("redis:").to_owned();
        let out = {
            let mut out = self.out.lock().unwrap();
            let call = (target.clone(), request.keys.idempotency.clone());
            assert!(!out.contains(&call), "{call:?} is out already");
            out.push(call.clone());
            let now = out.iter().filter(|(other, _)| *other == target).count();
            self.most.fetch_max(now, Ordering::SeqCst);
            Out(self, call)
        };
        let answer = (self.manner)(&request);
        self.calls.lock().unwrap().push(Call {
            at: self.clock.now(),
            target,
            execution: request.keys.execution.clone(),
            id: request.keys.idempotency.clone(),
            attempt: request.attempt,
            taken: matches!(answer, Some((_, Outcome::Result(_)))),
        });
        Box::pin(async move {
            let _out = out;
            match answer {
                None => std::future::pending().await,
                Some((time, outcome)) => {
                    tokio::time::sleep(time).await;
                    outcome
                }
            }
        })
    }
}

/// A target that accepts a call at once.
pub fn taken() -> Option<(Duration, Outcome)> {
    Some((
        Duration::ZERO,
        Outcome::Result(starbridge_flow::value::Object::new().into()),
    ))
}

/// A target that fails a call at once.
pub fn refused() -> Option<(Duration, Outcome)> {
    Some((Duration::ZERO, Outcome::failed("HTTP.500", "no")))
}

pub struct OneSecret;

impl Secrets for OneSecret {
    fn get(&self, name: &str) -> Option<Secret> {
        (name == "KEY").then(|| Secret::new("open-sesame"))
    }
}

pub fn target(name: &str, to: &str, secret: &str) -> Target {
    let config = TargetConfig {
        name: name.to_owned(),
        to: to.to_owned(),
        statuses: Vec::new(),
        events: Vec::new(),
        secret: secret.to_owned(),
    };
    Target::read(&config).unwrap()
}

/// Targets `redis:NAME` with these names.
pub fn targets(names: &[&str]) -> Vec<Target> {
    let targets = names.iter().map(|name| target(name, &format!("redis:{name}"), ""));
    targets.collect()
}

pub fn world(
    kept: &Arc<impl NoticeQueue + 'static>,
    scheme: &'static str,
    connector: Arc<dyn Connector>,
    clock: Arc<dyn Clock>,
) -> NotifierDeps {
    NotifierDeps {
        notices: kept.clone(),
        connectors: Connectors::from([(scheme, connector)]),
        secrets: Arc::new(OneSecret),
        clock,
    }
}

/// A notice about an event of an execution, at the beginning.
pub fn notice(execution: &str, event: u64, status: Status) -> Notice {
    Notice {
        rollback: None,
        of_step: None,
        execution: execution.to_owned(),
        event: EventId(event),
        flow: "order".to_owned(),
        version: 1,
        name: format!("name-of-{execution}"),
        status,
        failure: None,
        time: BEGIN,
    }
}
