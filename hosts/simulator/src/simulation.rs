//! A simulation: virtual time, and answers that come when they are due.

use super::case::{Case, Mock, Pause};
use super::interruption::{Crash, Interruption, Moment};
use super::mocks::Mocks;
use super::outcome::Outcome;
use super::silence::Silence;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::{CallToSend, Event, EventId, EventKind, Rejection, Signal, StartRecord};
use starbridge_memory::MemoryStore;
use starbridge_ports::{Append, Receivers, Refusal, ShardSet, Store, StoreError};
use starbridge_runtime::{
    ExecutionSeed, FlowTable, Outgoing, PumpResult, ResourceMap, Shard, StartError, StartRequest, load, stored_events,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The flow under test and its children.
#[derive(Clone)]
pub struct Flows {
    /// The name of the flow.
    pub name: String,
    /// The flow under test.
    pub flow: Arc<Flow>,
    /// The flows of its children, by name.
    pub children: BTreeMap<String, Arc<Flow>>,
}

/// The name of the execution under test if the case gives none, and its id.
const EXECUTION: &str = "case";
/// 2024-01-01T00:00:00Z, in milliseconds.
const BEGINNING: Timestamp = Timestamp(1_704_067_200_000);
/// A simulation in which time is advanced more often than this counts as endless.
const MAX_TURNS: usize = 100_000;

/// A case with more events, those of its children included, is not run to its end.
const MAX_EVENTS: usize = 1_000_000;

/// How many sleepers are loaded after a crash: all that a simulation can have.
const MAX_SLEEPERS: usize = 1_000_000;

/// Called with each turn when it is durable.
pub type Observer = Box<dyn FnMut(&Shard, &Outgoing)>;

/// Why a simulation failed. A failure of the flow is not among these.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulationError {
    /// A task without a mock was called.
    NoMock {
        /// The name of the step.
        step: String,
        /// Whether it is the step's rollback.
        rollback: bool,
    },
    /// The flow waits for something that never happens.
    Stuck,
    /// The flow does not end.
    Endless,
    /// The flow has more events than a case may have.
    TooLong {
        /// How many it may have.
        events: usize,
    },
    /// The store failed.
    Store(StoreError),
    /// Folding a history did not give its state.
    History(String),
}

impl std::fmt::Display for SimulationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoMock { step, rollback } => {
                let key = if *rollback {
                    format!("{step}.rollback")
                } else {
                    step.clone()
                };
                write!(f, "the task `{key}` was called but `mocks` has no answer for it")
            }
            Self::Stuck => f.write_str("the flow waits for something that will never happen"),
            Self::Endless => write!(
                f,
                "the flow does not come to an end: time was advanced {MAX_TURNS} times; is there a poll or a loop whose mock never says that it is done?"
            ),
            Self::TooLong { events } => write!(
                f,
                "the case has more than {events} events: is there a loop that does not end? `limits` can end it earlier, with `stepVisits` or `historyEvents`"
            ),
            Self::Store(error) => error.fmt(f),
            Self::History(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for SimulationError {}

/// An answer to come: when it is due, then the order of calls.
type Due = (Timestamp, Text, EventId);

/// A flow that runs in virtual time.
///
/// Call [`Simulation::new`], what is needed of [`Simulation::interrupted`], [`Simulation::over`] and
/// [`Simulation::observed`], then [`Simulation::run`] once. Afterwards [`Simulation::histories`] and
/// [`Simulation::shard`] show what happened.
pub struct Simulation {
    flows: Flows,
    limits: Arc<Limits>,
    case: Case,
    store: Arc<dyn Store>,
    shard: Shard,
    now: Timestamp,
    mocks: Mocks,
    answers: BTreeMap<Due, Mock>,
    /// Calls that were seen. A call that is sent again is the same call.
    seen: BTreeSet<(Text, EventId)>,
    silences: BTreeSet<(Due, Silence)>,
    histories: BTreeMap<Text, Vec<Event>>,
    /// All executions that were ever started.
    known: BTreeSet<Text>,
    /// Executions that were asleep when the process was started again.
    sleepers: BTreeSet<(Timestamp, Text)>,
    /// Signals whose senders do not know that they were taken. They are sent again after a crash.
    unsure: Vec<(Text, Signal)>,
    crashes: VecDeque<Crash>,
    everything_twice: bool,
    /// How many appends there were since the process was started.
    appends: usize,
    dispatches: usize,
    /// How many events there were in all, and how many there may be.
    events: (usize, usize),
    observer: Option<Observer>,
    /// What the operator is still to do, in order.
    acts: VecDeque<(Timestamp, Signal)>,
}

impl Simulation {
    /// A simulation of one case.
    pub fn new(flows: Flows, case: Case, limits: Limits) -> Self {
        let begun = case.start_time.unwrap_or(BEGINNING);
        let limits = Arc::new(limits);
        Self {
            shard: new_shard(&flows, &limits, &case),
            acts: acts_of(&case, begun),
            mocks: Mocks::new(case.mocks.clone()),
            flows,
            limits,
            case,
            store: Arc::new(MemoryStore::new()),
            now: begun,
            answers: BTreeMap::new(),
            seen: BTreeSet::new(),
            silences: BTreeSet::new(),
            histories: BTreeMap::new(),
            known: BTreeSet::new(),
            sleepers: BTreeSet::new(),
            unsure: Vec::new(),
            crashes: VecDeque::new(),
            everything_twice: false,
            appends: 0,
            dispatches: 0,
            events: (0, MAX_EVENTS),
            observer: None,
        }
    }

    /// Adds an interruption.
    #[must_use]
    pub fn interrupted(mut self, interruption: Interruption) -> Self {
        self.crashes = interruption.crash.into_iter().chain(interruption.again).collect();
        self.everything_twice = interruption.everything_twice;
        self
    }

    /// Uses this store instead of memory. It must be empty.
    #[must_use]
    pub fn over(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// Lets the case have so many events at most, instead of a million.
    #[must_use]
    pub fn at_most(mut self, events: usize) -> Self {
        self.events.1 = events;
        self
    }

    /// Adds an observer that is called with each turn.
    #[must_use]
    pub fn observed(mut self, observer: Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Runs the case to its end.
    ///
    /// # Errors
    ///
    /// [`SimulationError`] if a task has no mock, the flow waits for ever or does not end, or the store fails.
    pub fn run(&mut self) -> Result<Outcome, SimulationError> {
        match self.start() {
            Ok(()) => {}
            Err(
                error @ (StartError::InvalidInput(_)
                | StartError::InvalidKey(_)
                | StartError::Refused(Rejection::InputTooLarge { .. } | Rejection::InputTooDeep { .. })),
            ) => return Ok(Outcome::refused(error.to_string())),
            Err(error) => return Err(SimulationError::History(error.to_string())),
        }
        for _ in 0..MAX_TURNS {
            self.run_until_idle()?;
            if self.is_over()? {
                return self.outcome();
            }
            self.advance()?;
        }
        Err(SimulationError::Endless)
    }

    fn start(&mut self) -> Result<(), StartError> {
        let request = StartRequest {
            flow: Text::from(self.flows.name.as_str()),
            input: self.case.input.clone(),
            name: Some(Text::from(self.case.execution_name.as_deref().unwrap_or(EXECUTION))),
            labels: self.case.labels.clone(),
            ..StartRequest::default()
        };
        self.shard.start(request, self.now).map(drop)
    }

    /// How many appends and dispatches there were since the process was last started.
    pub fn operations(&self) -> (usize, usize) {
        (self.appends, self.dispatches)
    }

    /// The events of each execution, by id. The one under test is the first.
    pub fn histories(&self) -> &BTreeMap<Text, Vec<Event>> {
        &self.histories
    }

    /// The shard with the executions.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Whether the process has crashed as often as the interruption says.
    pub fn has_crashed(&self) -> bool {
        self.crashes.is_empty()
    }

    /// Whether every execution has ended. If one is not loaded, its record in the store counts.
    fn is_over(&self) -> Result<bool, SimulationError> {
        for id in &self.known {
            let status = match self.shard.state(id) {
                Some(state) => Some(state.status()),
                None => {
                    let record = self.store.record(id).map_err(SimulationError::Store)?;
                    record.map(|record| record.status)
                }
            };
            if status.is_some_and(|status| !status.is_ended()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn outcome(&mut self) -> Result<Outcome, SimulationError> {
        let id = Text::from(EXECUTION);
        self.bring(&id)?;
        let (Some(state), Some(events)) = (self.shard.state(&id), self.histories.get(&id)) else {
            return Err(SimulationError::Stuck);
        };
        Ok(Outcome::of(&self.flows.flow, state, events))
    }

    /// Appends what was decided and carries out what follows, until nothing more can be done at this instant.
    fn run_until_idle(&mut self) -> Result<(), SimulationError> {
        loop {
            match self.shard.pump(self.now) {
                PumpResult::Idle => {
                    self.unsure.clear();
                    let outgoing = self.shard.take_outgoing();
                    if outgoing.is_empty() {
                        return Ok(());
                    }
                    if self.carry_out(outgoing)? {
                        self.crash()?;
                    }
                }
                PumpResult::Missing(execution) => {
                    if !self.load(&execution)? {
                        self.shard.absent(execution);
                    }
                }
                PumpResult::Decided => {
                    if self.append()? {
                        self.crash()?;
                    }
                }
            }
        }
    }

    /// Appends what was decided and carries out what follows. Returns whether the process crashes meanwhile.
    fn append(&mut self) -> Result<bool, SimulationError> {
        let batch = self.shard.take_batch();
        self.appends += 1;
        if self.dies(Moment::BeforeAppend) {
            return Ok(true);
        }
        let refusals = self.store.append(&batch).map_err(SimulationError::Store)?;
        self.note_started(&batch, &refusals);
        if self.dies(Moment::AnswerLost) {
            return Ok(true);
        }
        self.shard.committed(&refusals);
        self.unsure.clear();
        if self.dies(Moment::AfterAppend) {
            return Ok(true);
        }
        let outgoing = self.shard.take_outgoing();
        self.carry_out(outgoing)
    }

    fn note_started(&mut self, batch: &[Append], refusals: &[(usize, Refusal)]) {
        for (index, append) in batch.iter().enumerate() {
            let refused = refusals.iter().any(|(refused, _)| *refused == index);
            if append.expected == EventId(0) && append.turn.is_some() && !refused {
                self.known.insert(append.execution.clone());
            }
        }
    }

    /// Whether the process crashes at this moment of its current operation.
    fn dies(&mut self, moment: Moment) -> bool {
        let operation = if moment.is_of_append() {
            self.appends
        } else {
            self.dispatches
        };
        let now = Crash { at: operation, moment };
        let dies = self.crashes.front() == Some(&now);
        if dies {
            self.crashes.pop_front();
        }
        dies
    }

    /// Carries out what leaves. Returns whether the process crashes meanwhile.
    fn carry_out(&mut self, mut outgoing: VecDeque<Outgoing>) -> Result<bool, SimulationError> {
        while let Some(next) = outgoing.pop_front() {
            if let Some(observer) = &mut self.observer {
                observer(&self.shard, &next);
            }
            match next {
                Outgoing::Turn { execution, events } => {
                    self.events.0 += events.len();
                    if self.events.0 > self.events.1 {
                        return Err(SimulationError::TooLong { events: self.events.1 });
                    }
                    self.histories.entry(execution).or_default().extend(events);
                }
                Outgoing::Cancel { execution, call } => self.give_up(&execution, call),
                Outgoing::Started { .. }
                | Outgoing::Requested { .. }
                | Outgoing::Refused { .. }
                | Outgoing::Ended { .. }
                | Outgoing::Noticed { .. }
                | Outgoing::Message(_)
                | Outgoing::Queued(_)
                | Outgoing::Unqueued { .. }
                | Outgoing::Withdrawn { .. }
                | Outgoing::Mark(_) => {}
                Outgoing::Send { execution, call } => {
                    self.dispatches += 1;
                    if self.dies(Moment::BeforeDispatch) {
                        return Ok(true);
                    }
                    self.send(&execution, &call)?;
                    if self.dies(Moment::AfterDispatch) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Crashes and restarts the process. Only the store and the outside world are left.
    fn crash(&mut self) -> Result<(), SimulationError> {
        self.shard = new_shard(&self.flows, &self.limits, &self.case);
        (self.appends, self.dispatches) = (0, 0);
        self.histories.clear();
        for id in self.known.clone() {
            let events = self.events(&id)?;
            self.cut_off(&id, &events);
            self.histories.insert(id, events);
        }
        for id in self.store.awake(&ShardSet::ALL).map_err(SimulationError::Store)? {
            self.load(&id)?;
        }
        let messages = self.store.messages(&Receivers::All).map_err(SimulationError::Store)?;
        self.shard.redeliver(messages);
        let sleepers = self.store.due(&ShardSet::ALL, Timestamp(i64::MAX), MAX_SLEEPERS);
        self.sleepers = sleepers.map_err(SimulationError::Store)?.into_iter().collect();
        if self.known.is_empty() {
            // Nobody was told that anything has begun.
            self.start()
                .map_err(|error| SimulationError::History(error.to_string()))?;
        }
        for (execution, signal) in std::mem::take(&mut self.unsure) {
            self.give(&execution, signal)?;
        }
        Ok(())
    }

    /// Drops the answers to calls that were given up: nobody holds their connections any more.
    fn cut_off(&mut self, id: &Text, events: &[Event]) {
        for event in events {
            match &event.detail {
                EventKind::TaskCancelled { of, .. } => self.give_up(id, *of),
                EventKind::TaskTimedOut { .. } => self.give_up(id, event.caused_by),
                _ => {}
            }
        }
    }

    /// The stored events of an execution.
    fn events(&self, id: &Text) -> Result<Vec<Event>, SimulationError> {
        let gone = |what: &str| SimulationError::History(format!("the {what} of `{id}` is gone"));
        let record = self.store.record(id).map_err(SimulationError::Store)?;
        let record = record.ok_or_else(|| gone("record"))?;
        let flow = self.shard.flows().running(&record.flow, record.version);
        let flow = flow.ok_or_else(|| gone("flow"))?;
        stored_events(self.store.as_ref(), &flow, id, u64::MAX).map_err(SimulationError::Store)
    }

    /// Loads an execution from the store. Returns whether it exists.
    fn load(&mut self, id: &Text) -> Result<bool, SimulationError> {
        let loaded = load(self.store.as_ref(), self.shard.flows(), &self.limits, id);
        let Some(loaded) = loaded.map_err(SimulationError::Store)? else {
            return Ok(false);
        };
        self.shard.recover(loaded);
        Ok(true)
    }

    /// Makes sure that an execution is loaded, if it exists.
    fn bring(&mut self, id: &Text) -> Result<(), SimulationError> {
        match self.shard.state(id) {
            Some(_) => Ok(()),
            None => self.load(id).map(drop),
        }
    }

    fn send(&mut self, execution: &Text, call: &CallToSend) -> Result<(), SimulationError> {
        if !self.seen.insert((execution.clone(), call.call)) {
            return Ok(());
        }
        let started = self.shard.state(execution).and_then(|state| state.started());
        let child = started
            .filter(|started| started.parent.is_some())
            .map(|started| started.flow.to_string());
        let Some(key) = self.mocks.key(child.as_deref(), call) else {
            return Err(SimulationError::NoMock {
                step: call.step.to_string(),
                rollback: call.rollback,
            });
        };
        let Some(mock) = self.mocks.next(&key, &call.iterations) else {
            return Ok(());
        };
        for (span, silence) in Silence::of(call) {
            let due = (self.now.plus(span), execution.clone(), call.call);
            self.silences.insert((due, silence));
        }
        if !mock.never {
            let due = self.now.plus(millis_of(mock.delay_seconds));
            self.answers.insert((due, execution.clone(), call.call), mock);
        }
        Ok(())
    }

    fn give_up(&mut self, execution: &Text, call: EventId) {
        let this = |due: &Due| due.1 == *execution && due.2 == call;
        self.answers.retain(|due, _| !this(due));
        self.silences.retain(|(due, _)| !this(due));
    }

    /// Goes to the next instant at which something happens, and lets one thing happen: answers come before timers.
    fn advance(&mut self) -> Result<(), SimulationError> {
        let answer = self.answers.first_key_value().map(|(due, _)| due.0);
        let act = self.acts.front().map(|(due, _)| *due);
        let silent = self.silences.first().map(|(due, _)| due.0);
        let timer = self.shard.next_wakeup();
        let sleeper = self.sleepers.first().map(|(due, _)| *due);
        let next = [answer, act, silent, timer, sleeper].into_iter().flatten().min();
        let Some(next) = next else {
            return Err(SimulationError::Stuck);
        };
        self.now = self.now.max(next);
        if answer == Some(next) {
            if let Some(((_, execution, call), mock)) = self.answers.pop_first() {
                self.silences.retain(|(due, _)| !(due.1 == execution && due.2 == call));
                let signal = mock.into_signal(call, &self.flows.flow.fault_names);
                self.give(&execution, signal)?;
            }
        } else if act == Some(next) {
            if let Some((_, signal)) = self.acts.pop_front() {
                self.give(&Text::from(EXECUTION), signal)?;
            }
        } else if silent == Some(next) {
            if let Some(((_, execution, call), silence)) = self.silences.pop_first() {
                self.fall_silent(&execution, call, silence)?;
            }
        } else if sleeper == Some(next) {
            if let Some((_, execution)) = self.sleepers.pop_first() {
                self.bring(&execution)?;
            }
        } else {
            self.shard.fire_next(self.now);
        }
        Ok(())
    }

    /// Lets a call fall silent. While its execution is paused nobody listens; a second later that is looked at again.
    fn fall_silent(&mut self, execution: &Text, call: EventId, silence: Silence) -> Result<(), SimulationError> {
        self.bring(execution)?;
        let state = self.shard.state(execution);
        let listens = state.is_none_or(|state| state.paused().is_none() || state.is_queued(call));
        if listens {
            return self.give(execution, silence.into_signal(call));
        }
        let due = (self.now.plus(Millis(1_000)), execution.clone(), call);
        self.silences.insert((due, silence));
        Ok(())
    }

    /// Gives a signal, or the same one twice if everything comes twice. A rejection is no error: the signal came too
    /// late.
    fn give(&mut self, execution: &Text, signal: Signal) -> Result<(), SimulationError> {
        self.bring(execution)?;
        self.unsure.push((execution.clone(), signal.clone()));
        let again = self.everything_twice.then(|| signal.clone());
        let _ = self.shard.signal(execution, signal, self.now);
        if let Some(signal) = again {
            let _ = self.shard.signal(execution, signal, self.now);
        }
        Ok(())
    }
}

fn new_shard(flows: &Flows, limits: &Arc<Limits>, case: &Case) -> Shard {
    let mut table = FlowTable::default();
    table.put(&flows.name, flows.flow.clone());
    for (name, flow) in &flows.children {
        table.put(name, flow.clone());
    }
    // Ids follow from what is started, so that an interrupted simulation gives the same ones.
    let id_source = |request: &StartRequest, _: Timestamp| ExecutionSeed {
        id: match &request.parent {
            None => Text::from(EXECUTION),
            Some(parent) => Text::from(format!("{}.{}", parent.execution, parent.event)),
        },
        seed: 1,
    };
    let mut shard = Shard::new(table, ResourceMap::default(), limits.clone(), id_source);
    let mocks = Mocks::new(case.mocks.clone());
    shard.intercept_calls(move |started: &StartRecord, call: &CallToSend| {
        let child = started.parent.as_ref().map(|_| started.flow.as_str());
        mocks.key(child, call).is_some()
    });
    shard
}

/// What the operator of a case does, in order.
fn acts_of(case: &Case, begun: Timestamp) -> VecDeque<(Timestamp, Signal)> {
    let stop = case.stop.as_ref().map(|stop| (stop.at_seconds, stop.signal()));
    let pause = case.pause.as_ref().map(Pause::acts).unwrap_or_default();
    let acts = stop.into_iter().chain(pause);
    let mut acts: Vec<_> = acts
        .map(|(seconds, signal)| (begun.plus(millis_of(seconds)), signal))
        .collect();
    acts.sort_by_key(|(due, _)| *due);
    acts.into()
}

/// Seconds in milliseconds, rounded up.
fn millis_of(seconds: f64) -> Millis {
    Millis((seconds * 1000.0 - 1e-6).ceil().max(0.0) as u64)
}
