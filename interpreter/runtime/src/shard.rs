//! A shard: the single-threaded owner of executions. [`Shard`] describes the order of calls.

mod admission;
mod batch;
mod child_names;
mod child_terms;
mod children;
mod execution_ids;
mod forks;
mod handed_down;
mod held_off;
mod idle;
mod loaded;
mod messages;
mod notices;
mod operating;
mod ownership;
mod pausing;
mod posted;
mod recover;
mod redefine;
mod redrives;
mod set_aside;
mod start_request;
mod tasks;
#[cfg(test)]
mod tests;
mod waiting;
mod wakeups;

pub use admission::check_keys;
pub(crate) use admission::ended_message;
pub(crate) use batch::stored_turn;
pub use execution_ids::{ExecutionSeed, child_id};
pub use forks::{ForkFailure, ForkRequest};
pub(crate) use idle::LARGE_BYTES;
pub use notices::{StatusChange, StepEvent};
pub use operating::NotEnded;
pub use recover::{Loaded, load};
pub(crate) use recover::{fold_up, kept_fork};
pub use redefine::RedefineRequest;
pub(crate) use set_aside::MAX_TRIES;
pub use start_request::{StartError, StartRequest, StartTime};
pub use waiting::kept_input;

use crate::admission::AdmissionHandle;
use crate::flows::{FlowTable, is_flow_of_messages};
use crate::queues::FairQueue;
use crate::resources::ResourceMap;
use crate::suspect_lock::SuspectLock;
use admission::needed_keys;
use children::Incoming;
use execution_ids::IdSource;
use idle::IdleLists;
use loaded::LoadedExecution;
use starbridge_flow::graph::{FaultKind, Flow};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{CallToSend, Event, EventId, Rejection, Signal, StartRecord, State, Status};
use starbridge_ports::{
    Append, AuditEntry, Epochs, ExecutionRecord, KeptStart, Message, MessageId, QueuedTask, Refusal, SUSPECT, ShardSet,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use waiting::WaitingStart;

/// The bytes of cut turns that are continued at a time. A start that comes meanwhile waits behind
/// them.
const CONTINUED_BYTES: usize = 1024 * 1024;

/// Whether a call is answered from outside, regardless of its resource.
type InterceptCall = Box<dyn Fn(&StartRecord, &CallToSend) -> bool + Send>;

/// Owns executions and does no I/O. Signals go in; batches to append and, once they are durable, calls and answers
/// come out. The code that drives it is its host.
///
/// Call it in this order:
///
/// 1. [`Shard::new`], then the settings that are needed, for example [`Shard::queue_tasks`] and
///    [`Shard::checkpoint_every`].
/// 2. [`Shard::recover`] with what [`load`] gives, and [`Shard::redeliver`] with the messages of the store.
/// 3. For each input: [`Shard::start`], [`Shard::fork`], [`Shard::signal`], and
///    [`Shard::fire_next`] when [`Shard::next_wakeup`] is due.
/// 4. [`Shard::pump`]. [`PumpResult::Decided`]: take [`Shard::take_batch`] and append it. [`PumpResult::Missing`]: recover that
///    execution, or call [`Shard::absent`], or [`Shard::elsewhere`] if another process has it; then pump again.
///    [`PumpResult::Idle`]: nothing can be done now.
/// 5. [`Shard::committed`] once a batch is durable, with its refusals. Several batches may be in flight; they are
///    committed in the order in which they were taken.
/// 6. [`Shard::take_outgoing`]: calls to send and answers to give. These may leave, because the
///    decisions behind them are durable.
/// 7. [`Shard::trim`] from time to time, to leave executions that only wait to the store.
///
/// The other methods only read, for example [`Shard::state`], [`Shard::flow`] and
/// [`Shard::record`]. They show decisions that may not be durable yet.
pub struct Shard {
    flows: FlowTable,
    resources: ResourceMap,
    limits: Arc<Limits>,
    id_source: IdSource,
    /// The shards of the store whose executions belong here.
    shards: ShardSet,
    /// Under which epochs they are had, if the store keeps who has them.
    epochs: Epochs,
    /// Shards that another owner has: an append for them was refused.
    fenced: ShardSet,
    /// The rounds of worker queues, if there are queues.
    fair_queue: Option<Arc<FairQueue>>,
    /// Selects calls of child flows that are answered from outside.
    outside: Option<InterceptCall>,
    /// Makes the notices about status changes, if anybody wants them.
    tell: Option<notices::NoticeSource>,
    tell_steps: Option<notices::StepNoticeSource>,
    checkpoint_events: u64,
    /// Whether other processes also notice missed heartbeats, so that an execution that expects them may sleep.
    heartbeats_elsewhere: bool,
    /// In boxes, because the tree moves its entries whenever one is added or removed.
    executions: BTreeMap<Text, Box<LoadedExecution>>,
    /// Executions that wait to begin and were requested just now.
    waiting: BTreeMap<Text, WaitingStart>,
    large_waiting: BTreeMap<Text, usize>,
    /// Calls whose step waits for a child to end.
    sync_calls: BTreeSet<(Text, EventId)>,
    /// By child: the call that waits for the child's rollback.
    undoing: BTreeMap<Text, (Text, EventId)>,
    inbox: VecDeque<(Text, Incoming)>,
    held_off: held_off::HeldOff,
    continuing: VecDeque<Text>,
    wakeups: BTreeSet<(Timestamp, Text)>,
    pending: Vec<Append>,
    /// How much of it is counted.
    counted: batch::CountedPending,
    held: Vec<Outgoing>,
    in_flight: VecDeque<batch::InFlightBatch>,
    outgoing: VecDeque<Outgoing>,
    /// Executions that only wait.
    idle: IdleLists,
    /// The bytes of data that the large ones of `executions` hold.
    loaded_bytes: usize,
    /// Executions that have ended.
    ended: Vec<Text>,
    /// An execution that does not exist but for which there is something.
    absent: Option<Text>,
    /// Executions whose histories were extended elsewhere.
    lost: Vec<Text>,
    /// Executions that are set aside.
    aside: BTreeMap<Text, set_aside::SetAside>,
    /// How often in a row each execution panicked.
    tries: BTreeMap<Text, u32>,
    /// Executions that panicked and still have calls out.
    panicked: Vec<Text>,
    /// Runs suspects one at a time, if the store outlives the process.
    alone: Option<Arc<SuspectLock>>,
    /// The audit entry of the next append, if an operator caused it.
    audited: Option<AuditEntry>,
    /// Decides when waiting executions may run, if there is admission.
    admission: Option<AdmissionHandle>,
    /// The largest number under which a redrive asked admission.
    last_ask: u64,
    /// The log of the attempt that the current signal ends.
    logged: Option<String>,
}

/// What may leave a shard once the decision behind it is durable.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// An execution has begun.
    Started {
        /// The id of the execution.
        execution: Text,
        /// The status after its first turn.
        status: Status,
    },
    /// The start of an execution that waits to begin is kept.
    Requested {
        /// The id of the execution.
        execution: Text,
    },
    /// An execution could not begin.
    Refused {
        /// The id it would have had.
        execution: Text,
        /// The reason.
        refusal: Refusal,
    },
    /// A call has to be sent.
    Send {
        /// The id of the execution it belongs to.
        execution: Text,
        /// The call, ready to become a request.
        call: Box<CallToSend>,
    },
    /// A call is given up.
    Cancel {
        /// The id of the execution it belongs to.
        execution: Text,
        /// The number of the call.
        call: EventId,
    },
    /// A task was put into its queue.
    Queued(Box<QueuedTask>),
    /// A task was removed from its queue.
    Unqueued {
        /// The name of the queue.
        queue: Text,
        /// The id of the execution it belongs to.
        execution: Text,
        /// The number of the call.
        call: EventId,
    },
    /// A task left its queue until its execution goes on, unless a worker holds it.
    Withdrawn {
        /// The name of the queue.
        queue: Text,
        /// The id of the execution it belongs to.
        execution: Text,
        /// The number of the call.
        call: EventId,
    },
    /// A turn is in the history.
    Turn {
        /// The id of the execution it belongs to.
        execution: Text,
        /// The events of the turn.
        events: Vec<Event>,
    },
    /// The turn left a notice for a target.
    Noticed {
        /// The id of the execution.
        execution: Text,
    },
    /// The execution has ended. A redrive may let it go on.
    Ended {
        /// The id of the execution.
        execution: Text,
        /// One that says how.
        status: Status,
    },
    /// A message for another execution of this shard. The shard delivers it itself.
    Message(Message),
    /// Everything that was decided before [`Shard::mark`] was called with this number is durable.
    Mark(u64),
}

/// The result of [`Shard::pump`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PumpResult {
    /// There is a batch to append.
    Decided,
    /// This execution has to be recovered, or reported with [`Shard::absent`] or [`Shard::elsewhere`].
    Missing(Text),
    /// Nothing can be done now.
    Idle,
}

impl Shard {
    /// A shard without executions. `id_source` gives ids and seeds and is the only source of both.
    pub fn new(
        flows: FlowTable,
        resources: ResourceMap,
        limits: Arc<Limits>,
        id_source: impl FnMut(&StartRequest, Timestamp) -> ExecutionSeed + Send + 'static,
    ) -> Self {
        Self {
            flows,
            resources,
            limits,
            id_source: Box::new(id_source),
            shards: ShardSet::ALL,
            epochs: Epochs::default(),
            fenced: ShardSet::NONE,
            fair_queue: None,
            outside: None,
            tell: None,
            tell_steps: None,
            checkpoint_events: loaded::CHECKPOINT_EVENTS,
            heartbeats_elsewhere: false,
            executions: BTreeMap::new(),
            waiting: BTreeMap::new(),
            large_waiting: BTreeMap::new(),
            sync_calls: BTreeSet::new(),
            undoing: BTreeMap::new(),
            inbox: VecDeque::new(),
            held_off: held_off::HeldOff::default(),
            continuing: VecDeque::new(),
            wakeups: BTreeSet::new(),
            pending: Vec::new(),
            counted: batch::CountedPending::default(),
            held: Vec::new(),
            in_flight: VecDeque::new(),
            outgoing: VecDeque::new(),
            idle: IdleLists::default(),
            loaded_bytes: 0,
            ended: Vec::new(),
            absent: None,
            lost: Vec::new(),
            aside: BTreeMap::new(),
            tries: BTreeMap::new(),
            panicked: Vec::new(),
            alone: None,
            audited: None,
            admission: None,
            last_ask: 0,
            logged: None,
        }
    }

    /// Sends calls of child flows for which `outside` holds like any other call, instead of
    /// starting the child.
    pub fn intercept_calls(&mut self, outside: impl Fn(&StartRecord, &CallToSend) -> bool + Send + 'static) {
        self.outside = Some(Box::new(outside));
    }

    /// Lets executions that expect heartbeats sleep, because heartbeats are stored and another process checks them.
    pub fn leave_heartbeats(&mut self) {
        self.heartbeats_elsewhere = true;
    }

    /// Runs suspects one at a time.
    pub(crate) fn go_alone(&mut self, alone: Arc<SuspectLock>) {
        self.alone = Some(alone);
    }

    /// Makes a checkpoint every `events` events, but never more bytes of checkpoints than of events.
    pub fn checkpoint_every(&mut self, events: u64) {
        self.checkpoint_events = events.max(1);
    }

    /// Starts an execution and returns its id. The execution has begun when [`Outgoing::Started`] leaves, and waits to
    /// begin when [`Outgoing::Requested`] does. If its name or key is taken, [`Outgoing::Refused`] leaves instead.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the flow does not exist, the machine rejects the start, or the first turn panics.
    pub fn start(&mut self, mut request: StartRequest, now: Timestamp) -> Result<Text, StartError> {
        let (flow, version) = self
            .flows
            .get(&request.flow, request.version)
            .filter(|_| request.parent.is_some() || !is_flow_of_messages(&request.flow))
            .ok_or(StartError::NoSuchFlow)?;
        let mut keys = needed_keys(&flow, &request.flow, &request.input, &self.limits)?;
        keys.extend(request.keys.iter().cloned());
        let ExecutionSeed { id, seed } = self.new_seed(&request, now);
        let origin = self.origin_of_new(&id, &request)?;
        let terms = request.take_terms();
        let started = StartRecord {
            flow: request.flow,
            version,
            definition_hash: Text::default(),
            machine: 0,
            name: request.name.unwrap_or_else(|| id.clone()),
            input: request.input,
            seed,
            labels: request.labels,
            parent: request.parent,
            tokens: request.tokens,
            terms,
        };
        let start_at = request.time.from(now);
        let alone = !self.admission.as_ref().is_some_and(AdmissionHandle::knows_others);
        if alone && !request.after.is_empty() {
            let what = "`after` can't be honoured here: it needs a server that runs all the time";
            return Err(StartError::NotSupported(what));
        }
        if start_at > now || self.must_ask(&started.flow, &keys, &request.after) {
            if start_at <= now {
                self.check_room(&started)?;
            }
            let kept = KeptStart {
                start: Box::new(started),
                requested: now,
                start_at,
                deadline: request.deadline.map(|deadline| now.plus(deadline)),
                keys,
                after: request.after,
                ancestors: origin.family.iter().skip(1).cloned().collect(),
                admitted: false,
                given_back: false,
                met: false,
                flow_limited: false,
                fork: None,
            };
            return self.keep_start(&id, flow, kept, &origin, now).map(|()| id);
        }
        let mut live = LoadedExecution::new(flow, State::new(id.clone(), self.limits.clone()), origin);
        live.queues = self.fair_queue.is_some();
        live.heartbeats &= !self.heartbeats_elsewhere;
        self.executions.insert(id.clone(), live);
        match self.signal(&id, Signal::Start(Box::new(started)), now) {
            Ok(()) => Ok(id),
            Err(rejection) => {
                self.executions.remove(&id);
                if let Some(cause) = self.take_cause(&id) {
                    return Err(StartError::Panicked(cause));
                }
                Err(rejection.into())
            }
        }
    }

    /// Gives a signal to an execution of this shard. The events of its turn are part of the next batch.
    ///
    /// # Errors
    ///
    /// The [`Rejection`] of the machine; [`Rejection::Unknown`] if the execution is not loaded or the turn panics.
    pub fn signal(&mut self, execution: &str, signal: Signal, now: Timestamp) -> Result<(), Rejection> {
        self.signal_with(execution, signal, None, now)
    }

    /// Gives a signal that came with a message. If the machine takes the signal, the message is handled.
    fn signal_with(
        &mut self,
        execution: &str,
        signal: Signal,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        if !self.owns(execution) {
            return Err(Rejection::Unknown);
        }
        if self.waits_to_begin(execution) {
            return self.signal_waiting(&Text::from(execution), signal, message, now);
        }
        let Some((id, live)) = self.live_mut(execution) else {
            return Err(Rejection::Unknown);
        };
        let has_ended = live.state.status().is_ended();
        let asked = has_ended.then(|| self.signal_asking(&id, &signal, message.as_ref(), now));
        if let Some(taken) = asked.flatten() {
            return taken;
        }
        let Some(live) = self.executions.get(&id) else {
            return Err(Rejection::Unknown);
        };
        let suspect = live.attempts >= SUSPECT;
        let alone = self.alone.clone().filter(|_| suspect);
        let _alone = alone.as_ref().map(|alone| alone.enter(&id));
        let turn = self.guarded(&id, now, |shard| shard.turn(&id, signal, message, now));
        turn.unwrap_or(Err(Rejection::Unknown))
    }

    fn turn(&mut self, id: &Text, signal: Signal, message: Option<MessageId>, now: Timestamp) -> Result<(), Rejection> {
        let live = self.executions.get_mut(id).filter(|live| !live.deleted);
        let Some(live) = live else {
            return Err(Rejection::Unknown);
        };
        let before = live.state.last_event();
        let mut events = Vec::new();
        // A skip leaves out one of them and tries the others again.
        let undos = match signal {
            Signal::Skip { .. } => live.state.failed_undo_calls(),
            _ => Vec::new(),
        };
        live.state.advance(&live.flow, signal, now, &mut events)?;
        live.undone_again = undos;
        self.append(id, before, events, message);
        Ok(())
    }

    fn live_mut(&mut self, execution: &str) -> Option<(Text, &mut LoadedExecution)> {
        let id = self.executions.get_key_value(execution)?.0.clone();
        let live: &mut LoadedExecution = self.executions.get_mut(&id)?;
        Some((id, live))
    }

    /// Delivers messages between executions, and goes on with turns that were cut.
    pub fn pump(&mut self, now: Timestamp) -> PumpResult {
        loop {
            if let Some(missing) = self.take_incoming(now) {
                return PumpResult::Missing(missing);
            }
            self.continue_turns(now);
            if !self.pending.is_empty() {
                return PumpResult::Decided;
            }
            self.release_what_waits_for_nothing();
            if self.inbox.is_empty() {
                return PumpResult::Idle;
            }
        }
    }

    /// Goes on with turns that were cut: each execution once, or fewer if they produce many events.
    fn continue_turns(&mut self, now: Timestamp) {
        let mut bytes = 0;
        for _ in 0..self.continuing.len() {
            if bytes >= CONTINUED_BYTES {
                break;
            }
            if let Some(execution) = self.continuing.pop_front() {
                let decided = self.pending.len();
                // Another signal may have done this already.
                let _ = self.signal(&execution, Signal::Continue, now);
                bytes += self.pending.iter().skip(decided).map(Append::bytes).sum::<usize>();
            }
        }
    }

    /// Takes what may leave now, in order.
    pub fn take_outgoing(&mut self) -> VecDeque<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// The state of a loaded execution.
    pub fn state(&self, execution: &str) -> Option<&State> {
        self.executions.get(execution).map(|live| &live.state)
    }

    /// The start of a loaded execution, whether it has begun or waits.
    pub(crate) fn start_of(&self, execution: &str) -> Option<&StartRecord> {
        let begun = self.state(execution).and_then(|state| state.started());
        begun.or_else(|| self.waiting_start_record(execution))
    }

    /// The flow that a loaded execution runs.
    pub fn flow(&self, execution: &str) -> Option<&Arc<Flow>> {
        self.executions.get(execution).map(|live| &live.flow)
    }

    /// The name of an error in the execution's language; `None` for an execution that is not here,
    /// which takes no signal either.
    pub fn error_name(&self, execution: &str, error: &FaultKind) -> String {
        let flow = self.flow(execution).or_else(|| self.waiting_flow(execution));
        flow.map(|flow| flow.fault_names.name(error).to_string())
            .unwrap_or_default()
    }

    /// The execution and its ancestors, the nearest first, as far as executions may wait for one another.
    pub fn family(&self, execution: &str) -> &[Text] {
        self.executions
            .get(execution)
            .map_or(&[], |live| live.origin.family.as_slice())
    }

    /// The current record of a loaded execution.
    pub fn record(&self, execution: &str) -> Option<ExecutionRecord> {
        let live = self.executions.get(execution)?;
        Some(live.record(&live.standing()))
    }

    /// When a loaded execution began; a fork, when it was forked.
    pub fn begun_at(&self, execution: &str) -> Option<Timestamp> {
        self.executions.get(execution).map(|live| live.begun_at())
    }

    /// The flows that can be started.
    pub fn flows(&self) -> &FlowTable {
        &self.flows
    }

    /// The resource map.
    pub fn resources(&self) -> &ResourceMap {
        &self.resources
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A shared reference to the limits.
    pub fn shared_limits(&self) -> Arc<Limits> {
        self.limits.clone()
    }

    /// The ids of all loaded executions, in order.
    pub fn executions(&self) -> impl Iterator<Item = &Text> {
        self.executions.keys()
    }

    /// How many executions are loaded.
    pub fn len(&self) -> usize {
        self.executions.len()
    }

    /// Whether no execution is loaded.
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }
}
