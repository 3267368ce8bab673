//! Where histories are kept.

use crate::error::StoreError;
use crate::message::{Message, MessageId};
use crate::notices::KeptNotice;
use crate::queueing::{DeadTask, QueuedTask, TaskLeaseChange};
use serde::{Deserialize, Serialize};
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Text};
use starbridge_machine::{EventId, Parent, Status};

/// What one signal adds to one execution. All of it is kept, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Append {
    /// The execution.
    pub execution: Text,
    /// The number of the last event before these; another one there is a conflict. 0: the execution is new.
    pub expected: EventId,
    /// The events; none where only messages were dealt with.
    pub turn: Option<Turn>,
    /// What is known of the execution without reading its history, where that changed; a start has one. Flow, name, start,
    /// labels and origin of a later one are not looked at.
    pub record: Option<Record>,
    /// The state at the last of these events, to be kept in place of an earlier one.
    pub checkpoint: Option<Vec<u8>>,
    /// Messages to other executions: kept until they are dealt with.
    pub sent: Vec<Message>,
    /// Messages dealt with: kept no longer.
    pub received: Vec<MessageId>,
    /// Tasks of this execution that go into queues; one that is there already stays as it is.
    pub queued: Vec<QueuedTask>,
    /// Calls of this execution whose tasks leave their queues.
    pub unqueued: Vec<EventId>,
    /// Tasks of this execution that failed for good.
    pub dead: Vec<DeadTask>,
    /// Calls of this execution that are dead no longer; all of them, where it goes on.
    pub buried: DeadTasksCleared,
    /// What targets are to be told of this turn; what is kept for a target and an event already stays as it is.
    pub notices: Vec<KeptNotice>,
    /// Tasks taken or given back, of whatever executions; a task that is gone is passed over. An append that is nothing else
    /// names no execution.
    pub leases: Vec<TaskLeaseChange>,
}

/// Which dead tasks of an execution are no longer listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeadTasksCleared {
    /// None.
    #[default]
    None,
    /// Those of these calls.
    Calls(Vec<EventId>),
    /// All.
    All,
}

impl Append {
    /// Bytes it keeps in memory, but for what is small.
    pub fn bytes(&self) -> usize {
        let turn = self.turn.as_ref().map_or(0, |turn| turn.text.len());
        let checkpoint = self.checkpoint.as_ref().map_or(0, Vec::len);
        let queued: usize = self.queued.iter().map(|task| task.message.len()).sum();
        turn + checkpoint + queued
    }

    /// An append that only takes tasks or gives them back.
    pub fn of_leases(leases: Vec<TaskLeaseChange>) -> Self {
        Self {
            leases,
            ..Self::default()
        }
    }
}

/// The events of one turn, in the form `history::write_turn` of the machine makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Number of the first.
    pub first: EventId,
    /// How many there are; numbers are dense.
    pub events: u32,
    /// Time of all of them.
    pub time: Timestamp,
    /// The events.
    pub text: String,
}

impl Turn {
    /// Number of the last event.
    pub fn last(&self) -> EventId {
        EventId((self.first.0 + u64::from(self.events)).saturating_sub(1))
    }
}

/// What is known of an execution without reading its history. Written when it starts, falls asleep, wakes and ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The flow's name.
    pub flow: Text,
    /// Its version.
    pub version: u64,
    /// The execution's name, unique in its flow.
    pub name: Text,
    /// Where it stands.
    pub status: Status,
    /// Whether it is to be taken up at once after a restart: it has something to do or a call is out. One that sleeps
    /// waits for a time, a callback or a child.
    pub awake: bool,
    /// When one that sleeps is to be woken.
    pub wake_at: Option<Timestamp>,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Labels: string to string.
    pub labels: Option<Object>,
    /// Who started it, if an execution did.
    pub parent: Option<Parent>,
    /// The execution that began its family: its parent's root, or its parent, where that has none.
    pub root: Option<Text>,
    /// How many executions wait for one another down to this one: 0 where nobody waits for it.
    pub depth: u32,
    /// Whether the parent waits for its end.
    pub awaited: bool,
    /// Its error, where it ended unsuccessfully or is being undone.
    pub failure: Option<RecordedFailure>,
    /// What could not be undone, where it ended for that.
    pub rollback: Option<FailedUndo>,
    /// The execution and event it goes on from, if it is a fork.
    pub forked: Option<Parent>,
    /// How often the process came to its end while it had this execution and no turn of it became durable since; see [`Mark`].
    pub attempts: u32,
    /// Why nobody goes on with it until an operator says so.
    pub broken: Option<Broken>,
}

/// Why nobody goes on with an execution: going on with it failed in a way that is no error of its flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// Since when.
    pub since: Timestamp,
    /// What happened.
    pub cause: Text,
}

/// What is kept of how an execution can be gone on with, apart from its turns. A turn that brings a record takes all of it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The process came to its end while it had the execution: one attempt more, up to [`SUSPECT`].
    Failed,
    /// It is being gone on with alone: if the process comes to its end now, it was because of this one.
    Alone,
    /// It was, and the process is still there.
    Survived,
    /// It is set aside: it sleeps, and nothing wakes it.
    Broken(Broken),
    /// It is gone on with as if nothing had been.
    Whole,
}

/// From so many attempts on an execution is gone on with alone.
pub const SUSPECT: u32 = 2;
/// So many attempts say that the execution was gone on with alone when the process came to its end.
pub const CULPRIT: u32 = 3;

impl Mark {
    /// Makes of a record of an execution that has not ended what the mark says.
    pub fn change(&self, record: &mut Record) {
        match self {
            Self::Failed => record.attempts += u32::from(record.attempts < SUSPECT),
            Self::Alone => record.attempts = CULPRIT,
            Self::Survived => record.attempts = record.attempts.min(SUSPECT),
            Self::Broken(broken) => {
                record.attempts = 0;
                record.broken = Some(broken.clone());
                record.awake = false;
                record.wake_at = None;
            }
            Self::Whole => {
                record.attempts = 0;
                record.broken = None;
                record.awake = true;
                record.wake_at = None;
            }
        }
    }
}

/// All statuses there are, in an order that never changes: stores in files and tables keep a status by its place. Only added to.
pub const STATUSES: [Status; 10] = [
    Status::New,
    Status::Running,
    Status::Manual,
    Status::RollingBack,
    Status::Succeeded,
    Status::Failed,
    Status::TimedOut,
    Status::Stopped,
    Status::RollbackFailed,
    Status::RolledBack,
];

/// The place of a status among [`STATUSES`].
pub fn code_of(status: Status) -> usize {
    STATUSES.iter().position(|&known| known == status).unwrap_or(0)
}

impl Record {
    /// The record a start brings. One without a name is named after its id.
    #[must_use]
    pub fn at_start(mut self, id: &Text) -> Self {
        if self.name.is_empty() {
            self.name = id.clone();
        }
        self.labels = self.labels.filter(|labels| !labels.is_empty());
        self
    }

    /// Takes what a later record changes: flow, name, beginning, labels and origin stay as they were at the start.
    pub fn take_changes(&mut self, later: &Self) {
        self.version = later.version;
        self.status = later.status;
        self.awake = later.awake;
        self.wake_at = later.wake_at;
        self.ended = later.ended;
        self.awaited = later.awaited;
        self.failure.clone_from(&later.failure);
        self.rollback.clone_from(&later.rollback);
        self.attempts = later.attempts;
        self.broken.clone_from(&later.broken);
    }
}

/// Why an execution did not succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFailure {
    /// The error's name.
    pub error: Text,
    /// Its cause.
    pub cause: Text,
    /// The step it arose in; empty where it arose in none.
    pub step: Text,
}

/// What could not be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedUndo {
    /// The step whose task could not be undone.
    pub step: Text,
    /// The name of the error with which undoing it failed.
    pub error: Text,
    /// Its cause.
    pub cause: Text,
    /// The steps that are left to be undone, in that order; the one that could not be is the first.
    pub left: Vec<Text>,
}

/// Why an append was left out. Everything else of its batch was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is an execution of that id, or of that name in that flow: this one.
    Exists {
        /// Its id.
        execution: Text,
        /// The version of the flow it runs.
        version: u64,
    },
    /// The history has gone on meanwhile, or the execution's start was refused before.
    Conflict,
}

/// A history as it is kept.
#[derive(Clone, Debug, Default)]
pub struct StoredHistory {
    /// What is known without reading.
    pub record: Record,
    /// The latest checkpoint and the event it stands at.
    pub checkpoint: Option<(EventId, Vec<u8>)>,
    /// The turns after that, in order; all where there is no checkpoint.
    pub turns: Vec<Turn>,
    /// Messages to it that are not dealt with, in a store that gives executions to one process at a time; others tell them all
    /// at once ([`History::messages`]).
    pub mail: Vec<Message>,
}

/// Keeps histories.
pub trait History: Send + Sync {
    /// Appends in one go: what was not refused is durable when it returns, all of it or, on an error, nothing.
    /// Answers the refusals by their position in the batch, in order. After a refusal all that follows in the batch for the
    /// same execution is refused too. After an error in flushing the store takes nothing more until it is opened anew.
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError>;
    /// What is needed to go on with an execution; nothing for one that is not there.
    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError>;
    /// The same from the first event on, without a checkpoint.
    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError>;
    /// The execution that started this one, if one did and this one is there.
    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError>;
    /// All executions that are awake, by id.
    fn awake(&self) -> Result<Vec<Text>, StoreError>;
    /// Executions asleep that are to be woken before that time, the earliest first, at most so many.
    fn due(&self, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError>;
    /// Marks executions; those that are not there or have ended are passed over. It is durable when this returns.
    fn mark(&self, marks: &[(Text, Mark)]) -> Result<(), StoreError>;
    /// All messages not dealt with, in the order they were sent.
    fn messages(&self) -> Result<Vec<Message>, StoreError>;
}
