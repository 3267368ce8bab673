//! An execution in memory.

use super::tasks::UndecidedTask;
use starbridge_flow::graph::{Flow, Step, StepId, StepKind};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, OpenWait, OpenWaitKind, Parent, State, Status};
use starbridge_ports::{
    ExecutionRecord, FailedUndo, KeptRedrive, RecordedFailure, RecordedPause, RecordedWait, RequestChange,
    WaitingReason,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The status of an execution whose redrive waits.
const ASKING: Status = Status::Queued;

/// By default a checkpoint is due after this many events since the last one, and as many bytes of events as the last
/// one had.
pub(super) const CHECKPOINT_EVENTS: u64 = 256;

pub(super) struct LoadedExecution {
    pub(super) flow: Arc<Flow>,
    pub(super) state: State,
    pub(super) wakeup: Option<Timestamp>,
    pub(super) origin: Origin,
    /// The status as the store has it.
    pub(super) kept: Option<StoredStatus>,
    /// How many of its appends are not durable yet.
    pub(super) unsettled: u32,
    /// The bytes of these appends, as far as they are counted.
    pub(super) undurable_bytes: usize,
    /// Whether it is being deleted. Then nothing is appended to it any more.
    pub(super) deleted: bool,
    /// Whether calls to queues become tasks of queues.
    pub(super) queues: bool,
    /// Its calls that are tasks of queues, with the names of the queues.
    pub(super) queued: BTreeMap<EventId, Text>,
    /// The messages of its tasks that are prepared for the end of its pause.
    pub(super) prepared: BTreeMap<EventId, String>,
    /// Its tasks of queues that ended and whose consequence is not decided yet.
    pub(super) undecided: BTreeMap<EventId, UndecidedTask>,
    /// The calls of failed undos after which the current turn goes on.
    pub(super) undone_again: Vec<EventId>,
    /// The calls that are held back while it is paused.
    pub(super) held_back: BTreeSet<EventId>,
    /// Whether it is in the list of idle executions.
    pub(super) listed_idle: bool,
    /// Whether it is in the list of large ones.
    pub(super) listed_large: bool,
    /// The bytes of data that it holds, if it is large; 0 otherwise.
    pub(super) counted_bytes: usize,
    /// The bytes of its appends since that was looked at.
    pub(super) uncounted_bytes: usize,
    /// Whether a step of the flow expects heartbeats that are only known in memory.
    pub(super) heartbeats: bool,
    /// How often the process ended while it ran this execution, without a turn since; see [`starbridge_ports::Mark`].
    pub(super) attempts: u32,
    /// Its redrive, if that waits to be admitted. The execution has ended.
    pub(super) asking: Option<KeptRedrive>,
    /// The other definition of its waiting redrive, if the redrive names one.
    pub(super) other: Option<Box<Redefined>>,
    /// Whether admission must be told of its end.
    pub(super) watched: bool,
    /// The change that its next turn makes to its stored start or redrive.
    pub(super) change: RequestChange,
    /// Its last event when it was loaded from the store; 0 if it began here.
    pub(super) taken_up: EventId,
    events_since: u64,
    bytes_since: usize,
    checkpoint_bytes: usize,
}

/// A definition, and the state that a history folds to with it.
pub(super) struct Redefined {
    pub(super) flow: Arc<Flow>,
    pub(super) state: State,
}

/// The part of an execution's record that changes as it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredStatus {
    pub(super) status: Status,
    /// Whether it has something to do or has a call out.
    pub(super) awake: bool,
    /// When to wake it, if it sleeps.
    pub(super) wake_at: Option<Timestamp>,
    /// Whether it is paused.
    pub(super) paused: bool,
    /// What it waits for, if it sleeps and is not paused.
    pub(super) waits: Option<RecordedWait>,
}

/// The origin of an execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// The executions whose calls its values may refer to: itself and its ancestors, the nearest first, as far as
    /// executions may wait for one another.
    pub(super) family: Vec<Text>,
    /// The execution at the root of the family; `None` if it is this one.
    pub(super) root: Option<Text>,
    /// How many executions, one above the other, wait for this one.
    pub(super) depth: u32,
    /// Whether the parent waits for its end.
    pub(super) awaited: bool,
    /// The execution and event it goes on from, and since when, if it is a fork.
    pub(super) forked: Option<Parent>,
    pub(super) forked_time: Option<Timestamp>,
}

impl Origin {
    /// That of an execution with this record. `ancestors`: the nearest first, without the execution itself.
    pub(super) fn of_record(id: &Text, record: &ExecutionRecord, ancestors: impl IntoIterator<Item = Text>) -> Self {
        Self {
            family: [id.clone()].into_iter().chain(ancestors).collect(),
            root: record.root.clone(),
            depth: record.depth,
            awaited: record.awaited,
            forked: record.forked.clone(),
            forked_time: record.forked.as_ref().map(|_| record.started),
        }
    }
}

/// Whether a call of a step, or one that undoes it, may require heartbeats.
fn expects_heartbeats(step: &Step) -> bool {
    let StepKind::Task(task) = &step.kind else {
        return false;
    };
    let undo = task.rollback.as_ref().and_then(|rollback| rollback.heartbeat);
    // Values from the input are known only when the step is entered.
    task.heartbeat.or(undo).is_some() || step.settings.is_some()
}

impl LoadedExecution {
    pub(super) fn new(flow: Arc<Flow>, state: State, origin: Origin) -> Box<Self> {
        Box::new(Self {
            heartbeats: flow.steps.iter().any(expects_heartbeats),
            flow,
            state,
            wakeup: None,
            origin,
            kept: None,
            unsettled: 0,
            undurable_bytes: 0,
            deleted: false,
            queues: false,
            queued: BTreeMap::new(),
            prepared: BTreeMap::new(),
            undecided: BTreeMap::new(),
            undone_again: Vec::new(),
            held_back: BTreeSet::new(),
            listed_idle: false,
            listed_large: false,
            counted_bytes: 0,
            uncounted_bytes: 0,
            attempts: 0,
            asking: None,
            other: None,
            watched: false,
            change: RequestChange::None,
            taken_up: EventId(0),
            events_since: 0,
            bytes_since: 0,
            checkpoint_bytes: 0,
        })
    }

    /// Replaces its definition and state. Returns the former ones.
    pub(super) fn exchange(&mut self, with: Redefined) -> Redefined {
        Redefined {
            flow: std::mem::replace(&mut self.flow, with.flow),
            state: std::mem::replace(&mut self.state, with.state),
        }
    }

    /// Its current status. An execution that expects heartbeats stays awake, because they are only known in memory.
    pub(super) fn standing(&self) -> StoredStatus {
        if self.asking.is_some() {
            return StoredStatus {
                status: ASKING,
                awake: false,
                paused: false,
                wake_at: None,
                waits: None,
            };
        }
        let status = self.state.status();
        let expects = |call| {
            let call = self.state.call_to_send(&self.flow, call);
            call.is_some_and(|call| call.heartbeat.is_some() && !self.queued.contains_key(&call.call))
        };
        let paused = self.state.paused().is_some();
        let rests = self.state.is_asleep(self.queues) || paused && self.has_nothing_out();
        // Missed heartbeats do not count during a pause.
        let listens = self.heartbeats && !paused && self.state.calls_in_flight().any(expects);
        let awake = !status.is_ended() && (listens || !rests);
        let sleeps = !awake && !status.is_ended();
        StoredStatus {
            status,
            awake,
            paused,
            wake_at: self.state.next_wakeup().filter(|_| sleeps),
            waits: (sleeps && !paused).then(|| self.open_wait()).flatten(),
        }
    }

    /// What it waits for; of several waits, the one that most needs a person.
    fn open_wait(&self) -> Option<RecordedWait> {
        let is_manual = self.state.status() == Status::Manual;
        // Tasks that have just ended are still among them.
        let mut queued = self.queued.iter().filter(|(call, _)| self.state.is_in_flight(**call));
        if let Some((_, queue)) = queued.next().filter(|_| !is_manual) {
            return Some(RecordedWait {
                reason: WaitingReason::Queue,
                of: queue.clone(),
            });
        }
        let OpenWait { kind, of } = self.state.open_wait(&self.flow)?;
        let reason = match kind {
            OpenWaitKind::Manual => WaitingReason::Manual,
            OpenWaitKind::Callback => WaitingReason::Callback,
            OpenWaitKind::Child => WaitingReason::Child,
            OpenWaitKind::Retry => WaitingReason::Retry,
            OpenWaitKind::Poll => WaitingReason::Poll,
            OpenWaitKind::Timer => WaitingReason::Timer,
        };
        Some(RecordedWait { reason, of })
    }

    /// Whether all its calls that are still to be sent are held back, or wait in queues.
    fn has_nothing_out(&self) -> bool {
        let mut calls = self.state.calls_to_send_after(&self.flow, EventId(0));
        calls.all(|call| self.held_back.contains(&call.call) || self.queued.contains_key(&call.call))
    }

    /// Whether it can be left to the store: everything is durable, and it only waits or has ended. What is prepared for it
    /// would be lost.
    pub(super) fn is_idle(&self) -> bool {
        self.unsettled == 0
            && self.prepared.is_empty()
            && self.kept.as_ref().is_some_and(|kept| !kept.awake)
            && !self.state.must_continue()
    }

    /// Its record with this status.
    pub(super) fn record(&self, standing: &StoredStatus) -> ExecutionRecord {
        let Some(started) = self.state.started() else {
            return ExecutionRecord::default();
        };
        // A fork did not wait.
        let waited = started.terms.waited.as_ref();
        let waited = waited.filter(|_| self.origin.forked.is_none());
        let step = self.state.failed_at().and_then(|step| self.flow.step(step));
        let place = self.asking.as_ref().and_then(|asking| asking.place.as_ref());
        ExecutionRecord {
            flow: started.flow.clone(),
            version: started.version,
            name: started.name.clone(),
            status: standing.status,
            awake: standing.awake,
            wake_at: standing.wake_at,
            started: self.begun_at(),
            requested: waited.map(|waited| waited.requested_time),
            ended: standing.status.is_ended().then(|| self.state.last_time()),
            labels: started.labels.clone(),
            once_key: started.terms.once_key.clone(),
            priority: place.and_then(|place| place.priority).or(started.terms.priority),
            order_time: place.and_then(|place| place.order_time).or(started.terms.order_time),
            parent: started.parent.clone(),
            root: self.origin.root.clone(),
            depth: self.origin.depth,
            awaited: self.origin.awaited,
            failure: self.state.failure().map(|failure| RecordedFailure {
                error: failure.error.clone(),
                cause: failure.cause.clone(),
                step: step.map(|step| step.name.clone()).unwrap_or_default(),
            }),
            rollback: self.state.failed_rollback().map(|failed| FailedUndo {
                step: self.name_of(failed.step),
                error: failed.failure.error,
                cause: failed.failure.cause,
                left: failed.left.into_iter().map(|step| self.name_of(step)).collect(),
            }),
            watched: self.watched,
            forked: self.origin.forked.clone(),
            attempts: 0,
            broken: None,
            paused: self.state.paused().map(|paused| RecordedPause {
                since: paused.since,
                by: paused.by.clone(),
                cause: paused.cause.clone(),
            }),
            waits: standing.waits.clone(),
        }
    }

    /// When it began; a fork, when it was forked.
    pub(super) fn begun_at(&self) -> Timestamp {
        self.origin.forked_time.unwrap_or_else(|| self.state.started_time())
    }

    fn name_of(&self, step: StepId) -> Text {
        self.flow.step(step).map(|step| step.name.clone()).unwrap_or_default()
    }

    /// Counts a turn. Returns a checkpoint if one is due: checkpoints never take more bytes than the history, also where they
    /// repeat a large input for each task that could be undone.
    pub(super) fn count(&mut self, events: u64, bytes: usize, every: u64) -> Option<Vec<u8>> {
        self.events_since += events;
        self.bytes_since += bytes;
        let due = self.events_since >= every && self.bytes_since >= self.checkpoint_bytes;
        if !due || self.state.status().is_ended() {
            return None;
        }
        let repeated = self.state.repeated_bytes();
        if repeated > self.bytes_since {
            self.checkpoint_bytes = repeated;
            return None;
        }
        let checkpoint = self.state.checkpoint(&self.flow);
        self.noted_checkpoint(checkpoint.len());
        Some(checkpoint)
    }

    /// Records that there is a checkpoint of this size at the state's last event.
    pub(super) fn noted_checkpoint(&mut self, bytes: usize) {
        self.events_since = 0;
        self.bytes_since = 0;
        self.checkpoint_bytes = bytes;
    }
}
