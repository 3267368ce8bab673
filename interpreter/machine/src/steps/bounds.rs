//! Bounds of a step that programs compute: how long an attempt may take, and how many lists of a
//! composite may run at once.
//!
//! Bounds of a whole attempt are computed once, when it begins, and recorded in its `StepStarted`,
//! so folding runs no program.

use crate::event::Bounds;
use crate::state::{Frame, FrameId, State, Visit};
use crate::turn::Turn;
use starbridge_flow::graph::{Fault, FaultKind, NumberSource, Program, Root, Step, StepKind};
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Overlay, Value};

/// Where a program is run: the attempt, and the step's own input in it.
struct Attempt<'a> {
    frame: &'a Frame,
    visit: &'a Visit,
    step: &'a Step,
    number: u32,
    input: Root<'a>,
}

impl State {
    /// The bounds that programs give an attempt that is about to begin; nothing where all are fixed. A task's time belongs to its
    /// calls.
    pub(super) fn bounds_of_attempt(
        &self,
        turn: &Turn<'_>,
        (frame, visit): (&Frame, &Visit),
        step: &Step,
        number: u32,
        input: &Overlay,
    ) -> Result<Option<Box<Bounds>>, Fault> {
        let concurrency = match &step.kind {
            StepKind::Foreach(foreach) => Some(&foreach.concurrency),
            StepKind::Parallel(parallel) => parallel.concurrency.as_ref(),
            _ => None,
        };
        let concurrency = concurrency.and_then(program_of);
        let is_task = matches!(step.kind, StepKind::Task(_));
        let timeout = step.timeout.as_ref().and_then(program_of).filter(|_| !is_task);
        if concurrency.is_none() && timeout.is_none() {
            return Ok(None);
        }
        let attempt = Attempt {
            frame,
            visit,
            step,
            number,
            input: Root::from(input),
        };
        let number = |program: Option<&dyn Program>, what| {
            program
                .map(|program| self.number_of(turn, &attempt, program, what))
                .transpose()
        };
        let concurrency = number(concurrency, "concurrency")?;
        if concurrency == Some(0) {
            return Err(Fault::new(FaultKind::Input, "the concurrency is 0: nothing could run"));
        }
        Ok(Some(Box::new(Bounds {
            concurrency: concurrency.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            timeout: number(timeout, "time-out")?.map(Millis),
        })))
    }

    /// How long an attempt of a task may take, where a program says it.
    pub(super) fn timeout_of_task(&self, turn: &Turn<'_>, id: FrameId, step: &Step) -> Result<Option<Millis>, Fault> {
        let Some(program) = step.timeout.as_ref().and_then(program_of) else {
            return Ok(None);
        };
        let (Some(frame), Some((visit, _))) = (self.frame(id), self.visit_and_step(turn, id)) else {
            return Ok(None);
        };
        let attempt = Attempt {
            frame,
            visit,
            step,
            number: visit.attempt,
            input: Root::from(&visit.input),
        };
        self.number_of(turn, &attempt, program, "time-out")
            .map(|made| Some(Millis(made)))
    }

    fn number_of(
        &self,
        turn: &Turn<'_>,
        attempt: &Attempt<'_>,
        program: &dyn Program,
        what: &str,
    ) -> Result<u64, Fault> {
        let view = self.view(
            turn,
            attempt.frame,
            attempt.visit,
            attempt.step,
            Some(attempt.number),
            None,
        );
        let made = self.run_program(turn, program, attempt.input, Root::Nothing, &view)?;
        let made = made.value.get("value");
        let number = made.and_then(Value::as_number).and_then(|number| number.as_u64());
        number.ok_or_else(|| {
            let made = made.map_or("nothing", Value::kind);
            Fault::new(FaultKind::Input, format!("the {what} is {made}, not a whole number"))
        })
    }
}

fn program_of<T>(amount: &NumberSource<T>) -> Option<&dyn Program> {
    match amount {
        NumberSource::Fixed(_) => None,
        NumberSource::Program(program) => Some(program.as_ref()),
    }
}
