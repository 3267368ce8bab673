//! Requirements for every store: one suite for all, and random runs against the one in memory.

mod admissions;
mod appending;
mod bulk;
mod looking;
mod notices;
pub mod operating;
mod owning;
mod queueing;
pub mod random;
mod shards;
mod starts;

pub use queueing::task;

use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, Message, MessageBody, MessageId, Refusal, Store, Turn};

/// Opens a store; the second time, and later, the same one as it was left.
pub type Open<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// A store under test.
pub struct Tried<'a> {
    open: Option<Open<'a>>,
    /// None only while it is opened again.
    store: Option<Box<dyn Store>>,
}

impl<'a> Tried<'a> {
    /// A store that is tried as it is; with `again` it is closed and opened before each look.
    pub fn new(open: Open<'a>, again: bool) -> Self {
        Self {
            store: Some(open()),
            open: again.then_some(open),
        }
    }

    /// The store.
    pub fn store(&mut self) -> &dyn Store {
        if let Some(open) = self.open {
            // The one before must be closed first: a store has one owner.
            self.store = None;
            self.store = Some(open());
        }
        self.store.as_deref().expect("a store is open")
    }

    /// Appends what nothing may refuse.
    fn append(&mut self, batch: &[Append]) {
        assert_eq!(self.refused(batch), []);
    }

    /// Appends, and answers what was refused.
    fn refused(&mut self, batch: &[Append]) -> Vec<(usize, Refusal)> {
        self.store().append(batch).unwrap()
    }
}

/// One case.
pub type Case = (&'static str, fn(&mut Tried<'_>));

/// All cases. Each wants a store of its own.
pub fn cases() -> Vec<Case> {
    [
        admissions::CASES,
        appending::CASES,
        bulk::CASES,
        starts::CASES,
        looking::CASES,
        notices::CASES,
        operating::CASES,
        owning::CASES,
        queueing::CASES,
        shards::CASES,
    ]
    .concat()
}

/// A turn of so many events.
pub fn turn(first: u64, events: u32) -> Turn {
    Turn {
        first: EventId(first),
        events,
        time: Timestamp(1_000 + i64::try_from(first).unwrap()),
        text: format!("[\"{first}\",\"…\\u0000'\",{events}]"),
    }
}

/// The record of an execution of `order` that has just begun.
pub fn record(name: &str) -> ExecutionRecord {
    ExecutionRecord {
        flow: "order".into(),
        version: 1,
        name: name.into(),
        status: Status::Running,
        awake: true,
        started: Timestamp(1_000),
        ..ExecutionRecord::default()
    }
}

/// The start of an execution that is named after its id, with two events.
pub fn start(id: &str) -> Append {
    start_as(id, record(id))
}

/// The start of an execution with that record.
pub fn start_as(id: &str, record: ExecutionRecord) -> Append {
    Append {
        execution: id.into(),
        turn: Some(turn(1, 2)),
        record: Some(record),
        ..Append::default()
    }
}

/// A further turn.
pub fn more(id: &str, expected: u64, events: u32) -> Append {
    Append {
        execution: id.into(),
        expected: EventId(expected),
        turn: Some(turn(expected + 1, events)),
        ..Append::default()
    }
}

/// A message.
pub fn message(from: &str, event: u64, to: &str) -> Message {
    Message {
        id: MessageId {
            from: from.into(),
            event: EventId(event),
            to: to.into(),
        },
        body: MessageBody::GivenUp,
    }
}
