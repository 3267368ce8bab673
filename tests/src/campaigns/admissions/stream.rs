//! One of the lowest priority behind a stream of the highest that never ends.

use super::Findings;
use super::rows::Rows;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_memory::MemoryStore;
use starbridge_ports::{
    ADMISSION, Append, Ask, Dependency, ExecutionRecord, History, Message, MessageBody, MessageId, NeededKey, PoolKey,
    RequestChange, StoreError,
};
use starbridge_runtime::{Admission, AdmissionSettings};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

const LAST: u8 = 0;
const FIRST: u8 = 9;

/// How many may be admitted through a key before one behind which nobody older of its priority stands but these.
///
/// After each `fair_share` admissions the oldest waiter gets a claim, and the next slot is its own. So it is the turn of one with
/// `older` before it after `older + 1` times as many, and one more admission takes the slot for it.
pub fn bound(older: u64, fair_share: u64) -> u64 {
    (older + 1) * fair_share
}

/// How many are admitted before the youngest of those of priority 0, `older` of which came before it; at most `most` are waited
/// for. A key has `limit` slots. There are always some of priority 9 that wait.
///
/// # Errors
///
/// The error of the store.
pub fn admissions_before(
    older: u64,
    limit: u64,
    fair_share: u32,
    most: u64,
) -> Result<(Option<u64>, Findings), StoreError> {
    let mut stream = Stream::new(limit, fair_share)?;
    for _ in 0..limit {
        stream.ask(FIRST)?;
    }
    stream.decide()?;
    for _ in 0..older {
        stream.ask(LAST)?;
    }
    let youngest = stream.ask(LAST)?;
    let mut before = 0;
    while before < most {
        stream.ask(FIRST)?;
        stream.ask(FIRST)?;
        stream.decide()?;
        if let Some(ends) = stream.running.pop_front() {
            stream.end(&ends)?;
        }
        for admitted in stream.decide()? {
            if admitted == youngest {
                return Ok((Some(before), stream.findings));
            }
            before += 1;
        }
    }
    Ok((None, stream.findings))
}

/// How many times the store is read for an admission, when so many wait for a key with this limit and one after the other ends.
///
/// # Errors
///
/// The error of the store.
pub fn reads_of_an_admission(waiting: u64, limit: u64) -> Result<f64, StoreError> {
    let mut stream = Stream::new(limit, 16)?;
    for _ in 0..waiting {
        stream.ask(LAST)?;
    }
    stream.decide()?;
    stream.reads.store(0, Ordering::Relaxed);
    let mut admitted = 0;
    // As many end together as run.
    while !stream.running.is_empty() {
        for ends in std::mem::take(&mut stream.running) {
            stream.end(&ends)?;
        }
        admitted += stream.decide()?.len();
    }
    Ok(stream.reads.load(Ordering::Relaxed) as f64 / admitted as f64)
}

/// How many times the store is read for a start that others wait for by its name, when each of `starts` waits for `each` of those
/// that are started after it.
///
/// # Errors
///
/// The error of the store.
pub fn reads_of_an_appearance(starts: u64, each: u64) -> Result<f64, StoreError> {
    let mut stream = Stream::new(1, 16)?;
    for number in (0..starts).rev() {
        stream.ask_after(number, each)?;
        stream.decide()?;
    }
    Ok(stream.reads.load(Ordering::Relaxed) as f64 / starts as f64)
}

/// After how many decisions one is admitted that needs nothing but a free slot, when `starts` came just before it, each of which
/// waits for `each` of those that come after it; and the most reads of the store for one decision, until nothing is left to decide.
///
/// # Errors
///
/// The error of the store.
pub fn decisions_behind_names(starts: u64, each: u64) -> Result<(u32, u64), StoreError> {
    let mut stream = Stream::new(1, 16)?;
    for number in (0..starts).rev() {
        stream.ask_after(number, each)?;
    }
    stream.ask(LAST)?;
    let (mut decisions, mut most, mut behind) = (0, 0, None);
    while !stream.admission.is_idle() {
        stream.reads.store(0, Ordering::Relaxed);
        let admitted = stream.decide_once()?;
        most = most.max(stream.reads.load(Ordering::Relaxed));
        decisions += 1;
        if admitted.iter().any(|id| id.as_str() == "q1") {
            behind = Some(decisions);
        }
    }
    Ok((behind.unwrap_or(u32::MAX), most))
}

/// After how many decisions one goes on that waits for the end of an execution that has ended, when it asks just after `starts`
/// names have appeared, for `each` of which each of as many others waited. And how many decisions there are until nothing is left.
///
/// # Errors
///
/// The error of the store.
pub fn decisions_of_a_dependent_behind_names(starts: u64, each: u64) -> Result<(u32, u32), StoreError> {
    let mut stream = Stream::new(1, 16)?;
    let ended = Text::from("ended");
    stream.keep(&ended, &ended, Status::Succeeded)?;
    for number in (0..starts).rev() {
        // The names of the others, so that nobody waits for itself.
        let id = Text::from(format!("w{number}"));
        stream.ask_names(&id, &id, number + each, each)?;
    }
    stream.decide()?;
    for number in 0..starts + each {
        stream.start_named(number)?;
    }
    stream.decide_once()?;
    let after = vec![Dependency {
        flow: None,
        execution: ended,
        any_end: false,
    }];
    let ask = Ask {
        after,
        ..ask_of(&"f".into(), starts)
    };
    let other = Text::from("other");
    let record = ExecutionRecord {
        flow: "f".into(),
        status: Status::Blocked,
        ..ExecutionRecord::default()
    };
    stream.tell(&other, 1, MessageBody::Ask(Box::new(ask)), Some(record))?;
    let (mut decisions, mut behind) = (0, None);
    while !stream.admission.is_idle() {
        let admitted = stream.decide_once()?;
        decisions += 1;
        if admitted.contains(&other) {
            behind = Some(decisions);
        }
    }
    Ok((behind.unwrap_or(u32::MAX), decisions))
}

/// How many rows of those who wait are read for each of `starts`, which come in a mixed order, when each waits for `each` of those
/// with smaller numbers.
///
/// # Errors
///
/// The error of the store.
pub fn rows_read_for_mixed_names(starts: u64, each: u64) -> Result<f64, StoreError> {
    let mut stream = Stream::new(1, 16)?;
    // No number divides both, so each comes once.
    let stride = starts / 2 + 1 + starts % 2;
    for nth in 0..starts {
        stream.ask_after(nth * stride % starts, each)?;
        if nth % 32 == 31 {
            stream.decide()?;
        }
    }
    stream.decide()?;
    Ok(stream.rows_read.load(Ordering::Relaxed) as f64 / starts as f64)
}

fn ask_of(flow: &Text, requested: u64) -> Ask {
    let requested = i64::try_from(requested).unwrap_or(i64::MAX);
    Ask {
        flow: flow.clone(),
        keys: Vec::new(),
        after: Vec::new(),
        priority: LAST,
        order: requested,
        requested: Timestamp(requested),
        ancestors: Vec::new(),
    }
}

struct Stream {
    reads: AtomicU64,
    rows_read: AtomicU64,
    store: MemoryStore,
    admission: Admission,
    limit: u64,
    asked: u64,
    running: VecDeque<Text>,
    findings: Findings,
}

impl Stream {
    fn new(limit: u64, fair_share: u32) -> Result<Self, StoreError> {
        let store = MemoryStore::new();
        let settings = AdmissionSettings {
            fair_share,
            ..AdmissionSettings::default()
        };
        let admission = Admission::resume(settings, &store)?;
        Ok(Self {
            reads: AtomicU64::new(0),
            rows_read: AtomicU64::new(0),
            store,
            admission,
            limit,
            asked: 0,
            running: VecDeque::new(),
            findings: Findings::default(),
        })
    }

    fn ask(&mut self, priority: u8) -> Result<Text, StoreError> {
        self.asked += 1;
        let id = Text::from(format!("q{}", self.asked));
        let key = PoolKey {
            pool: "shared".into(),
            key: "a".into(),
        };
        let ask = Ask {
            keys: vec![NeededKey { key, limit: self.limit }],
            priority,
            ..ask_of(&"f".into(), self.asked)
        };
        let record = ExecutionRecord {
            flow: "f".into(),
            name: id.clone(),
            status: Status::Queued,
            ..ExecutionRecord::default()
        };
        self.tell(&id, 1, MessageBody::Ask(Box::new(ask)), Some(record))?;
        Ok(id)
    }

    /// An execution asks that waits for `each` of those with smaller numbers, and appears under its name.
    fn ask_after(&mut self, number: u64, each: u64) -> Result<(), StoreError> {
        let id = Text::from(format!("e{number}"));
        self.ask_names(&id, &Text::from(format!("n{number}")), number, each)?;
        self.appear(id, number);
        Ok(())
    }

    /// An execution asks that waits for the names with `each` of the numbers before this one.
    fn ask_names(&mut self, id: &Text, name: &Text, number: u64, each: u64) -> Result<(), StoreError> {
        let flow = Text::from("f");
        let after = (number.saturating_sub(each)..number).map(|other| Dependency {
            flow: Some(flow.clone()),
            execution: format!("n{other}").into(),
            any_end: false,
        });
        let ask = Ask {
            after: after.collect(),
            ..ask_of(&flow, number)
        };
        let record = ExecutionRecord {
            flow,
            name: name.clone(),
            status: Status::Blocked,
            ..ExecutionRecord::default()
        };
        self.tell(id, 1, MessageBody::Ask(Box::new(ask)), Some(record))
    }

    /// An execution that waits for nothing runs under the name with this number.
    fn start_named(&mut self, number: u64) -> Result<(), StoreError> {
        let id = Text::from(format!("e{number}"));
        self.keep(&id, &Text::from(format!("n{number}")), Status::Running)?;
        self.appear(id, number);
        Ok(())
    }

    /// The store has an execution with this name and status, which asks for nothing.
    fn keep(&mut self, id: &Text, name: &Text, status: Status) -> Result<(), StoreError> {
        let record = ExecutionRecord {
            flow: "f".into(),
            name: name.clone(),
            status,
            ..ExecutionRecord::default()
        };
        let append = Append {
            execution: id.clone(),
            record: Some(record),
            request: RequestChange::Keep(String::new()),
            ..Append::default()
        };
        self.store.append(&[append])?;
        Ok(())
    }

    fn appear(&mut self, id: Text, number: u64) {
        let (flow, name) = (Text::from("f"), Text::from(format!("n{number}")));
        self.admission.deliver(Message {
            id: MessageId {
                from: id,
                event: EventId(1),
                to: ADMISSION.into(),
            },
            body: MessageBody::Appeared { flow, name },
        });
    }

    fn end(&mut self, id: &Text) -> Result<(), StoreError> {
        let status = Status::Succeeded;
        self.tell(id, 2, MessageBody::Ended { status }, None)
    }

    fn tell(
        &mut self,
        id: &Text,
        event: u64,
        body: MessageBody,
        record: Option<ExecutionRecord>,
    ) -> Result<(), StoreError> {
        let message = Message {
            id: MessageId {
                from: id.clone(),
                event: EventId(event),
                to: ADMISSION.into(),
            },
            body,
        };
        let begins = record.is_some();
        let append = Append {
            execution: id.clone(),
            record,
            request: match begins {
                true => RequestChange::Keep(String::new()),
                false => RequestChange::None,
            },
            sent: vec![message.clone()],
            ..Append::default()
        };
        self.store.append(&[append])?;
        self.admission.deliver(message);
        Ok(())
    }

    /// The executions that are admitted now.
    fn decide(&mut self) -> Result<Vec<Text>, StoreError> {
        let mut admitted = Vec::new();
        while !self.admission.is_idle() {
            admitted.extend(self.decide_once()?);
        }
        self.running.extend(admitted.iter().cloned());
        let running = u64::try_from(self.running.len()).unwrap_or(u64::MAX);
        if running > self.limit {
            self.findings.problem(format!("{running} run, and {} may", self.limit));
        }
        Ok(admitted)
    }

    /// What is decided before the next append.
    fn decide_once(&mut self) -> Result<Vec<Text>, StoreError> {
        let none = BTreeSet::new();
        let rows = Rows {
            reads: Some(&self.reads),
            rows_read: Some(&self.rows_read),
            ..Rows::new(&self.store, None, &none, false)
        };
        let append = self.admission.poll(&rows)?.append;
        let admits = append.sent.iter().filter(|sent| sent.body == MessageBody::Admit);
        let admitted = admits.map(|sent| sent.id.to.clone()).collect();
        self.store.append(&[append])?;
        self.admission.settle();
        Ok(admitted)
    }
}
