//! Attempts: the input at the beginning, the output at the end.

use crate::context::{StepView, View};
use crate::event::{EventId, EventKind, Failure};
use crate::state::{ArmRun, Children, Frame, FrameId, State, StepRun, TaskPhase, Visit, VisitPhase};
use crate::turn::Turn;
use starbridge_flow::graph::{
    Fault, FaultKind, InputMode, Output, OutputMode, Pattern, Program, Retry, Root, Step, StepKind, Values,
};
use starbridge_flow::value::{Array, Document, Object, Overlay, Text, Value};

impl State {
    /// Begins an attempt: makes its input and checks the limits.
    pub(super) fn begin_attempt(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let over_share = self.over_share();
        let Some((visit, step)) = self.visit_and_step(turn, id) else {
            return;
        };
        if let Some(fault) = self.over_limit(visit) {
            let failure = turn.failure(&fault);
            return self.fail_attempt(turn, id, failure, 0);
        }
        let attempt = visit.attempt + 1;
        if let Some(fault) = over_share {
            let failure = turn.failure(&fault);
            return self.fail_attempt(turn, id, failure, attempt);
        }
        // `TaskScheduled` follows at once on `StepStarted`, so the call's number is known before it is in the
        // history.
        let call = self.data.last.next().next();
        let is_task = matches!(step.kind, StepKind::Task(_));
        let made = match (&visit.edited, &step.enter) {
            (Some(edited), _) => Ok(Some(Output {
                value: edited.as_ref().clone(),
                missing: Vec::new(),
            })),
            (None, InputMode::Merged | InputMode::Input) => Ok(None),
            (None, InputMode::Program(program)) => {
                self.run_enter(turn, id, visit, step, program.as_ref(), attempt, call)
            }
        };
        let made = made.and_then(|made| {
            let mapped = made.as_ref().map(|output| Document::from(output.value.clone()));
            let frame = self.frame_or_fault(id)?;
            let input = frame.step_input(step, mapped);
            let collection = self.collection_len(turn, step, &input)?;
            self.check_size(&input, collection, 0, 0)?;
            self.check_retry_values(turn, frame, visit, step)?;
            let bounds = self.bounds_of_attempt(turn, (frame, visit), step, attempt, &input)?;
            Ok((made, bounds))
        });
        match made {
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.fail_attempt(turn, id, failure, attempt);
            }
            Ok((made, bounds)) => {
                let (input, missing) = made.map_or((None, Vec::new()), |made| (Some(made.value), made.missing));
                let detail = EventKind::StepStarted {
                    attempt,
                    input,
                    missing,
                    bounds,
                };
                self.emit(turn, self.place(id), detail);
                if is_task {
                    self.step_visit(turn, id);
                }
            }
        }
    }

    /// The limit that ends a step before it is tried. No catch in its list can take this fault.
    pub(super) fn over_limit(&self, visit: &Visit) -> Option<Fault> {
        if visit.number > self.limits.step_visits {
            let cause = format!("the step was visited more than {} times", self.limits.step_visits);
            return Some(Fault::new(FaultKind::Limit, cause));
        }
        if self.is_full() {
            let cause = format!("the history has more than {} events", self.limits.history_events);
            return Some(Fault::new(FaultKind::Limit, cause));
        }
        None
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "all of it is what the scope of a program shows"
    )]
    fn run_enter(
        &self,
        turn: &Turn<'_>,
        id: FrameId,
        visit: &Visit,
        step: &Step,
        program: &dyn Program,
        attempt: u32,
        call: EventId,
    ) -> Result<Option<Output>, Fault> {
        let frame = self.frame_or_fault(id)?;
        let token = match &step.kind {
            StepKind::Task(task) if task.call.pattern == Pattern::WaitForCallback => Some(call),
            _ => None,
        };
        let view = self.view(turn, frame, visit, step, Some(attempt), token);
        let (input, variables) = (Root::from(&frame.input), Root::from(&frame.local));
        self.run_program(turn, program, input, variables, &view).map(Some)
    }

    fn frame_or_fault(&self, id: FrameId) -> Result<&Frame, Fault> {
        self.frame(id)
            .ok_or_else(|| Fault::new(FaultKind::Runtime, "a frame is missing"))
    }

    /// The seed of all randomness in this execution.
    pub(crate) fn seed(&self) -> u64 {
        self.started().map_or(0, |started| started.seed)
    }

    /// The `$context` that a program of this visit reads.
    pub(crate) fn view<'a>(
        &'a self,
        turn: &Turn<'_>,
        frame: &'a Frame,
        visit: &'a Visit,
        step: &Step,
        attempt: Option<u32>,
        call: Option<EventId>,
    ) -> View<'a> {
        let attempt = attempt.unwrap_or(visit.attempt);
        let polls = match &step.kind {
            StepKind::Task(task) if task.poll.is_some() => Some(if attempt == visit.attempt { visit.calls } else { 0 }),
            _ => None,
        };
        View {
            state: self,
            step: Some(StepView {
                name: step.name.clone(),
                path: &frame.path,
                entered: visit.entered,
                visit: visit.number,
                attempt,
                call,
                polls,
                retry_value: self.retry_value(turn, frame, visit, &step.retry, visit.retried),
                failure: None,
            }),
        }
    }

    /// The value for the attempt after this many retries, if a policy has values.
    pub(crate) fn retry_value(
        &self,
        turn: &Turn<'_>,
        frame: &Frame,
        visit: &Visit,
        retry: &[Retry],
        retried: u32,
    ) -> Option<Value> {
        let values = retry.iter().find_map(|policy| policy.values.as_ref())?;
        self.retry_values(turn, frame, visit, values)
            .ok()??
            .get(retried as usize)
            .cloned()
    }

    /// The values of a policy. The parent's data does not change during the visit, so every attempt gets the same
    /// values.
    pub(crate) fn retry_values(
        &self,
        turn: &Turn<'_>,
        frame: &Frame,
        visit: &Visit,
        values: &Values,
    ) -> Result<Option<Vec<Value>>, Fault> {
        match values {
            Values::List(values) => Ok(Some(values.clone())),
            Values::Program(program) => {
                let view = View {
                    state: self,
                    step: turn
                        .flow
                        .step(visit.step)
                        .map(|step| StepView::before_attempts(step, frame, visit.entered, visit.number)),
                };
                let (input, variables) = (Root::from(&frame.input), Root::from(&frame.local));
                let made = self.run_program(turn, program.as_ref(), input, variables, &view);
                Ok(match made?.value.get("value") {
                    Some(Value::Array(values)) => Some(values.values().to_vec()),
                    _ => None,
                })
            }
        }
    }

    /// Checks that the values of the step's policies can be found. Later uses treat a fault as no values.
    fn check_retry_values(&self, turn: &Turn<'_>, frame: &Frame, visit: &Visit, step: &Step) -> Result<(), Fault> {
        match step.retry.iter().find_map(|policy| policy.values.as_ref()) {
            Some(values @ Values::Program(program)) if program.may_fail() => {
                self.retry_values(turn, frame, visit, values).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The size of a foreach's collection, in bytes.
    fn collection_len(&self, turn: &Turn<'_>, step: &Step, input: &Overlay) -> Result<usize, Fault> {
        let StepKind::Foreach(foreach) = &step.kind else {
            return Ok(0);
        };
        let input = Root::from(input);
        let budget = self.budget(&[input]);
        let found = foreach.collection.find(input, &budget);
        turn.spend(&budget);
        Ok(found?.map_or(0, |items| items.json_len()))
    }

    /// Checks the limits on a step's data: the size of input, local and output together, and their depth.
    fn check_size(&self, input: &Overlay, collection: usize, local: usize, output: usize) -> Result<(), Fault> {
        let limit = self.limits.collection_bytes;
        if collection > limit {
            let cause = format!("the collection has {collection} bytes, more than the limit of {limit}");
            return Err(Fault::new(FaultKind::TooLarge, cause));
        }
        let counted = input.json_len().saturating_sub(input.exempt() + collection) + local + output;
        let limit = self.limits.step_data_bytes;
        if counted > limit {
            let cause = format!("the step's data has {counted} bytes, more than the limit of {limit}");
            return Err(Fault::new(FaultKind::TooLarge, cause));
        }
        let limit = self.limits.data_depth;
        if input.depth() > limit {
            let cause = format!("the step's data is nested deeper than {limit}");
            return Err(Fault::new(FaultKind::Limit, cause));
        }
        Ok(())
    }

    /// Completes an attempt, if its output can be made.
    pub(super) fn complete(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        match self.output_of(turn, id) {
            Ok((output, missing)) => {
                self.emit(turn, self.place(id), EventKind::StepSucceeded { output, missing });
            }
            // What is inside is undone first. Then the step completes again and fails.
            Err(_) if self.holds_undoable_inside(turn, id) => self.begin_undo(turn, id),
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.fail_current(turn, id, failure);
            }
        }
    }

    fn holds_undoable_inside(&self, turn: &Turn<'_>, id: FrameId) -> bool {
        let composite = self.visit_and_step(turn, id).is_some_and(|(visit, _)| {
            matches!(
                visit.phase,
                VisitPhase::Started(StepRun::Choice(_) | StepRun::Children(_))
            )
        });
        composite && self.has_undo(turn.flow, id)
    }

    /// The output of the attempt a frame is in. `None` means the local, which is the default.
    pub(crate) fn output_of(&self, turn: &Turn<'_>, id: FrameId) -> Result<(Option<Value>, Vec<Text>), Fault> {
        let frame = self.frame_or_fault(id)?;
        let Some((visit, step)) = self.visit_and_step(turn, id) else {
            return Err(Fault::new(FaultKind::Runtime, "a visit is missing"));
        };
        let local = Local::of(visit);
        let (local_len, local_limit) = match &local {
            Local::Results(local) => (0, Some(local.json_len())),
            document => (document.root().json_len(), None),
        };
        let limit = self.limits.collection_bytes;
        if let Some(bytes) = local_limit.filter(|bytes| *bytes > limit) {
            let cause = format!("the results have {bytes} bytes, more than the limit of {limit}");
            return Err(Fault::new(FaultKind::TooLarge, cause));
        }
        let made = match &step.leave {
            OutputMode::Local | OutputMode::Nothing => None,
            OutputMode::Program(program) => {
                let view = self.view(turn, frame, visit, step, None, token_of(visit, step));
                let (input, variables) = (Root::from(&visit.input), local.root());
                let made = self.run_program(turn, program.as_ref(), input, variables, &view);
                Some(made?)
            }
        };
        let output_len = match (&made, &step.leave) {
            (Some(made), _) => made.value.json_len(),
            (None, OutputMode::Local) => local_len,
            (None, _) => 0,
        };
        let deep = made.as_ref().map_or(0, |made| made.value.depth()).max(local.depth());
        if deep > self.limits.data_depth {
            let cause = format!("the step's data is nested deeper than {}", self.limits.data_depth);
            return Err(Fault::new(FaultKind::Limit, cause));
        }
        let collection = visit.children().map_or(0, Children::collection_len);
        self.check_size(&visit.input, collection, local_len, output_len)?;
        Ok(made.map_or((None, Vec::new()), |made| (Some(made.value), made.missing)))
    }

    /// Exits the step, so that its list goes on.
    pub(super) fn exit_step(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let goto = match self.visit_and_step(turn, id).map(|(visit, _)| &visit.phase) {
            Some(VisitPhase::Succeeded { goto, .. }) => *goto,
            _ => None,
        };
        let detail = EventKind::StepExited {
            goto,
            caught: None,
            missing: Vec::new(),
        };
        self.emit(turn, self.place(id), detail);
    }

    /// Makes the failure event of the attempt a frame is in.
    pub(crate) fn fail_current(&mut self, turn: &mut Turn<'_>, id: FrameId, failure: Failure) {
        let attempt = self
            .visit_and_step(turn, id)
            .map_or(1, |(visit, _)| visit.attempt.max(1));
        self.fail_attempt(turn, id, failure, attempt);
    }

    /// Whether the history has as many events as the limit allows.
    pub(crate) fn is_full(&self) -> bool {
        self.data.last.0 >= self.limits.history_events
    }

    pub(super) fn fail_attempt(&mut self, turn: &mut Turn<'_>, id: FrameId, failure: Failure, attempt: u32) {
        // Once the history is full, no failure may be caught or retried. Attempt 0 says so.
        let attempt = if self.is_full() { 0 } else { attempt };
        self.emit(turn, self.place(id), EventKind::StepFailed { failure, attempt });
    }
}

/// The call whose token a program of this visit may read.
fn token_of(visit: &Visit, step: &Step) -> Option<EventId> {
    match &step.kind {
        StepKind::Task(task) if task.call.pattern == Pattern::WaitForCallback => visit.task().map(|run| run.last_call),
        _ => None,
    }
}

/// The local data of a step.
enum Local<'a> {
    /// Nothing made any: it is an empty object.
    Empty(Object),
    /// The result of a task.
    Result(&'a Value),
    /// What an arm made.
    Arm(&'a Document),
    /// One entry for each list of a composite.
    Results(Array),
}

impl<'a> Local<'a> {
    fn of(visit: &'a Visit) -> Self {
        match &visit.phase {
            VisitPhase::Started(StepRun::Task(run)) => match &run.phase {
                TaskPhase::Answered { result } => Self::Result(result),
                _ => Self::Empty(Object::new()),
            },
            VisitPhase::Started(StepRun::Choice(ArmRun::Ended { local, .. })) => Self::Arm(local),
            VisitPhase::Started(StepRun::Children(children)) => Self::Results(children.local()),
            _ => Self::Empty(Object::new()),
        }
    }

    fn root(&self) -> Root<'_> {
        match self {
            Self::Empty(object) => Root::Object(object),
            Self::Result(result) => Root::from(*result),
            Self::Arm(local) => Root::from(*local),
            Self::Results(results) => Root::Array(results),
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::Empty(object) => object.depth(),
            Self::Result(result) => result.depth(),
            Self::Arm(local) => local.depth(),
            Self::Results(results) => results.depth(),
        }
    }
}
