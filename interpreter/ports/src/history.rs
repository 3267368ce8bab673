//! The port for histories.

use crate::admission::{ADMISSION, AdmissionChange};
use crate::audit::AuditEntry;
use crate::epochs::{Epoch, Epochs};
use crate::error::StoreError;
use crate::message::{Message, MessageId};
use crate::notices::KeptNotice;
use crate::owning::Owning;
use crate::queueing::{DeadTask, QueuedTask, TaskLeaseChange};
use crate::shards::ShardSet;
use crate::turn::Turn;
use crate::waiting_reason::RecordedWait;
use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent, Status};

/// What one signal adds to one execution. It is stored whole or not at all.
#[derive(Clone, Debug, Default)]
pub struct Append {
    /// The id of the execution.
    pub execution: Text,
    /// The number of the last event before these; if the history has another one, that is a conflict. 0: the
    /// execution is new.
    pub expected: EventId,
    /// Under which epoch whoever appends has the shard of the execution; [`Epoch::NONE`] if shards have no owners. If the
    /// shard has another one now, the append is refused as [`Refusal::Fenced`].
    pub epoch: Epoch,
    /// The events; `None` if only messages were handled.
    pub turn: Option<Turn>,
    /// What is known of the execution without reading its history, if that changed. A start always has one. Of a
    /// later one, the store ignores flow, name, start, labels and origin.
    pub record: Option<ExecutionRecord>,
    /// Whether a start is kept until it is carried out, or is carried out now.
    pub request: RequestChange,
    /// The state at the last of these events. It replaces an earlier checkpoint.
    pub checkpoint: Option<Vec<u8>>,
    /// Messages to other executions. They are stored until they are handled.
    pub sent: Vec<Message>,
    /// Messages that were handled. They are deleted.
    pub received: Vec<MessageId>,
    /// Tasks of this execution to put into queues. One that is there already stays unchanged.
    pub queued: Vec<QueuedTask>,
    /// Calls of this execution whose tasks are removed from their queues.
    pub unqueued: Vec<EventId>,
    /// Calls of this execution whose tasks are removed from their queues unless workers hold them.
    pub withdrawn: Vec<EventId>,
    /// Tasks of this execution that failed for good.
    pub dead: Vec<DeadTask>,
    /// Which dead tasks of this execution are no longer listed.
    pub dead_cleared: DeadTasksCleared,
    /// Notices to targets about this turn. If one is stored for the same target and event, that one stays unchanged.
    pub notices: Vec<KeptNotice>,
    /// Leases of tasks that workers took or gave back, of any execution. A task that is gone is ignored. An append
    /// with nothing else names no execution.
    pub leases: Vec<TaskLeaseChange>,
    /// Changes to what admission keeps. An append of admission names no execution.
    pub admission: Vec<AdmissionChange>,
    /// The logs of the attempts that this turn ends. A store may leave them out, see
    /// [`Listing::logs`](crate::Listing).
    pub logs: Vec<AttemptLog>,
    /// Entries for what operators do with this append. They are added to the audit list.
    pub audit: Vec<AuditEntry>,
    /// Set if the execution is deleted, with everything that belongs to it, including messages and notices to others
    /// about it, but not messages it sent. The execution has ended. Such an append has no other
    /// content than `audit`.
    pub deleted: bool,
}

/// How many bytes of the log of an attempt are kept, from the end.
pub const LOG_BYTES: usize = 64 * 1024;

/// What the program of an attempt printed on stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptLog {
    /// The number of the event with which the call ended.
    pub event: EventId,
    /// The end of it, at most [`LOG_BYTES`].
    pub text: String,
}

impl AttemptLog {
    /// The log with the end of this text.
    pub fn of(event: EventId, mut text: String) -> Self {
        if text.len() > LOG_BYTES {
            let from = text.len() - LOG_BYTES;
            let from = (from..text.len()).find(|at| text.is_char_boundary(*at));
            text.drain(..from.unwrap_or(0));
        }
        Self { event, text }
    }
}

/// What an append does to the start of an execution that begins later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestChange {
    /// Nothing.
    #[default]
    None,
    /// The execution is new and has no history yet: the append has a record and no turn. The text says how it begins.
    Keep(String),
    /// The execution exists and waits to begin, or to go on. The text says how, and replaces the
    /// one before.
    Replace(String),
    /// The turn carries out the kept request. The text is deleted, and the record also says when
    /// the execution began.
    Begin,
    /// The kept request is not carried out. The text is deleted.
    Drop,
}

/// Which dead tasks of an execution are no longer listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeadTasksCleared {
    /// They stay listed.
    #[default]
    None,
    /// Those of these calls.
    Calls(Vec<EventId>),
    /// The list is emptied.
    All,
}

impl Append {
    /// The bytes it keeps in memory, without small members.
    pub fn bytes(&self) -> usize {
        let turn = self.turn.as_ref().map_or(0, |turn| turn.text.len());
        let checkpoint = self.checkpoint.as_ref().map_or(0, Vec::len);
        let queued: usize = self.queued.iter().map(|task| task.message.len()).sum();
        let request = match &self.request {
            RequestChange::Keep(text) | RequestChange::Replace(text) => text.len(),
            RequestChange::None | RequestChange::Begin | RequestChange::Drop => 0,
        };
        let logs: usize = self.logs.iter().map(|log| log.text.len()).sum();
        turn + checkpoint + queued + request + logs
    }

    /// Whether an append of admission has nothing in it.
    pub fn changes_nothing_of_admission(&self) -> bool {
        self.admission.is_empty() && self.sent.is_empty() && self.received.is_empty() && self.audit.is_empty()
    }

    /// Whether it is of whoever has the shard of its execution under these epochs. One that names no execution is of no shard.
    pub fn is_of_owner(&self, epochs: &Epochs) -> bool {
        self.execution.is_empty() || epochs.of_execution(&self.execution) == self.epoch
    }

    /// Whether its turn, if it has one, begins after the expected event, and the history then has at most `most` events. A store
    /// refuses any other append as a conflict.
    pub fn continues(&self, most: u64) -> bool {
        self.turn.as_ref().is_none_or(|turn| {
            turn.events > 0
                && turn.first == self.expected.next()
                && self.expected.0.saturating_add(u64::from(turn.events)) <= most
        })
    }

    /// Whether it is the start of an execution that is not there yet.
    pub fn is_start(&self) -> bool {
        self.expected == EventId(0)
            && match &self.request {
                RequestChange::None => self.turn.is_some(),
                RequestChange::Keep(_) => true,
                RequestChange::Replace(_) | RequestChange::Begin | RequestChange::Drop => false,
            }
    }

    /// An append with nothing but leases.
    pub fn of_leases(leases: Vec<TaskLeaseChange>) -> Self {
        Self {
            leases,
            ..Self::default()
        }
    }
}

/// What is known of an execution without reading its history. The runtime writes it when the execution starts, falls
/// asleep, wakes and ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionRecord {
    /// The flow's name.
    pub flow: Text,
    /// The version of the flow.
    pub version: u64,
    /// The name of the execution, unique in its flow.
    pub name: Text,
    /// The status of the execution.
    pub status: Status,
    /// Whether a restart resumes it at once: it has something to do, or a call is out. An execution that is asleep
    /// waits for a time, a callback or a child.
    pub awake: bool,
    /// When to wake an execution that is asleep.
    pub wake_at: Option<Timestamp>,
    /// When the execution began; while it waits to begin, when it was requested.
    pub started: Timestamp,
    /// When it was requested, if it did not begin at once.
    pub requested: Option<Timestamp>,
    /// When the execution ended.
    pub ended: Option<Timestamp>,
    /// Labels, string to string.
    pub labels: Option<Object>,
    /// No other execution of the flow is started with this key.
    pub once_key: Option<Text>,
    /// From 0 to 9, 9 first; `None` if the start did not set it.
    pub priority: Option<u8>,
    /// Within a priority the smaller goes first; `None` if the start did not set it.
    pub order_time: Option<i64>,
    /// The execution and call that started this one.
    pub parent: Option<Parent>,
    /// The execution at the root of its family; `None` if it is the root itself.
    pub root: Option<Text>,
    /// How many executions, one above the other, wait for this one; 0 if none does.
    pub depth: u32,
    /// Whether the parent waits for the end of this execution.
    pub awaited: bool,
    /// The error of an execution that ended without success or is being undone.
    pub failure: Option<RecordedFailure>,
    /// What could not be undone, if the execution ended for that reason.
    pub rollback: Option<FailedUndo>,
    /// Whether admission must be told of its end.
    pub watched: bool,
    /// The execution and event it goes on from, if it is a fork.
    pub forked: Option<Parent>,
    /// How often the process ended while it ran this execution, without a durable turn of it since; see [`Mark`].
    pub attempts: u32,
    /// Set if the execution is set aside until an operator releases it.
    pub broken: Option<Broken>,
    /// Set while it is paused.
    pub paused: Option<RecordedPause>,
    /// What it waits for while it is asleep and has begun.
    pub waits: Option<RecordedWait>,
}

/// Why an execution is set aside: running it failed in a way that is not an error of its flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// When it was set aside.
    pub since: Timestamp,
    /// What happened, for people.
    pub cause: Text,
}

/// A change to the run state of an execution that is stored apart from its turns. A turn with a record resets all of
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The process ended while it ran the execution. Adds one attempt, up to [`SUSPECT`].
    Failed,
    /// The execution runs alone now. Adds one attempt to at least [`SUSPECT`]: if the process ends now, it stays.
    Alone,
    /// The execution ran alone, and the process survived. Takes back what [`Mark::Alone`] added.
    Survived,
    /// The execution is set aside: it is asleep, and nothing wakes it.
    Broken(Broken),
    /// The execution runs normally again.
    Whole,
}

/// From this many attempts on, an execution runs alone.
pub const SUSPECT: u32 = 2;
/// This many attempts mean that the process ended twice while the execution ran alone. One such end proves nothing:
/// the process may have been killed at that moment.
pub const CULPRIT: u32 = SUSPECT + 2;

impl Mark {
    /// Applies the mark to the record of an execution that has not ended.
    pub fn change(&self, record: &mut ExecutionRecord) {
        match self {
            Self::Failed => record.attempts += u32::from(record.attempts < SUSPECT),
            Self::Alone => record.attempts = record.attempts.max(SUSPECT) + 1,
            Self::Survived => record.attempts -= u32::from(record.attempts > SUSPECT),
            Self::Broken(broken) => {
                record.attempts = 0;
                record.broken = Some(broken.clone());
                record.awake = false;
                record.wake_at = None;
                record.waits = None;
            }
            Self::Whole => {
                record.attempts = 0;
                record.broken = None;
                record.awake = true;
                record.wake_at = None;
                record.waits = None;
            }
        }
    }
}

/// All statuses, in an order that never changes, because stores write a status as its position here. New ones go to
/// the end.
pub const STATUS_CODES: [Status; 13] = [
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
    Status::Delayed,
    Status::Blocked,
    Status::Queued,
];

/// The position of a status in [`STATUS_CODES`].
pub fn code_of(status: Status) -> usize {
    STATUS_CODES.iter().position(|&known| known == status).unwrap_or(0)
}

/// Whether an execution with this status code has ended.
pub fn is_ended_code(code: usize) -> bool {
    STATUS_CODES.get(code).is_some_and(|status| status.is_ended())
}

impl ExecutionRecord {
    /// Completes the record of a start: an execution without a name gets its id as name, and empty labels are
    /// dropped.
    #[must_use]
    pub fn at_start(mut self, id: &Text) -> Self {
        if self.name.is_empty() {
            self.name = id.clone();
        }
        self.labels = self.labels.filter(|labels| !labels.is_empty());
        self
    }

    /// When it was requested.
    pub fn asked(&self) -> Timestamp {
        self.requested.unwrap_or(self.started)
    }

    /// Takes over the changes of the first turn's record, if the start was kept until then.
    pub fn take_beginning(&mut self, first: &Self) {
        self.take_changes(first);
        self.started = first.started;
    }

    /// Takes over the changes of a later record. Flow, name, start, labels and origin stay as they
    /// are.
    pub fn take_changes(&mut self, later: &Self) {
        self.version = later.version;
        self.status = later.status;
        self.awake = later.awake;
        self.wake_at = later.wake_at;
        self.ended = later.ended;
        self.awaited = later.awaited;
        self.watched = later.watched;
        self.priority = later.priority;
        self.order_time = later.order_time;
        self.failure.clone_from(&later.failure);
        self.rollback.clone_from(&later.rollback);
        self.attempts = later.attempts;
        self.broken.clone_from(&later.broken);
        self.paused.clone_from(&later.paused);
        self.waits.clone_from(&later.waits);
    }
}

/// The error of an execution that did not succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFailure {
    /// The name of the error.
    pub error: Text,
    /// What happened, for people.
    pub cause: Text,
    /// The name of the step in which the error arose; empty if it arose in none.
    pub step: Text,
}

/// A pause as a record has it: since when, by whom and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPause {
    /// When it began.
    pub since: Timestamp,
    /// The name of the operator; empty if it is not known.
    pub by: Text,
    /// Why, for people.
    pub cause: Text,
}

/// What could not be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedUndo {
    /// The step whose task could not be undone.
    pub step: Text,
    /// The name of the error with which undoing it failed.
    pub error: Text,
    /// What people read of the error.
    pub cause: Text,
    /// The steps that are left to be undone, in the order of undoing. The first one is the step
    /// that could not be undone.
    pub left: Vec<Text>,
}

/// Why an append of a batch was refused. The rest of the batch was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An execution with that id, or with that name or `once_key` in that flow, exists. The one with the `once_key`
    /// goes first.
    Exists {
        /// The id of the existing execution.
        execution: Text,
        /// The version of the flow that it runs.
        version: u64,
        /// Its name, if it is the one with the `once_key`.
        keyed: Option<Text>,
    },
    /// The history has another last event, or an earlier append of this batch for the execution was refused.
    Conflict,
    /// Whoever appends does not have the shard of the execution, or no longer: another one may go on with it. Goes before
    /// every other refusal.
    Fenced,
}

/// Histories that are read one after the other are given away once they have so many bytes together.
const LOADED_BYTES: usize = 1 << 20;

/// What [`History::load`] answers.
pub type Loading = Result<Option<StoredHistory>, StoreError>;

/// A history as it is loaded.
#[derive(Clone, Debug, Default)]
pub struct StoredHistory {
    /// What is known of the execution without reading its history.
    pub record: ExecutionRecord,
    /// The latest checkpoint, and the number of its last event.
    pub checkpoint: Option<(EventId, Vec<u8>)>,
    /// The turns after the checkpoint, in order; all turns if there is none.
    pub turns: Vec<Turn>,
    /// How the execution begins or goes on, if it waits for that: the text of
    /// [`RequestChange::Keep`] or [`RequestChange::Replace`].
    pub request: Option<String>,
    /// Messages to the execution that are not handled. Only stores that lease executions to one process at a time
    /// fill this; others give all messages at once ([`History::messages`]).
    pub messages: Vec<Message>,
}

impl StoredHistory {
    /// Whether the execution has not begun.
    pub fn has_not_begun(&self) -> bool {
        self.turns.is_empty() && self.checkpoint.is_none() && self.record.status.is_before_start()
    }

    /// How many bytes of text it has.
    fn text_bytes(&self) -> usize {
        let turns: usize = self.turns.iter().map(|turn| turn.text.len()).sum();
        let checkpoint = self.checkpoint.as_ref().map_or(0, |(_, text)| text.len());
        turns + checkpoint + self.request.as_ref().map_or(0, String::len)
    }
}

/// Stores histories.
///
/// A runtime calls it in this order: [`History::awake`] and [`History::messages`] at the start, [`History::load`] for
/// each execution it takes up, [`History::append`] for each batch of turns, and [`History::due`] when time has
/// passed.
pub trait History: Send + Sync {
    /// Whether the store can't be reached just now, and comes back by itself: requests are better turned away until then.
    fn is_away(&self) -> bool {
        false
    }

    /// Whether what was acknowledged may be lost with a machine, because a copy that is behind may take over. A store
    /// without copies loses nothing that way.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    fn may_lose(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Who has which shard, if the store keeps that. If it does not, no append has an epoch.
    fn owning(&self) -> Option<&dyn Owning> {
        None
    }

    /// Appends a batch atomically: when it returns, everything that was not refused is durable; on an error, nothing
    /// is. Returns the refusals, each with its position in the batch, in order. After a refusal, everything later in
    /// the batch for the same execution is refused too.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the batch could not be written. If flushing failed, the store accepts nothing
    /// more until it is opened again. [`StoreError::Corrupt`] if what is stored can't be read.
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError>;

    /// What is needed to go on with an execution; `None` if there is no such execution.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] if another process holds it, [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn load(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError>;

    /// What [`History::load`] answers for each of these executions, in their order; none is named twice. A store behind a network is
    /// asked for all of them at once. A store that reads one after the other answers for the first ones only, at least one, if
    /// these are large: the others are asked for again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]. What keeps one execution from being loaded is its own answer.
    fn load_many(&self, executions: &[Text]) -> Result<Vec<Loading>, StoreError> {
        let mut all = Vec::with_capacity(executions.len());
        let mut bytes = 0;
        for execution in executions {
            let loading = self.load(execution);
            if let Err(StoreError::Unavailable(why)) = loading {
                return Err(StoreError::Unavailable(why));
            }
            if let Ok(Some(stored)) = &loading {
                bytes += stored.text_bytes();
            }
            all.push(loading);
            if bytes >= LOADED_BYTES {
                break;
            }
        }
        Ok(all)
    }

    /// The history from the first event on, without a checkpoint; `None` if there is no such execution.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError>;

    /// The id of the execution that started this one, if one did and this one exists.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError>;

    /// The ids of all executions of these shards that are awake, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError>;

    /// Executions of these shards that sleep and are to be woken before a time, the earliest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError>;

    /// Marks executions, durably when it returns. Executions that do not exist or have ended are
    /// skipped. If an operator asked for the mark, `audit` is its entry.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError>;

    /// The messages to these receivers that are not handled, in the order in which they were sent. There may be a million for
    /// admission, which nobody else should read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError>;
}

/// Whose messages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// Admission and all executions.
    All,
    /// Admission, and no execution.
    Admission,
    /// The executions of these shards.
    Executions(ShardSet),
}

impl Receivers {
    /// Whether a receiver is one of them: admission, or the id of an execution.
    pub fn have(&self, receiver: &str) -> bool {
        match self {
            Self::All => true,
            Self::Admission => receiver == ADMISSION,
            Self::Executions(shards) => receiver != ADMISSION && shards.has_execution(receiver),
        }
    }
}
