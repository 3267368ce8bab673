//! One run of a case and its legs, on the machine itself: its world is virtual time and mocks.

use super::Act;
use serde_json::Value;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::{
    CallToSend, Decision, Event, EventId, EventKind, Failure, Fork, Rejection, Resolution, ResolutionAction, Signal,
    StartRecord, StartTerms, State, Status, copied, history, turn_length,
};
use starbridge_simulator::{Case, Mock, Mocks, Outcome, Silence, Stop};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const EXECUTION: &str = "case";
/// 2024-01-01T00:00:00Z
const BEGINNING: Timestamp = Timestamp(1_704_067_200_000);

/// The treatment of the state between two turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Straight,
    /// It is lost, and folded again from the written history.
    Folded,
    /// It is lost, and comes back from a checkpoint.
    Restored,
    /// No treatment, but every signal comes twice.
    Twice,
}

/// A run.
pub struct Run {
    flow: Arc<Flow>,
    limits: Arc<Limits>,
    way: Way,
    state: State,
    events: Vec<Event>,
    now: Timestamp,
    mocks: Mocks,
    /// Answers under way, by when they come.
    answers: BTreeMap<(Timestamp, EventId), Mock>,
    silences: BTreeSet<(Timestamp, EventId, Silence)>,
    sent: BTreeSet<EventId>,
    stop: Option<(Timestamp, Stop)>,
    /// Whether the leg ends where an operator is waited for.
    until_manual: bool,
}

impl Run {
    pub(super) fn new(flow: &Arc<Flow>, limits: &Arc<Limits>, way: Way) -> Self {
        Self {
            flow: flow.clone(),
            limits: limits.clone(),
            way,
            state: State::new(EXECUTION, limits.clone()),
            events: Vec::new(),
            now: BEGINNING,
            mocks: Mocks::default(),
            answers: BTreeMap::new(),
            silences: BTreeSet::new(),
            sent: BTreeSet::new(),
            stop: None,
            until_manual: false,
        }
    }

    /// The flow.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The id of the execution that ran last.
    pub fn id(&self) -> &Text {
        self.state.execution()
    }

    /// Its state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The first leg.
    pub(super) fn first(&mut self, case: &Case) -> Result<Outcome, String> {
        self.begin_leg(case);
        let started = StartRecord {
            flow: "flow".into(),
            version: 1,
            definition_hash: "".into(),
            machine: 0,
            name: Text::from(case.execution_name.as_deref().unwrap_or(EXECUTION)),
            input: case.input.clone(),
            seed: 1,
            labels: case.labels.clone(),
            parent: None,
            tokens: Vec::new(),
            terms: StartTerms::default(),
        };
        self.give(Signal::Start(Box::new(started)))
            .map_err(|rejection| rejection.to_string())?;
        self.drive()?;
        Ok(Outcome::of(&self.flow, &self.state, &self.events))
    }

    /// A further leg.
    pub(super) fn operate(&mut self, act: &Act, later: Millis, case: &Case) -> Result<Outcome, String> {
        self.now = self.now.plus(later);
        self.begin_leg(case);
        let before = self.events.len();
        let taken = match act {
            Act::Redrive { by, inputs } => self.give(Signal::Redrive {
                by: by.clone(),
                inputs: inputs.clone(),
                definition: None,
            }),
            Act::Skip(cause) => self.give(Signal::Skip {
                by: Some("operator".to_owned()),
                cause: cause.clone(),
            }),
            Act::Reorder(order) => self.give(Signal::Reorder {
                by: Some("operator".to_owned()),
                order: *order,
            }),
            Act::Fork { event, name } => return self.fork(EventId(*event), name),
            Act::Resolve(resolution) => self.resolve(resolution),
        };
        match taken {
            Ok(()) => {}
            Err(Rejection::NotRedrivable) => return Ok(Outcome::refused("NotRedrivable".to_owned())),
            Err(rejection) => return Ok(Outcome::refused(rejection.to_string())),
        }
        self.drive()?;
        let of_leg = self.events.get(before..).unwrap_or_default();
        Ok(Outcome::of(&self.flow, &self.state, of_leg))
    }

    fn begin_leg(&mut self, case: &Case) {
        self.mocks = Mocks::new(case.mocks.clone());
        self.until_manual = case.expect.status.as_deref() == Some(Status::Manual.as_str());
        self.stop = case.stop.clone().map(|stop| {
            let at = self.now.plus(millis(stop.at_seconds));
            (at, stop)
        });
    }

    fn resolve(&mut self, resolution: &Value) -> Result<(), Rejection> {
        let text = |key: &str| resolution[key].as_str().map(Text::from);
        let asked = |event: &&Event| matches!(event.detail, EventKind::ManualRequested(_));
        let request = self.events.iter().rev().find(asked).map(|event| event.id);
        let decision = match text("action").as_deref().and_then(ResolutionAction::parse) {
            None => return Err(Rejection::Unknown),
            Some(ResolutionAction::Retry) => Decision::Retry,
            Some(ResolutionAction::Succeed) => Decision::Succeed {
                output: serde_json::from_value(resolution["output"].clone()).ok(),
            },
            Some(ResolutionAction::Fail) => Decision::Fail {
                failure: text("error").map(|error| Failure {
                    error,
                    cause: text("cause").unwrap_or_default(),
                }),
            },
        };
        self.give(Signal::Resolve {
            request: request.ok_or(Rejection::Unknown)?,
            resolution: Box::new(Resolution {
                decision,
                by: "operator".into(),
                note: text("note"),
            }),
        })
    }

    fn fork(&mut self, event: EventId, name: &str) -> Result<Outcome, String> {
        let fork = Fork {
            of: self.id().clone(),
            event,
            execution: Text::from(format!("{}-{name}", self.id())),
            name: Text::from(name),
            version: None,
            by: None,
        };
        let forked = State::fork(
            &self.flow,
            &self.flow,
            &self.events,
            &fork,
            self.limits.clone(),
            self.now,
        );
        let forked = match forked {
            Ok(forked) => forked,
            Err(error) => return Ok(Outcome::refused(error.to_string())),
        };
        self.state = forked.state;
        self.events = forked.turns.concat();
        let before = copied(&self.events);
        self.answers.clear();
        self.silences.clear();
        self.sent.clear();
        self.pass_on();
        self.drive()?;
        let of_leg = self.events.get(before..).unwrap_or_default();
        Ok(Outcome::of(&self.flow, &self.state, of_leg))
    }

    /// Lets one thing happen after the other until the execution has ended or nothing will happen.
    fn drive(&mut self) -> Result<(), String> {
        const TURNS: usize = 100_000;
        for _ in 0..TURNS {
            self.send();
            if self.state.must_continue() {
                self.give(Signal::Continue).map_err(|rejection| rejection.to_string())?;
            } else if self.state.status().is_ended() || self.waits_for_operator() || !self.happen() {
                return Ok(());
            }
        }
        Err("it does not come to an end".to_owned())
    }

    fn waits_for_operator(&self) -> bool {
        self.until_manual && self.state.status() == Status::Manual && self.answers.is_empty()
    }

    /// Sends what is to be sent; a call sent again is the same call. One without an answer is never answered.
    fn send(&mut self) {
        let flow = self.flow.clone();
        let calls: Vec<CallToSend> = self.state.calls_to_send_after(&flow, EventId(0)).collect();
        for call in calls {
            if !self.sent.insert(call.call) {
                continue;
            }
            let mock = (self.mocks.key(None, &call)).and_then(|key| self.mocks.next(&key, &call.iterations));
            for (span, silence) in Silence::of(&call) {
                self.silences.insert((self.now.plus(span), call.call, silence));
            }
            if let Some(mock) = mock.filter(|mock| !mock.never) {
                let due = self.now.plus(millis(mock.delay_seconds));
                self.answers.insert((due, call.call), mock);
            }
        }
    }

    /// The next thing that happens: answers come before a stop, that before silences, timers last.
    fn happen(&mut self) -> bool {
        let answer = self.answers.first_key_value().map(|((due, _), _)| *due);
        let stop = self.stop.as_ref().map(|(due, _)| *due);
        let silence = self.silences.first().map(|(due, ..)| *due);
        let timer = self.state.next_wakeup();
        let Some(next) = [answer, stop, silence, timer].into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        let signal = if answer == Some(next) {
            let names = &self.flow.fault_names;
            self.answers
                .pop_first()
                .map(|((_, call), mock)| mock.into_signal(call, names))
        } else if stop == Some(next) {
            self.stop.take().map(|(_, stop)| stop.signal())
        } else if silence == Some(next) {
            self.silences
                .pop_first()
                .map(|(_, call, silence)| silence.into_signal(call))
        } else {
            self.state.due(self.now).next().map(Signal::TimerDue)
        };
        if let Some(signal) = signal {
            // A refused signal came too late.
            let _ = self.give(signal);
        }
        true
    }

    fn give(&mut self, signal: Signal) -> Result<(), Rejection> {
        let again = (self.way == Way::Twice).then(|| signal.clone());
        let mut turn = Vec::new();
        self.state.advance(&self.flow, signal, self.now, &mut turn)?;
        // A redrive or skip that leads to an end in its own turn may be followed by another one.
        if let Some(again) = again
            && !matches!(again, Signal::Reorder { .. })
            && !(matches!(again, Signal::Redrive { .. } | Signal::Skip { .. }) && self.state.status().is_ended())
        {
            let _ = self.state.advance(&self.flow, again, self.now, &mut turn);
        }
        self.events.append(&mut turn);
        self.pass_on();
        Ok(())
    }

    /// The treatment of the state and of the answers in flight after a turn.
    fn pass_on(&mut self) {
        match self.way {
            Way::Straight | Way::Twice => {}
            Way::Folded => self.state = self.folded(),
            Way::Restored => {
                let checkpoint = self.state.checkpoint(&self.flow);
                if let Ok(state) = State::from_checkpoint(&self.flow, &checkpoint, self.limits.clone()) {
                    self.state = state;
                }
            }
        }
        self.answers.retain(|(_, call), _| self.state.is_in_flight(*call));
        self.silences.retain(|(_, call, _)| self.state.is_in_flight(*call));
    }

    /// The state that the written history leads to.
    fn folded(&self) -> State {
        let mut state = State::new(self.id().clone(), self.limits.clone());
        for event in &self.events {
            let written = history::write_event(&self.flow, event);
            if let Ok(event) = history::read_event(&self.flow, &written.into()) {
                state.apply(&self.flow, &event);
            }
        }
        state
    }

    /// The fault in the event of a redrive after the first `from` events.
    pub(super) fn redriven_from(&self, from: usize, at: Option<u64>, steps: Option<&[String]>) -> Vec<String> {
        let mut problems = Vec::new();
        let redriven = self.events.get(from).map(|event| &event.detail);
        let Some(EventKind::ExecutionRedriven { from, steps: again, .. }) = redriven else {
            if at.is_some() || steps.is_some() {
                problems.push("it is not redriven".to_owned());
            }
            return problems;
        };
        if at.is_some_and(|at| at != from.0) {
            problems.push(format!("from: expected {at:?}, got {from}"));
        }
        let name = |step| self.flow.step(step).map(|step| step.name.to_string());
        let again: Vec<String> = again.iter().filter_map(|step| name(*step)).collect();
        if steps.is_some_and(|steps| steps != again) {
            problems.push(format!("again: expected {steps:?}, got {again:?}"));
        }
        problems
    }

    /// The signals that the events record, given once more, must lead to the same events.
    pub(super) fn signals_give_the_same(&self) -> Option<String> {
        let mut state = State::new(self.id().clone(), self.limits.clone());
        let mut at = copied(&self.events);
        for event in self.events.iter().take(at) {
            state.apply(&self.flow, event);
        }
        while let Some(first) = self.events.get(at) {
            let rest = self.events.get(at..).unwrap_or_default();
            let end = at + turn_length(rest);
            let recorded = self.events.get(at..end).unwrap_or_default();
            let Some(signal) = state.recorded_signal(&self.flow, recorded) else {
                return Some(format!("event {} records no signal", first.id));
            };
            let mut turn = Vec::new();
            if let Err(rejection) = state.advance(&self.flow, signal, first.time, &mut turn) {
                return Some(format!("the signal of event {} is refused: {rejection}", first.id));
            }
            if self.events.get(at..end) != Some(turn.as_slice()) {
                return Some(format!("the signal of event {} leads elsewhere: {turn:?}", first.id));
            }
            at = end;
        }
        None
    }
}

fn millis(seconds: f64) -> Millis {
    Millis((seconds * 1000.0).round() as u64)
}
