//! The flow itself: its input at the beginning, its output at the end.

use crate::context::View;
use crate::event::EventKind;
use crate::state::{ROOT, State};
use crate::turn::Turn;
use starbridge_flow::graph::{Budget, Fault, FaultKind, Root};
use starbridge_flow::value::Value;

impl State {
    /// After the start: makes the flow's input, if a program does that. A failure of that program is the execution's,
    /// since nothing has run yet.
    pub(crate) fn make_flow_input(&mut self, turn: &mut Turn<'_>) {
        let Some(program) = turn.flow.enter.as_ref() else {
            return;
        };
        let input = self
            .started()
            .map_or_else(Value::empty_object, |started| started.input.clone());
        let view = View {
            state: self,
            step: None,
        };
        let made = self.run_program(turn, program.as_ref(), Root::from(&input), Root::Nothing, &view);
        let place = self.flow_place(ROOT);
        match made {
            Ok(made) => {
                let detail = EventKind::StepStarted {
                    attempt: 1,
                    input: Some(made.value),
                    missing: made.missing,
                    bounds: None,
                };
                self.emit(turn, place, detail);
            }
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.emit(turn, place, EventKind::ExecutionFailed { failure, step: None });
            }
        }
    }

    /// After the last step: ends the flow with its output. If the output can't be made, the flow fails.
    pub(crate) fn end_flow(&mut self, turn: &mut Turn<'_>) {
        let last = self.frame(ROOT).map_or(self.data.last, |frame| frame.last);
        match self.flow_output(turn) {
            Ok(output) => self.emit(turn, self.flow_place(last), EventKind::ExecutionSucceeded { output }),
            Err(_) if self.has_undo(turn.flow, ROOT) => self.begin_undo(turn, ROOT),
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.emit(
                    turn,
                    self.flow_place(last),
                    EventKind::ExecutionFailed { failure, step: None },
                );
            }
        }
    }

    /// The flow's output, with its limits checked.
    pub(crate) fn flow_output(&self, turn: &Turn<'_>) -> Result<Value, Fault> {
        let Some(frame) = self.frame(ROOT) else {
            return Err(Fault::new(FaultKind::Runtime, "the flow's frame is missing"));
        };
        let output = match &turn.flow.leave {
            None => frame.local.to_value(),
            Some(program) => {
                let view = View {
                    state: self,
                    step: None,
                };
                let (input, variables) = (Root::from(&frame.input), Root::from(&frame.local));
                let made = self.run_program(turn, program.as_ref(), input, variables, &view);
                made?.value
            }
        };
        let limit = self.limits.collection_bytes;
        if output.json_len() > limit {
            let cause = format!(
                "the output has {} bytes, more than the limit of {limit}",
                output.json_len()
            );
            return Err(Fault::new(FaultKind::TooLarge, cause));
        }
        if let Some(schema) = &turn.flow.output_schema {
            let budget = Budget::new(&self.limits, output.json_len());
            let found = schema.violations(&output, &budget);
            turn.spend(&budget);
            let violations = budget.within("outputSchema", found)?;
            if !violations.is_empty() {
                let list: Vec<String> = violations
                    .iter()
                    .map(|misfit| format!("{}: {}", misfit.pointer, misfit.message))
                    .collect();
                let cause = format!("the output does not fit the outputSchema: {}", list.join("; "));
                return Err(Fault::new(FaultKind::Output, cause));
            }
        }
        Ok(output)
    }
}
