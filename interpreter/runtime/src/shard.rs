//! A shard: the single-threaded owner of executions.
//!
//! Data goes one way: a signal is taken, the machine decides, the events are to be appended; only once they are durable
//! does what follows from them leave. The shard keeps the two apart and does no I/O: its host appends
//! [`Shard::take_batch`], says [`Shard::committed`], and then carries out [`Shard::take_outgoing`].

mod children;
mod recover;

use crate::flows::FlowTable;
use crate::resources::ResourceMap;
use starbridge_fdl::graph::{Flow, Misfit};
use starbridge_fdl::limits::Limits;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Text};
use starbridge_machine::{
    CallToSend, Detail, Event, EventId, Parent, Rejection, Signal, Started, State, Status, history,
};
use starbridge_ports::Append;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Gives ids and seeds.
type Births = Box<dyn FnMut(&StartRequest, Timestamp) -> Birth + Send>;
/// Whether a call is answered from outside, whatever its resource.
type Outside = Box<dyn Fn(&Started, &CallToSend) -> bool + Send>;

/// A shard.
pub struct Shard {
    flows: FlowTable,
    resources: ResourceMap,
    limits: Arc<Limits>,
    births: Births,
    /// Calls of child flows that are answered from outside all the same.
    outside: Option<Outside>,
    executions: BTreeMap<Text, Live>,
    /// Execution ids by flow and name.
    names: BTreeMap<(Text, Text), Text>,
    /// Children by the call that started them.
    children: BTreeMap<(Text, EventId), Text>,
    /// Calls whose step waits for the child to end.
    sync_calls: BTreeSet<(Text, EventId)>,
    /// Calls that wait for a child to have undone itself.
    undoing: BTreeMap<Text, (Text, EventId)>,
    inbox: VecDeque<(Text, Signal)>,
    continuing: VecDeque<Text>,
    wakeups: BTreeSet<(Timestamp, Text)>,
    pending: Vec<Append>,
    held: Vec<Outgoing>,
    outgoing: VecDeque<Outgoing>,
}

/// What the outside gives a new execution.
#[derive(Clone, Debug)]
pub struct Birth {
    /// Its id, unlike any other.
    pub id: Text,
    /// Where all its randomness comes from.
    pub seed: u64,
}

struct Live {
    flow: Arc<Flow>,
    state: State,
    wakeup: Option<Timestamp>,
    /// The executions whose calls a value of this one may refer to: itself and its ancestors.
    family: Vec<Text>,
}

/// What leaves a shard once it is durable.
#[derive(Clone, Debug)]
pub enum Outgoing {
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
    /// A turn stands in the history.
    Turn {
        /// The execution it belongs to.
        execution: Text,
        /// Its events.
        events: Vec<Event>,
    },
    /// The execution has ended, for now.
    Ended {
        /// The execution.
        execution: Text,
        /// How.
        status: Status,
    },
}

/// What [`Shard::pump`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is something to append.
    Decided,
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
}

/// Why nothing was started.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// There is no such flow or version.
    NoSuchFlow,
    /// The flow has an execution of that name.
    NameTaken,
    /// The input does not fit the flow's schema.
    InvalidInput(Vec<Misfit>),
    /// The machine refuses it for another reason.
    Refused(Rejection),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchFlow => f.write_str("there is no such flow"),
            Self::NameTaken => f.write_str("the flow has an execution of that name already"),
            Self::InvalidInput(misfits) => Rejection::InvalidInput(misfits.clone()).fmt(f),
            Self::Refused(rejection) => rejection.fmt(f),
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
        births: impl FnMut(&StartRequest, Timestamp) -> Birth + Send + 'static,
    ) -> Self {
        Self {
            flows,
            resources,
            limits,
            births: Box::new(births),
            outside: None,
            executions: BTreeMap::new(),
            names: BTreeMap::new(),
            children: BTreeMap::new(),
            sync_calls: BTreeSet::new(),
            undoing: BTreeMap::new(),
            inbox: VecDeque::new(),
            continuing: VecDeque::new(),
            wakeups: BTreeSet::new(),
            pending: Vec::new(),
            held: Vec::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// Lets calls of child flows for which `outside` holds leave like any other call, instead of starting the child.
    pub fn answer_outside(&mut self, outside: impl Fn(&Started, &CallToSend) -> bool + Send + 'static) {
        self.outside = Some(Box::new(outside));
    }

    /// Starts an execution and answers its id.
    pub fn start(&mut self, request: StartRequest, now: Timestamp) -> Result<Text, StartError> {
        let (flow, version) = self
            .flows
            .get(&request.flow, request.version)
            .ok_or(StartError::NoSuchFlow)?;
        let birth = (self.births)(&request, now);
        let name = request.name.unwrap_or_else(|| birth.id.clone());
        let key = (request.flow.clone(), name.clone());
        if self.names.contains_key(&key) {
            return Err(StartError::NameTaken);
        }
        let mut family = vec![birth.id.clone()];
        if let Some(parent) = &request.parent
            && let Some(outer) = self.executions.get(&parent.execution)
        {
            family.extend(outer.family.iter().cloned());
        }
        let started = Started {
            flow: request.flow,
            version,
            definition_hash: Text::default(),
            machine: 0,
            name,
            input: request.input,
            seed: birth.seed,
            labels: request.labels,
            parent: request.parent.clone(),
        };
        let live = Live {
            state: State::new(birth.id.clone(), self.limits.clone()),
            flow,
            wakeup: None,
            family,
        };
        self.executions.insert(birth.id.clone(), live);
        match self.signal(&birth.id, Signal::Start(Box::new(started)), now) {
            Ok(()) => {
                self.names.insert(key, birth.id.clone());
                if let Some(parent) = request.parent {
                    self.children.insert((parent.execution, parent.event), birth.id.clone());
                }
                Ok(birth.id)
            }
            Err(rejection) => {
                self.executions.remove(&birth.id);
                Err(match rejection {
                    Rejection::InvalidInput(misfits) => StartError::InvalidInput(misfits),
                    other => StartError::Refused(other),
                })
            }
        }
    }

    /// Gives a signal to an execution at once; its events are part of the next batch.
    pub fn signal(&mut self, execution: &str, signal: Signal, now: Timestamp) -> Result<(), Rejection> {
        let Some((id, live)) = self
            .executions
            .get_key_value(execution)
            .map(|(id, _)| id.clone())
            .and_then(|id| {
                let live = self.executions.get_mut(&id)?;
                Some((id, live))
            })
        else {
            return Err(Rejection::Unknown);
        };
        let before = live.state.last_event();
        let was_ended = live.state.status().is_ended();
        let mut events = Vec::new();
        live.state.advance(&live.flow, signal, now, &mut events)?;
        let status = live.state.status();
        self.pending.push(Append {
            execution: id.clone(),
            expected: before,
            events: events
                .iter()
                .map(|event| history::write_event(&live.flow, event))
                .collect(),
        });
        for event in &events {
            let given_up = match &event.detail {
                Detail::TaskCancelled { of, .. } => *of,
                Detail::TaskTimedOut { .. } => event.caused_by,
                _ => continue,
            };
            self.held.push(Outgoing::Cancel {
                execution: id.clone(),
                call: given_up,
            });
        }
        self.held.push(Outgoing::Turn {
            execution: id.clone(),
            events,
        });
        for call in live.state.calls_to_send_after(&live.flow, before) {
            self.held.push(Outgoing::Send {
                execution: id.clone(),
                call: Box::new(call),
            });
        }
        if status.is_ended() && !was_ended {
            self.held.push(Outgoing::Ended {
                execution: id.clone(),
                status,
            });
        }
        if live.state.must_continue() {
            self.continuing.push_back(id.clone());
        }
        self.note_wakeup(&id);
        Ok(())
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
        while let Some((execution, signal)) = self.inbox.pop_front() {
            // A message that is no longer awaited says nothing new: its sender's state is the truth.
            let _ = self.signal(&execution, signal, now);
        }
        for _ in 0..self.continuing.len() {
            if let Some(execution) = self.continuing.pop_front() {
                let _ = self.signal(&execution, Signal::Continue, now);
            }
        }
        if self.pending.is_empty() {
            Step::Idle
        } else {
            Step::Decided
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

    /// When the next timer is due.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.wakeups.first().map(|(due, _)| *due)
    }

    /// The turns decided and not yet durable.
    pub fn take_batch(&mut self) -> Vec<Append> {
        std::mem::take(&mut self.pending)
    }

    /// All that was taken is durable: what follows from it may leave.
    pub fn committed(&mut self, now: Timestamp) {
        for outgoing in std::mem::take(&mut self.held) {
            self.release(outgoing, now);
        }
    }

    fn release(&mut self, outgoing: Outgoing, now: Timestamp) {
        match &outgoing {
            Outgoing::Send { execution, call } if self.is_for_child(execution, call) => {
                self.note_sync(&outgoing);
                let (execution, call) = (execution.clone(), call.clone());
                return self.call_child(&execution, &call, now);
            }
            Outgoing::Cancel { execution, call } => self.cancel_child(execution, *call),
            Outgoing::Ended { execution, status } => self.tell_parent(execution, *status),
            _ => {}
        }
        self.outgoing.push_back(outgoing);
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

    /// The execution and its ancestors.
    pub fn family(&self, execution: &str) -> &[Text] {
        self.executions
            .get(execution)
            .map_or(&[], |live| live.family.as_slice())
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

    /// All executions, by id.
    pub fn executions(&self) -> impl Iterator<Item = &Text> {
        self.executions.keys()
    }
}
