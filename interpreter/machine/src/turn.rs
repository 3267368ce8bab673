//! A turn: the events that one signal leads to, cut at bounds that are the same on every host.

use crate::event::{Event, EventId, EventKind, Failure, StepPath};
use crate::state::{FrameId, State};
use starbridge_flow::graph::{Budget, Context, Fault, FaultKind, Flow, Output, Program, Root, Scope, StepId};
use starbridge_flow::limits::{ERROR_CAUSE_CHARS, ERROR_NAME_CHARS};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use std::cell::Cell;

/// A turn ends after this many events. [`Signal::Continue`](crate::Signal::Continue) goes on with what is left.
pub const TURN_EVENTS: usize = 1_000;
/// A turn ends after this many bytes of events, as [`Event::weight`] counts them, and of inputs that its calls send. The
/// calls of a foreach may share one input in memory, but each message has a copy of it.
pub const TURN_BYTES: usize = 256 * 1024;
/// A turn ends after this many steps of evaluation ([`Budget`]). Each program, query or guard may use its whole
/// budget, so a turn may exceed this by one of them.
pub const TURN_STEPS: usize = 4_000_000;

/// The turn in progress.
pub(crate) struct Turn<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) now: Timestamp,
    out: &'a mut Vec<Event>,
    events: usize,
    bytes: usize,
    evaluated: Cell<usize>,
    /// The number of events after which the turn ends, whatever its bounds.
    cut_after: Option<usize>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(flow: &'a Flow, now: Timestamp, out: &'a mut Vec<Event>) -> Self {
        Self {
            flow,
            now,
            out,
            events: 0,
            bytes: 0,
            evaluated: Cell::new(0),
            cut_after: None,
        }
    }

    /// Lets the turn end after this many events instead of at its bounds.
    pub(crate) fn cut_after(self, events: usize) -> Self {
        Self {
            cut_after: Some(events),
            ..self
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        if let Some(events) = self.cut_after {
            return self.events >= events;
        }
        self.events >= TURN_EVENTS || self.bytes >= TURN_BYTES || self.evaluated.get() >= TURN_STEPS
    }

    pub(crate) fn events(&self) -> usize {
        self.events
    }

    /// Counts the steps that were used of this budget towards the bound of the turn.
    pub(crate) fn spend(&self, budget: &Budget) {
        self.evaluated.set(self.evaluated.get().saturating_add(budget.spent()));
    }

    /// The failure for this fault, with the error name that the flow's language gives it.
    pub(crate) fn failure(&self, fault: &Fault) -> Failure {
        failure(&self.flow.fault_names.name(&fault.kind), &fault.cause)
    }

    /// The failure for a fault of this kind, with the error name that the flow's language gives it.
    pub(crate) fn fault(&self, kind: FaultKind, cause: impl Into<String>) -> Failure {
        self.failure(&Fault::new(kind, cause))
    }
}

/// A failure with name and cause cut to their limits.
pub(crate) fn failure(error: &str, cause: &str) -> Failure {
    Failure {
        error: cut(error, ERROR_NAME_CHARS),
        cause: cut(cause, ERROR_CAUSE_CHARS),
    }
}

/// The first characters of a text.
pub fn cut(text: &str, chars: usize) -> Text {
    match text.char_indices().nth(chars) {
        Some((end, _)) => Text::from(text.get(..end).unwrap_or_default()),
        None => Text::from(text),
    }
}

/// What an event is about: a step, or the flow itself.
pub(crate) struct EventAddress {
    pub(crate) frame: FrameId,
    pub(crate) step: Option<StepId>,
    pub(crate) path: StepPath,
    pub(crate) caused_by: EventId,
    pub(crate) rollback: bool,
}

impl State {
    /// The budget for one evaluation that reads these data.
    pub(crate) fn budget(&self, data: &[Root<'_>]) -> Budget {
        let bytes = data.iter().map(|root| root.json_len()).fold(0, usize::saturating_add);
        Budget::new(&self.limits, bytes)
    }

    /// Runs a program over these data within the budget for them, and counts what it took towards the turn's bound.
    pub(crate) fn run_program(
        &self,
        turn: &Turn<'_>,
        program: &dyn Program,
        input: Root<'_>,
        variables: Root<'_>,
        context: &dyn Context,
    ) -> Result<Output, Fault> {
        let budget = self.budget(&[input, variables]);
        let made = program.run(&Scope {
            input,
            variables,
            context,
            now: turn.now,
            seed: self.seed(),
            budget: &budget,
        });
        turn.spend(&budget);
        made
    }

    /// Makes the next event, applies it and pushes it to the turn's events.
    pub(crate) fn emit(&mut self, turn: &mut Turn<'_>, place: EventAddress, detail: EventKind) {
        let event = Event {
            id: self.data.last.next(),
            caused_by: place.caused_by,
            time: turn.now,
            step: place.step,
            path: place.path,
            rollback: place.rollback,
            detail,
        };
        turn.events += 1;
        turn.bytes += event.weight();
        self.apply_in(turn.flow, &event, Some(place.frame));
        if let EventKind::TaskScheduled(call) = &event.detail
            && call.params.is_none()
        {
            turn.bytes = turn
                .bytes
                .saturating_add(self.call_input_len(place.frame, event.rollback));
        }
        turn.out.push(event);
    }

    /// The bytes of the input that a frame's call sends; with `rollback`, of the call that undoes something.
    fn call_input_len(&self, frame: FrameId, rollback: bool) -> usize {
        let Some(frame) = self.frames.get(frame) else {
            return 0;
        };
        let undo = || frame.undoing.as_ref()?.current.as_ref();
        match rollback {
            true => undo().map_or(0, |run| run.input.json_len()),
            false => frame.visit().map_or(0, |visit| visit.input.json_len()),
        }
    }

    /// The address of the step a frame is in. The next event there is caused by the frame's last event.
    pub(crate) fn place(&self, id: FrameId) -> EventAddress {
        let frame = self.frames.get(id);
        EventAddress {
            frame: id,
            step: frame.and_then(|frame| frame.visit()).map(|visit| visit.step),
            path: frame.map(|frame| frame.path.clone()).unwrap_or_default(),
            caused_by: frame.map(|frame| frame.last).unwrap_or_default(),
            rollback: false,
        }
    }

    /// The address of the flow itself.
    pub(crate) fn flow_place(&self, caused_by: EventId) -> EventAddress {
        EventAddress {
            frame: crate::state::ROOT,
            step: None,
            path: StepPath::default(),
            caused_by,
            rollback: false,
        }
    }
}
