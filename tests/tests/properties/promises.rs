//! The promises for every execution, in any flow and any world.

#[path = "history.rs"]
mod history;

use crate::random::Chance;
use serde_json::Value;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, EventKind, Exit, State, history as form};
use starbridge_runtime::{Outgoing, Shard};
use starbridge_simulator::{
    Case, Crash, Flows, Interruption, Moment, Outcome, Pause, Simulation, SimulationError, Stop, TestFile,
};
use starbridge_tests::conformance;
use starbridge_tests::outstanding::Outstanding;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A history longer than this is folded and restored at prefixes spread over its length.
const PREFIXES: usize = 50;

/// Checkpoints of the state that wrote the history, by the event it had come to.
type Live = Rc<RefCell<BTreeMap<EventId, Vec<u8>>>>;

/// A random test file with all that follows from it.
#[allow(dead_code, reason = "what another reading of the language is compared with")]
pub struct Promises {
    pub flows: Flows,
    pub case: Case,
    pub limits: Limits,
    pub outcome: Outcome,
    pub events: Vec<Event>,
}

impl Promises {
    /// Runs a test file straight, with a stop, twice said and crashed; says what is not as promised.
    pub fn of(file: &Value, seed: u64) -> Result<Self, String> {
        let mut chance = Chance::new(!seed);
        let (flows, case, limits) = read(file)?;
        let straight = run(&flows, &case, &limits)?;
        if case.stop.is_none() {
            let stop = Stop {
                at_seconds: f64::from(chance.below(10_000)) / 1000.0,
                error: None,
                cause: String::new(),
                rollback: chance.of(50),
            };
            let stopped = Case {
                stop: Some(stop),
                ..case.clone()
            };
            run(&flows, &stopped, &limits).map_err(|problem| format!("{problem}\n(with {:?})", stopped.stop))?;
        }
        if case.stop.is_none() {
            let pause = Pause {
                at_seconds: f64::from(chance.below(10_000)) / 1000.0,
                for_seconds: Some(f64::from(chance.below(20_000)) / 1000.0),
                cause: String::new(),
            };
            let of_pause = |problem: String| format!("{problem}\n(with {pause:?})");
            let case = Case {
                pause: Some(pause.clone()),
                ..case.clone()
            };
            let paused = run(&flows, &case, &limits).map_err(of_pause)?;
            same_but_for_the_pause(&flows.flow, &straight, &paused).map_err(of_pause)?;
        }
        let appends = u32::try_from(straight.appends).unwrap_or(1).max(1);
        let crash = Interruption {
            crash: Some(Crash {
                at: chance.from(1, appends) as usize,
                moment: chance.pick(&[Moment::BeforeAppend, Moment::AnswerLost, Moment::AfterAppend]),
            }),
            everything_twice: true,
            ..Interruption::default()
        };
        let mut again = Simulation::new(flows.clone(), case.clone(), limits.clone()).interrupted(crash);
        again.run().map_err(|error| format!("after a crash: {error}"))?;
        if again.histories().values().next() != Some(&straight.events) {
            return Err(format!("another history after a crash: {crash:?}"));
        }
        Ok(Self {
            flows,
            case,
            limits,
            outcome: straight.outcome,
            events: straight.events,
        })
    }
}

/// A simulation that came to its end.
struct Straight {
    outcome: Outcome,
    events: Vec<Event>,
    appends: usize,
}

/// A paused execution does the same as without a pause, in another order if answers came at other
/// moments. It may differ where time decides the actions.
fn same_but_for_the_pause(flow: &Flow, straight: &Straight, paused: &Straight) -> Result<(), String> {
    let decided_by_time = |event: &Event| {
        matches!(
            event.detail,
            EventKind::TaskTimedOut { .. }
                | EventKind::TaskCancelled { .. }
                | EventKind::ExecutionTimedOut { .. }
                | EventKind::TimerFired { .. }
                | EventKind::BranchExited(Exit::Cancelled)
                | EventKind::IterationExited(Exit::Cancelled)
        )
    };
    if straight.events.iter().chain(&paused.events).any(decided_by_time) {
        return Ok(());
    }
    let kinds = |events: &[Event]| {
        let is_pause = |event: &&Event| {
            let detail = &event.detail;
            matches!(
                detail,
                EventKind::ExecutionPaused { .. } | EventKind::ExecutionResumed { .. }
            )
        };
        let kept = events.iter().filter(|event| !is_pause(event));
        let mut kinds: Vec<String> = kept
            .filter(|event| !matches!(event.detail, EventKind::TurnContinued))
            .map(|event| {
                let (kind, rollback) = (form::type_name(&event.detail), event.rollback);
                format!("{kind} {:?} {:?} {rollback}", event.step, event.path)
            })
            .collect();
        kinds.sort_unstable();
        kinds
    };
    if (&straight.outcome.status, kinds(&straight.events)) == (&paused.outcome.status, kinds(&paused.events)) {
        return Ok(());
    }
    let (without, with) = (told(flow, &straight.events), told(flow, &paused.events));
    Err(format!("a pause changes what is done:\n{without}\n\n{with}"))
}

/// The flow, the case and the limits of a test file.
pub fn read(file: &Value) -> Result<(Flows, Case, Limits), String> {
    let invalid = |error: String| format!("no valid test file: {error}");
    let parsed = TestFile::parse(&file.to_string()).map_err(|error| invalid(error.to_string()))?;
    let flows = conformance::load(&parsed, Path::new("")).map_err(invalid)?;
    let case = parsed
        .cases
        .first()
        .cloned()
        .ok_or_else(|| invalid("no case".to_owned()))?;
    Ok((flows, case, parsed.limits.over(Limits::default())))
}

/// One run, all promises that a single history can keep or break looked at.
fn run(flows: &Flows, case: &Case, limits: &Limits) -> Result<Straight, String> {
    let live = Live::default();
    let seen = live.clone();
    let mut simulation = Simulation::new(flows.clone(), case.clone(), limits.clone());
    simulation = simulation.observed(Box::new(move |shard: &Shard, outgoing: &Outgoing| {
        if let Outgoing::Turn { execution, events } = outgoing
            && let Some((state, flow)) = shard.state(execution).zip(shard.flow(execution))
            && events.last().is_some_and(|event| event.id == state.last_event())
        {
            seen.borrow_mut().insert(state.last_event(), state.checkpoint(flow));
        }
    }));
    let outcome = simulation.run().map_err(|error| match error {
        SimulationError::NoMock { .. } => format!("no valid test file: {error}"),
        _ => format!("does not come to an end: {error}"),
    })?;
    let events = simulation.histories().values().next().cloned().unwrap_or_default();
    let (appends, _) = simulation.operations();
    history::check(&flows.flow, &events, &outcome.status)
        .and_then(|()| folds(&flows.flow, limits, &events, &live.borrow()))
        .map_err(|problem| format!("{problem}\n{}", told(&flows.flow, &events)))?;
    Ok(Straight {
        outcome,
        events,
        appends,
    })
}

/// The events of a history a person can still read, one a line.
fn told(flow: &Flow, events: &[Event]) -> String {
    const MOST: usize = 60;
    let line = |event: &Event| {
        let written = form::write_event(flow, event);
        let [step, path, detail] = ["step", "path", "detail"].map(|key| written.get(key).cloned().unwrap_or_default());
        let word = form::type_name(&event.detail);
        format!("{:>4} {} {word} {step} {detail} {path}", event.id, event.time)
    };
    let lines: Vec<String> = events.iter().take(MOST).map(line).collect();
    lines.join("\n")
}

/// At every prefix the state that lived, the state that is folded, and the state restored before and gone on with are one.
fn folds(flow: &Flow, limits: &Limits, events: &[Event], live: &BTreeMap<EventId, Vec<u8>>) -> Result<(), String> {
    let limits = Arc::new(limits.clone());
    let mut folded = State::new(Text::from("case"), limits.clone());
    let mut restored = folded.clone();
    let step = events.len().div_ceil(PREFIXES).max(1);
    for (index, event) in events.iter().enumerate() {
        let at = |what: &str| format!("{what}: at event {} ({})", event.id, form::type_name(&event.detail));
        folded.apply(flow, event);
        restored.apply(flow, event);
        if folded.broken_at().is_some() || restored.broken_at().is_some() {
            return Err(at("an event does not fit the state"));
        }
        let last = index + 1 == events.len();
        if folded.status().is_ended() != last {
            return Err(at("something happens after the end, or there is none"));
        }
        if index % step != 0 && !last {
            continue;
        }
        let written = form::write_event(flow, event).into();
        if form::read_event(flow, &written).as_ref() != Ok(event) {
            return Err(at("an event does not come back from its written form"));
        }
        let checkpoint = folded.checkpoint(flow);
        if live.get(&event.id).is_some_and(|live| *live != checkpoint) {
            return Err(at("the folded state is not the one that lived"));
        }
        if restored.checkpoint(flow) != checkpoint {
            return Err(at("a restored state went another way"));
        }
        let outstanding = Outstanding::of(&folded, flow);
        outstanding.check(&folded, flow).map_err(|problem| at(&problem))?;
        restored = State::from_checkpoint(flow, &checkpoint, limits.clone())
            .map_err(|error| at(&format!("the checkpoint can't be read {error:?}")))?;
        if restored.checkpoint(flow) != checkpoint {
            return Err(at("the checkpoint changes on the way"));
        }
        if Outstanding::of(&restored, flow) != outstanding {
            return Err(at("the restored state asks for something else"));
        }
        if restored.open_steps() != folded.open_steps() {
            return Err(at("the restored state shows other data"));
        }
    }
    Ok(())
}
