//! A shard: the single-threaded owner of executions.
//!
//! Data goes one way: a signal is taken, the machine decides, the events are to be appended; only once they are durable
//! does what follows from them leave. The shard keeps the two apart and does no I/O: its host appends
//! [`Shard::take_batch`], says [`Shard::committed`], and then carries out [`Shard::take_outgoing`]. Several batches may be
//! under way at once; they come back in the order they were taken.
//!
//! An execution that is wanted and not here is asked for ([`Step::Missing`]); one that sleeps may be left to the store
//! ([`Shard::trim`]).

mod aside;
mod batch;
mod children;
mod execution_ids;
mod forks;
mod loaded;
mod notices;
mod recover;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use aside::TRIES;
pub(crate) use batch::stored_turn;
pub use execution_ids::{ExecutionSeed, child_id};
pub use forks::{ForkFailure, ForkRequest};
pub use notices::StatusChange;
pub(crate) use recover::fold_up;
pub use recover::{Loaded, load};

use crate::alone::Alone;
use crate::flows::FlowTable;
use crate::queues::FairQueue;
use crate::resources::ResourceMap;
use children::Post;
use execution_ids::IdSource;
use loaded::LoadedExecution;
use starbridge_flow::graph::{FaultKind, Flow, SchemaViolation};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{CallToSend, Event, EventId, Grant, Parent, Rejection, Signal, Started, State, Status};
use starbridge_ports::{Append, Message, MessageId, QueuedTask, Record, Refusal, SUSPECT};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Whether a call is answered from outside, whatever its resource.
type Outside = Box<dyn Fn(&Started, &CallToSend) -> bool + Send>;

/// A shard.
pub struct Shard {
    flows: FlowTable,
    resources: ResourceMap,
    limits: Arc<Limits>,
    births: IdSource,
    /// Where tasks of queues get their rounds, if there are queues.
    rounds: Option<Arc<FairQueue>>,
    /// Calls of child flows that are answered from outside all the same.
    outside: Option<Outside>,
    /// Who is to be told of changes, if anybody is.
    tell: Option<notices::Tell>,
    checkpoint_events: u64,
    /// Silence of who works on a call is noticed by others too.
    heartbeats_elsewhere: bool,
    executions: BTreeMap<Text, LoadedExecution>,
    /// Calls whose step waits for a child to end.
    sync_calls: BTreeSet<(Text, EventId)>,
    /// Calls that wait for a child to have undone itself, by the child.
    undoing: BTreeMap<Text, (Text, EventId)>,
    inbox: VecDeque<(Text, Post)>,
    continuing: VecDeque<Text>,
    wakeups: BTreeSet<(Timestamp, Text)>,
    pending: Vec<Append>,
    held: Vec<Outgoing>,
    flights: VecDeque<batch::InFlightBatch>,
    outgoing: VecDeque<Outgoing>,
    /// Executions that were seen to have nothing to do but wait, the longest ago first.
    idle: VecDeque<Text>,
    /// Executions that were seen to have ended.
    ended: Vec<Text>,
    /// An execution that is wanted and nowhere.
    absent: Option<Text>,
    /// Executions whose histories have gone on elsewhere.
    lost: Vec<Text>,
    /// Executions that are left alone.
    aside: BTreeMap<Text, aside::Aside>,
    /// How often in a row executions panicked.
    tries: BTreeMap<Text, u32>,
    /// Those that panicked and whose calls are still out.
    panicked: Vec<Text>,
    /// How suspects are gone on with, if the store outlives the process.
    alone: Option<Arc<Alone>>,
}

/// What leaves a shard once it is durable.
#[derive(Clone, Debug)]
pub enum Outgoing {
    /// An execution has begun.
    Started {
        /// The execution.
        execution: Text,
        /// Where its first turn left it.
        status: Status,
    },
    /// An execution could not begin.
    Refused {
        /// The id it would have had.
        execution: Text,
        /// Why.
        refusal: Refusal,
    },
    /// A call is to be sent.
    Send {
        /// The execution it belongs to.
        execution: Text,
        /// The call.
        call: Box<CallToSend>,
    },
    /// A call is given up.
    Cancel {
        /// The execution it belongs to.
        execution: Text,
        /// The call.
        call: EventId,
    },
    /// A task stands in its queue.
    Queued(Box<QueuedTask>),
    /// A task has left its queue.
    Unqueued {
        /// The queue.
        queue: Text,
        /// The execution it belongs to.
        execution: Text,
        /// The call.
        call: EventId,
    },
    /// A turn stands in the history.
    Turn {
        /// The execution it belongs to.
        execution: Text,
        /// Its events.
        events: Vec<Event>,
    },
    /// Something of the execution is to be told to others.
    Noticed {
        /// The execution.
        execution: Text,
    },
    /// The execution has ended, for now.
    Ended {
        /// The execution.
        execution: Text,
        /// How.
        status: Status,
    },
    /// A message for another execution of this shard.
    Post(Message),
    /// All that was decided before [`Shard::mark`] gave this number is durable.
    Mark(u64),
}

/// What [`Shard::pump`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is something to append.
    Decided,
    /// This execution is wanted: it is to be recovered, or said to be [`Shard::absent`].
    Missing(Text),
    /// There is nothing to do.
    Idle,
}

/// What an execution is started with.
#[derive(Clone, Debug, Default)]
pub struct StartRequest {
    /// The flow's name.
    pub flow: Text,
    /// Its version; the latest where none is given.
    pub version: Option<u64>,
    /// The input.
    pub input: Object,
    /// The execution's name; its id where none is given.
    pub name: Option<Text>,
    /// Labels.
    pub labels: Option<Object>,
    /// The call that starts it.
    pub parent: Option<Parent>,
    /// Tokens of calls that the parent hands down, each at its place in the input.
    pub tokens: Vec<Grant>,
    /// Whether the parent waits for its end.
    pub awaited: bool,
    /// How many executions wait for one another down to this one.
    pub depth: u32,
}

/// Why nothing was started.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// There is no such flow or version.
    NoSuchFlow,
    /// The input does not fit the flow's schema.
    InvalidInput(Vec<SchemaViolation>),
    /// The machine refuses it for another reason.
    Refused(Rejection),
    /// Its first turn panicked, and nothing of it was kept.
    Panicked(Text),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchFlow => f.write_str("there is no such flow"),
            Self::InvalidInput(violations) => Rejection::InvalidInput(violations.clone()).fmt(f),
            Self::Refused(rejection) => rejection.fmt(f),
            Self::Panicked(cause) => write!(f, "its first turn panicked, and nothing of it was kept: {cause}"),
        }
    }
}

impl std::error::Error for StartError {}

impl Shard {
    /// A shard without executions. `births` gives ids and seeds; it is the only source of either.
    pub fn new(
        flows: FlowTable,
        resources: ResourceMap,
        limits: Arc<Limits>,
        births: impl FnMut(&StartRequest, Timestamp) -> ExecutionSeed + Send + 'static,
    ) -> Self {
        Self {
            flows,
            resources,
            limits,
            births: Box::new(births),
            rounds: None,
            outside: None,
            tell: None,
            checkpoint_events: loaded::CHECKPOINT_EVENTS,
            heartbeats_elsewhere: false,
            executions: BTreeMap::new(),
            sync_calls: BTreeSet::new(),
            undoing: BTreeMap::new(),
            inbox: VecDeque::new(),
            continuing: VecDeque::new(),
            wakeups: BTreeSet::new(),
            pending: Vec::new(),
            held: Vec::new(),
            flights: VecDeque::new(),
            outgoing: VecDeque::new(),
            idle: VecDeque::new(),
            ended: Vec::new(),
            absent: None,
            lost: Vec::new(),
            aside: BTreeMap::new(),
            tries: BTreeMap::new(),
            panicked: Vec::new(),
            alone: None,
        }
    }

    /// Lets calls of child flows for which `outside` holds leave like any other call, instead of starting the child.
    pub fn answer_outside(&mut self, outside: impl Fn(&Started, &CallToSend) -> bool + Send + 'static) {
        self.outside = Some(Box::new(outside));
    }

    /// Lets executions sleep that wait for heartbeats: what was heard is kept elsewhere, and somebody looks.
    pub fn leave_heartbeats(&mut self) {
        self.heartbeats_elsewhere = true;
    }

    /// Lets suspects be gone on with one at a time.
    pub(crate) fn go_alone(&mut self, alone: Arc<Alone>) {
        self.alone = Some(alone);
    }

    /// Lets states be kept every so many events, though never more bytes of them than of events.
    pub fn checkpoint_every(&mut self, events: u64) {
        self.checkpoint_events = events.max(1);
    }

    /// Starts an execution and answers its id. It has begun when [`Outgoing::Started`] leaves; where its name is taken,
    /// [`Outgoing::Refused`] leaves in its place.
    pub fn start(&mut self, request: StartRequest, now: Timestamp) -> Result<Text, StartError> {
        let (flow, version) = self
            .flows
            .get(&request.flow, request.version)
            .ok_or(StartError::NoSuchFlow)?;
        let birth = (self.births)(&request, now);
        let id = birth.id;
        let origin = self.origin(&id, &request);
        let started = Started {
            flow: request.flow,
            version,
            definition_hash: Text::default(),
            machine: 0,
            name: request.name.unwrap_or_else(|| id.clone()),
            input: request.input,
            seed: birth.seed,
            labels: request.labels,
            parent: request.parent,
            tokens: request.tokens,
        };
        let mut live = LoadedExecution::new(flow, State::new(id.clone(), self.limits.clone()), origin);
        live.queues = self.rounds.is_some();
        live.heartbeats &= !self.heartbeats_elsewhere;
        self.executions.insert(id.clone(), live);
        match self.signal(&id, Signal::Start(Box::new(started)), now) {
            Ok(()) => Ok(id),
            Err(rejection) => {
                self.executions.remove(&id);
                if let Some(cause) = self.take_cause(&id) {
                    return Err(StartError::Panicked(cause));
                }
                Err(match rejection {
                    Rejection::InvalidInput(violations) => StartError::InvalidInput(violations),
                    other => StartError::Refused(other),
                })
            }
        }
    }

    /// Gives a signal to an execution at once; its events are part of the next batch. The execution must be here.
    pub fn signal(&mut self, execution: &str, signal: Signal, now: Timestamp) -> Result<(), Rejection> {
        self.signal_with(execution, signal, None, now)
    }

    /// The same for a signal that came with a message, which is dealt with if the signal is taken.
    fn signal_with(
        &mut self,
        execution: &str,
        signal: Signal,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let Some((id, live)) = self.live_mut(execution) else {
            return Err(Rejection::Unknown);
        };
        let suspect = live.attempts >= SUSPECT;
        let alone = self.alone.clone().filter(|_| suspect);
        let _alone = alone.as_ref().map(|alone| alone.enter(&id));
        let turn = self.guarded(&id, now, |shard| shard.turn(&id, signal, message, now));
        turn.unwrap_or(Err(Rejection::Unknown))
    }

    fn turn(&mut self, id: &Text, signal: Signal, message: Option<MessageId>, now: Timestamp) -> Result<(), Rejection> {
        let Some(live) = self.executions.get_mut(id) else {
            return Err(Rejection::Unknown);
        };
        let before = live.state.last_event();
        let was_ended = live.state.status().is_ended();
        let mut events = Vec::new();
        live.state.advance(&live.flow, signal, now, &mut events)?;
        self.append(id, before, was_ended, events, message);
        Ok(())
    }

    fn live_mut(&mut self, execution: &str) -> Option<(Text, &mut LoadedExecution)> {
        let id = self.executions.get_key_value(execution)?.0.clone();
        let live = self.executions.get_mut(&id)?;
        Some((id, live))
    }

    fn note_wakeup(&mut self, id: &Text) {
        if let Some(live) = self.executions.get_mut(id) {
            let next = live.state.next_wakeup();
            if next != live.wakeup {
                if let Some(old) = live.wakeup {
                    self.wakeups.remove(&(old, id.clone()));
                }
                if let Some(next) = next {
                    self.wakeups.insert((next, id.clone()));
                }
                live.wakeup = next;
            }
        }
    }

    /// Takes what other executions said, and goes on with what turns left over.
    pub fn pump(&mut self, now: Timestamp) -> Step {
        loop {
            if let Some(missing) = self.take_posts(now) {
                return Step::Missing(missing);
            }
            for _ in 0..self.continuing.len() {
                if let Some(execution) = self.continuing.pop_front() {
                    // Others may have brought it on meanwhile.
                    let _ = self.signal(&execution, Signal::Continue, now);
                }
            }
            if !self.pending.is_empty() {
                return Step::Decided;
            }
            self.release_what_waits_for_nothing();
            if self.inbox.is_empty() {
                return Step::Idle;
            }
        }
    }

    /// Fires the timer that is due first, if one is. Answers whether there was one.
    pub fn fire_next(&mut self, now: Timestamp) -> bool {
        let Some((due, id)) = self.wakeups.first().cloned() else {
            return false;
        };
        if due > now {
            return false;
        }
        let timer = self.executions.get(&id).and_then(|live| live.state.due(now).next());
        match timer {
            Some(timer) => self.signal(&id, Signal::TimerDue(timer), now).is_ok(),
            None => false,
        }
    }

    /// When the next timer of an execution that is here is due.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.wakeups.first().map(|(due, _)| *due)
    }

    /// What may leave now, in order.
    pub fn take_outgoing(&mut self) -> VecDeque<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// The state of an execution.
    pub fn state(&self, execution: &str) -> Option<&State> {
        self.executions.get(execution).map(|live| &live.state)
    }

    /// The flow an execution runs.
    pub fn flow(&self, execution: &str) -> Option<&Arc<Flow>> {
        self.executions.get(execution).map(|live| &live.flow)
    }

    /// What an execution's language calls an error; nothing for an execution that is not here, which takes no signal either.
    pub fn error_name(&self, execution: &str, error: &FaultKind) -> String {
        let flow = self.flow(execution);
        flow.map(|flow| flow.fault_names.name(error).to_string())
            .unwrap_or_default()
    }

    /// The execution and its ancestors, the nearest first: as many as may wait for one another.
    pub fn family(&self, execution: &str) -> &[Text] {
        self.executions
            .get(execution)
            .map_or(&[], |live| live.origin.family.as_slice())
    }

    /// What a store keeps of an execution apart from its history, as things stand here.
    pub fn record(&self, execution: &str) -> Option<Record> {
        let live = self.executions.get(execution)?;
        Some(live.record(live.standing()))
    }

    /// The flows that can be started.
    pub fn flows(&self) -> &FlowTable {
        &self.flows
    }

    /// Where resources lead.
    pub fn resources(&self) -> &ResourceMap {
        &self.resources
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same, to be shared.
    pub fn shared_limits(&self) -> Arc<Limits> {
        self.limits.clone()
    }

    /// All executions that are here, by id.
    pub fn executions(&self) -> impl Iterator<Item = &Text> {
        self.executions.keys()
    }

    /// How many executions are here.
    pub fn len(&self) -> usize {
        self.executions.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }
}
