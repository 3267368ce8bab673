//! Entering a step: the numbers that its input gives are read once, and stand in its `StepEntered`.

use crate::context::{StepView, View};
use crate::event::{EventKind, Failure};
use crate::state::{FrameId, State, Visit};
use crate::turn::{EventAddress, Turn};
use starbridge_flow::graph::{Fault, FaultKind, InputMode, Root, Settings, Step, StepId};
use starbridge_flow::value::Document;

impl State {
    /// Enters the step that a list came to. Where its numbers can't be read, it fails at once.
    pub(crate) fn enter_step(&mut self, turn: &mut Turn<'_>, id: FrameId, step: StepId) {
        let place = EventAddress {
            step: Some(step),
            ..self.place(id)
        };
        let read = match turn.flow.step(step) {
            Some(step) => self.read_settings(turn, id, step),
            None => Ok(None),
        };
        let (settings, failure) = match read {
            Ok(settings) => (settings.map(Box::new), None),
            Err(fault) => (None, Some(turn.failure(&fault))),
        };
        self.emit(turn, place, EventKind::StepEntered { settings });
        let Some(failure) = failure else {
            return;
        };
        // A loop that catches this must end like any other.
        let over = self
            .visit_and_step(turn, id)
            .and_then(|(visit, _)| self.over_limit(visit));
        match over {
            Some(fault) => {
                let failure = turn.failure(&fault);
                self.fail_attempt(turn, id, failure, 0);
            }
            None => self.fail_attempt(turn, id, failure, 1),
        }
    }

    /// The numbers of a step in the input of its first attempt; nothing where all are fixed.
    fn read_settings(&self, turn: &Turn<'_>, id: FrameId, step: &Step) -> Result<Option<Settings>, Fault> {
        let (Some(reader), Some(frame)) = (&step.settings, self.frame(id)) else {
            return Ok(None);
        };
        let mapped = match (&frame.edited, &step.enter) {
            (Some(edited), _) => Some(edited.as_ref().clone()),
            (None, InputMode::Merged | InputMode::Input) => None,
            (None, InputMode::Program(program)) => {
                let visits = turn
                    .flow
                    .step_named(&step.name)
                    .and_then(|step| frame.visits.get(&step));
                let view = View {
                    state: self,
                    step: Some(StepView::before_attempts(
                        step,
                        frame,
                        self.data.last.next(),
                        visits.map_or(1, |visits| visits + 1),
                    )),
                };
                let (input, variables) = (Root::from(&frame.input), Root::from(&frame.local));
                let made = self.run_program(turn, program.as_ref(), input, variables, &view)?;
                Some(made.value)
            }
        };
        let input = frame.step_input(step, mapped.map(Document::from));
        let input = Root::from(&*input);
        let budget = self.budget(&[input]);
        let read = reader.read(input, &budget);
        turn.spend(&budget);
        read.map(Some)
    }

    /// Why a visit may not be tried any more.
    pub(super) fn hopeless(turn: &Turn<'_>, visit: &Visit, step: &Step) -> Option<Failure> {
        let out_of_time = visit.out_of_time.as_deref().cloned();
        out_of_time.or_else(|| Self::settings_missing(turn, visit, step))
    }

    /// Why a visit may not be tried, where its numbers could not be read when the step was entered.
    fn settings_missing(turn: &Turn<'_>, visit: &Visit, step: &Step) -> Option<Failure> {
        let missing = step.settings.is_some() && visit.settings.is_none();
        missing.then(|| {
            turn.fault(
                FaultKind::Input,
                "the step's numbers could not be read when it was entered",
            )
        })
    }
}
