//! Deciding: a signal in, the events of one turn out.

use crate::apply::RedrivePlan;
use crate::event::{
    CancelReason, Decision, EditedInput, Event, EventId, EventKind, Holder, LateResultCode, NewDefinition, Resolution,
    StartRecord,
};
use crate::signal::{EndBeforeStart, Rejection, Signal, Timer};
use crate::state::{FrameId, FramePosition, ROOT, State, Status, TimerFor};
use crate::turn::{EventAddress, Turn, cut, failure};
use starbridge_flow::graph::{Budget, FaultKind, Flow, OnTimeout, SchemaViolation};
use starbridge_flow::limits::ERROR_CAUSE_CHARS;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};

/// A decision whose texts are cut to their limits.
fn within_limits(mut resolution: Box<Resolution>) -> Box<Resolution> {
    if let Decision::Fail {
        failure: Some(given), ..
    } = &mut resolution.decision
    {
        *given = failure(&given.error, &given.cause);
    }
    resolution.note = resolution.note.map(|note| cut(&note, ERROR_CAUSE_CHARS));
    resolution
}

impl State {
    /// Takes a signal at the time `now` and pushes the events of one turn to `out`. Each event is applied by the same
    /// [`State::apply`] that replay uses, so the state is up to date when this returns.
    ///
    /// A turn ends when no pure work is left, or at its bounds ([`crate::TURN_EVENTS`], [`crate::TURN_BYTES`]). In
    /// the second case [`State::must_continue`] holds, and [`Signal::Continue`] starts the next turn. A `now` before
    /// the time of the last event counts as that time.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] if the signal does not fit the state, for example a report on a call that is over. The state
    /// and `out` are then unchanged.
    pub fn advance(
        &mut self,
        flow: &Flow,
        signal: Signal,
        now: Timestamp,
        out: &mut Vec<Event>,
    ) -> Result<(), Rejection> {
        self.advance_turn(signal, Turn::new(flow, now.max(self.data.last_time), out))
    }

    /// As [`State::advance`], but the turn ends after `events` events, or when no pure work is left, whatever its bounds. For
    /// replaying a turn that was cut: the bounds may have been others when it was recorded.
    ///
    /// # Errors
    ///
    /// As [`State::advance`].
    pub fn advance_at_most(
        &mut self,
        flow: &Flow,
        signal: Signal,
        now: Timestamp,
        events: usize,
        out: &mut Vec<Event>,
    ) -> Result<(), Rejection> {
        let turn = Turn::new(flow, now.max(self.data.last_time), out);
        self.advance_turn(signal, turn.cut_after(events))
    }

    fn advance_turn(&mut self, signal: Signal, mut turn: Turn<'_>) -> Result<(), Rejection> {
        if let Some(at) = self.data.broken {
            return Err(Rejection::Broken { at });
        }
        match (&signal, self.data.started.is_some()) {
            (Signal::Start(_) | Signal::Decline { .. }, true) => return Err(Rejection::AlreadyStarted),
            (Signal::Start(_) | Signal::Decline { .. }, false) => {}
            (_, false) => return Err(Rejection::NotStarted),
            _ => {}
        }
        self.take(&mut turn, signal)?;
        self.run(&mut turn);
        Ok(())
    }

    /// Handles the frames in the ready queue until it is empty or the turn is full.
    fn run(&mut self, turn: &mut Turn<'_>) {
        while !turn.is_full() && self.data.broken.is_none() && self.data.paused.is_none() {
            let Some(next) = self.frames.next_ready() else {
                return;
            };
            let before = turn.events();
            self.step_frame(turn, next);
            // INVARIANT: a frame in the queue has something to do. Otherwise this loop would never end.
            if turn.events() == before {
                self.data.broken = Some(self.data.last.next());
            }
        }
    }

    fn take(&mut self, turn: &mut Turn<'_>, signal: Signal) -> Result<(), Rejection> {
        match signal {
            Signal::Start(started) => self.take_start(turn, started),
            Signal::Decline { start, end } => {
                self.decline(turn, start, end);
                Ok(())
            }
            Signal::Continue => {
                if !self.must_continue() {
                    return Err(Rejection::NothingToDo);
                }
                self.emit(turn, self.flow_place(self.data.last), EventKind::TurnContinued);
                Ok(())
            }
            Signal::Redrive { by, inputs, definition } => self.take_redrive(turn, by, inputs, definition),
            Signal::Skip { by, cause } => self.take_skip(turn, by, &cause),
            Signal::Reorder { by, order } => self.take_reorder(turn, by, order),
            change @ (Signal::Pause { .. } | Signal::Resume { .. }) => self.change_pause(turn, change),
            Signal::Fork { of, event, name, by } => {
                if event > self.data.last {
                    return Err(Rejection::Unknown);
                }
                let place = self.flow_place(self.data.last);
                let detail = EventKind::ExecutionForked {
                    execution: of,
                    event,
                    name,
                    by,
                };
                self.emit(turn, place, detail);
                Ok(())
            }
            Signal::TimerDue(timer) => self.take_timer(turn, timer),
            stop @ Signal::Stop { .. } => self.take_stop(turn, stop),
            Signal::Resolve { request, resolution } => {
                let (request, frame) = self.manual_request(request).ok_or(Rejection::NotManual)?;
                self.check_resolution(turn.flow, &resolution)?;
                let resolution = within_limits(resolution);
                let place = EventAddress {
                    caused_by: request,
                    ..self.place(frame)
                };
                self.emit(turn, place, EventKind::ManualResolved(resolution));
                Ok(())
            }
            report => self.take_report(turn, report),
        }
    }

    fn take_stop(&mut self, turn: &mut Turn<'_>, stop: Signal) -> Result<(), Rejection> {
        let Signal::Stop {
            error,
            cause,
            by,
            rollback,
            with_parent,
        } = stop
        else {
            return Err(Rejection::Unknown);
        };
        let undoes_success = self.data.status == Status::Succeeded && rollback && with_parent;
        if self.data.status.is_ended() && !undoes_success
            || self.data.ending.is_some()
            || self.data.late_ending.is_some()
        {
            return Err(Rejection::Finished);
        }
        let stopped = turn.flow.fault_names.name(&FaultKind::Stopped);
        let failure = failure(error.as_deref().unwrap_or(&stopped), &cause);
        let by = by.map(Text::from);
        let place = EventAddress {
            rollback,
            ..self.flow_place(ROOT)
        };
        self.emit(turn, place, EventKind::ExecutionStopped { failure, by });
        Ok(())
    }

    /// Whether a start with this input would be taken.
    ///
    /// # Errors
    ///
    /// The [`Rejection`] that the start would get.
    pub fn check_start(&self, flow: &Flow, input: &Value) -> Result<(), Rejection> {
        let (mut events, now) = (Vec::new(), Timestamp::default());
        self.check_flow_input(&mut Turn::new(flow, now, &mut events), input)
    }

    fn check_flow_input(&self, turn: &mut Turn<'_>, input: &Value) -> Result<(), Rejection> {
        let bytes = self.check_input(turn.flow, input)?;
        if let Some(schema) = &turn.flow.input_schema {
            let budget = Budget::new(&self.limits, bytes);
            let found = schema.violations(input, &budget);
            turn.spend(&budget);
            let violations = budget.within("inputSchema", found).unwrap_or_else(|fault| {
                vec![SchemaViolation {
                    pointer: String::new(),
                    message: fault.cause,
                }]
            });
            if !violations.is_empty() {
                return Err(Rejection::InvalidInput(violations));
            }
        }
        Ok(())
    }

    fn take_start(&mut self, turn: &mut Turn<'_>, started: Box<StartRecord>) -> Result<(), Rejection> {
        self.check_flow_input(turn, &started.input)?;
        self.begin(turn, started);
        self.make_flow_input(turn);
        Ok(())
    }

    fn begin(&mut self, turn: &mut Turn<'_>, mut started: Box<StartRecord>) {
        started.definition_hash = turn.flow.hash.clone();
        started.machine = started.needed_version();
        let place = self.flow_place(EventId::default());
        self.emit(turn, place, EventKind::ExecutionStarted(started));
    }

    /// Begins and ends at once: no step is entered, so there is nothing to undo.
    fn decline(&mut self, turn: &mut Turn<'_>, started: Box<StartRecord>, end: EndBeforeStart) {
        self.begin(turn, started);
        let place = self.flow_place(self.data.last);
        match end {
            EndBeforeStart::Stopped {
                error,
                cause,
                by,
                rollback,
            } => {
                let stopped = turn.flow.fault_names.name(&FaultKind::Stopped);
                let failure = failure(error.as_deref().unwrap_or(&stopped), &cause);
                let by = by.map(Text::from);
                let place = EventAddress { rollback, ..place };
                self.emit(turn, place, EventKind::ExecutionStopped { failure, by });
            }
            EndBeforeStart::Failed { error, cause } => {
                let failure = failure(&error, &cause);
                self.emit(turn, place, EventKind::ExecutionFailed { failure, step: None });
            }
        }
    }

    /// The bytes of an input that is given from outside, if it is within the limits.
    fn check_input(&self, flow: &Flow, input: &Value) -> Result<usize, Rejection> {
        if !flow.documents.takes(input) {
            return Err(Rejection::InvalidInput(vec![SchemaViolation {
                pointer: String::new(),
                message: format!("must be an object, not {}", input.kind()),
            }]));
        }
        let bytes = input.json_len();
        let limit = self.limits.collection_bytes;
        if bytes > limit {
            return Err(Rejection::InputTooLarge { bytes, limit });
        }
        let limit = self.limits.data_depth;
        if input.depth() > limit {
            return Err(Rejection::InputTooDeep { limit });
        }
        Ok(bytes)
    }

    fn take_redrive(
        &mut self,
        turn: &mut Turn<'_>,
        by: Option<String>,
        inputs: Vec<EditedInput>,
        definition: Option<NewDefinition>,
    ) -> Result<(), Rejection> {
        let plan = self.redrive_plan(turn.flow).ok_or(Rejection::NotRedrivable)?;
        self.check_edits(turn.flow, &plan, &inputs)?;
        let by = Text::from(by.unwrap_or_default());
        let place = self.flow_place(self.data.last);
        let detail = EventKind::ExecutionRedriven {
            from: plan.from,
            steps: plan.steps(),
            by,
            inputs,
            definition,
        };
        self.emit(turn, place, detail);
        if self.data.flow_input.is_none() {
            self.make_flow_input(turn);
        }
        Ok(())
    }

    /// Whether each edited input is for another step that a redrive enters again, and within the limits of an input.
    fn check_edits(&self, flow: &Flow, plan: &RedrivePlan, inputs: &[EditedInput]) -> Result<(), Rejection> {
        let mut left = plan.enterable.clone();
        for EditedInput { event, input } in inputs {
            if !left.remove(event) {
                return Err(Rejection::NotEnteredAgain {
                    event: *event,
                    known: plan.enterable.iter().copied().collect(),
                });
            }
            self.check_input(flow, input)?;
        }
        Ok(())
    }

    /// Whether the output that an operator gives is within the limits of a step's output.
    fn check_resolution(&self, flow: &Flow, resolution: &Resolution) -> Result<(), Rejection> {
        if let Decision::Succeed { output: Some(output) } = &resolution.decision {
            let (bytes, limit) = (output.json_len(), self.limits.step_data_bytes);
            if bytes > limit {
                return Err(Rejection::OutputTooLarge { bytes, limit });
            }
            self.check_input(flow, output)?;
        }
        Ok(())
    }

    fn take_skip(&mut self, turn: &mut Turn<'_>, by: Option<String>, cause: &str) -> Result<(), Rejection> {
        let (frame, of) = self.failed_undo().ok_or(Rejection::NothingToSkip)?;
        let place = self.undo_place(frame, self.data.last);
        let by = Text::from(by.unwrap_or_default());
        let cause = cut(cause, ERROR_CAUSE_CHARS);
        self.emit(turn, place, EventKind::RollbackSkipped { of, by, cause });
        Ok(())
    }

    /// The request of a step that waits for an operator, given by its own number or by that of the step's
    /// `StepEntered`, and the step's frame.
    fn manual_request(&self, event: EventId) -> Option<(EventId, FrameId)> {
        let entered = |id: FrameId| Some(self.frame(id)?.visit()?.entered);
        let mut waiting = self.data.manual.iter().map(|(request, frame)| (*request, *frame));
        waiting.find(|(request, frame)| *request == event || entered(*frame) == Some(event))
    }

    fn take_timer(&mut self, turn: &mut Turn<'_>, timer: Timer) -> Result<(), Rejection> {
        if timer.due > turn.now || self.data.paused.is_some() {
            return Err(Rejection::Unknown);
        }
        let Some(what) = self.timers.get((timer.due, timer.set_by)) else {
            return Err(Rejection::Unknown);
        };
        let fired = EventKind::TimerFired { of: timer.set_by };
        match what {
            TimerFor::Execution => {
                let place = self.flow_place(timer.set_by);
                // A flow that is being undone can't be completed any more.
                let drain = turn.flow.on_timeout == OnTimeout::Drain && self.data.status == Status::Running;
                self.emit(turn, place, EventKind::ExecutionTimedOut { drain });
            }
            TimerFor::Call => {
                let place = self.call_place(timer.set_by).ok_or(Rejection::Unknown)?;
                let detail = timed_out(turn.flow, &FaultKind::Timeout, None, None);
                self.emit(turn, place, detail);
            }
            TimerFor::Frame(frame) => {
                let place = EventAddress {
                    caused_by: timer.set_by,
                    ..self.place(frame)
                };
                self.emit(turn, place, fired);
            }
            TimerFor::Rollback(frame) => {
                let place = self.undo_place(frame, timer.set_by);
                self.emit(turn, place, fired);
            }
        }
        Ok(())
    }

    fn take_report(&mut self, turn: &mut Turn<'_>, report: Signal) -> Result<(), Rejection> {
        self.check_silence(&report)?;
        let (call, detail) = match report {
            Signal::Submitted {
                call,
                receipt,
                execution,
                version,
            } => {
                if self.calls.get(call).is_some_and(|call| call.submitted) {
                    return Err(Rejection::AlreadyCompleted);
                }
                let detail = EventKind::TaskSubmitted {
                    receipt,
                    execution,
                    version,
                };
                (call, detail)
            }
            Signal::SubmitFailed {
                call,
                error,
                cause,
                not_sent,
            } => {
                let failure = failure(&error, &cause);
                (call, EventKind::TaskSubmitFailed { failure, not_sent })
            }
            Signal::Succeeded {
                call,
                result,
                worker,
                held_time,
            } => {
                let detail = EventKind::TaskSucceeded {
                    result,
                    worker,
                    held_time,
                };
                (call, detail)
            }
            Signal::Failed {
                call,
                error,
                cause,
                retry_after,
                not_sent,
                holder,
            } => {
                let detail = EventKind::TaskFailed {
                    failure: failure(&error, &cause),
                    retry_after,
                    not_sent,
                    holder,
                };
                (call, detail)
            }
            silence => silence_detail(turn.flow, silence).ok_or(Rejection::Unknown)?,
        };
        let Some(place) = self.call_place(call) else {
            return self.take_late_report(turn, call, &detail);
        };
        let detail = self.within_share(turn, &place, detail);
        self.emit(turn, place, detail);
        Ok(())
    }

    /// A report as it is recorded: a result for which the execution has no room is a failure. What is undone is never
    /// refused: its results are not kept.
    fn within_share(&mut self, turn: &Turn<'_>, place: &EventAddress, detail: EventKind) -> EventKind {
        let EventKind::TaskSucceeded { worker, held_time, .. } = &detail else {
            return detail;
        };
        let Some(fault) = self.over_share().filter(|_| !place.rollback) else {
            return detail;
        };
        let held = worker.clone().zip(*held_time);
        EventKind::TaskFailed {
            failure: turn.failure(&fault),
            retry_after: None,
            not_sent: false,
            holder: held.map(|(worker, held_time)| Box::new(Holder { worker, held_time })),
        }
    }

    /// Takes a report on a call that is over. It is noted once if the call was given up, and rejected otherwise.
    fn take_late_report(&mut self, turn: &mut Turn<'_>, call: EventId, detail: &EventKind) -> Result<(), Rejection> {
        if self.data.status.is_ended() {
            return Err(Rejection::Finished);
        }
        if call > self.data.last {
            return Err(Rejection::Unknown);
        }
        if self.calls.is_noted(call) {
            return Err(Rejection::Superseded);
        }
        if !self.calls.is_abandoned(call) {
            return Err(Rejection::AlreadyCompleted);
        }
        if matches!(detail, EventKind::TaskSubmitted { .. } | EventKind::TaskTimedOut { .. }) {
            return Err(Rejection::Superseded);
        }
        let place = self.flow_place(call);
        let detail = EventKind::LateResultIgnored {
            of: call,
            code: LateResultCode::TaskTimedOut,
        };
        self.emit(turn, place, detail);
        Ok(())
    }

    /// The address of a call that is not over.
    fn call_place(&self, call: EventId) -> Option<EventAddress> {
        let in_flight = self.calls.get(call)?;
        Some(if in_flight.rollback {
            self.undo_place(in_flight.frame, call)
        } else {
            EventAddress {
                caused_by: call,
                ..self.place(in_flight.frame)
            }
        })
    }

    /// Does one thing for a frame that is ready.
    fn step_frame(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let Some(frame) = self.frames.get(id) else {
            return;
        };
        if frame.is_rolling_back() {
            return self.step_undo(turn, id);
        }
        if id == ROOT && self.data.ending.is_some() {
            return self.step_ending(turn);
        }
        match &frame.at {
            FramePosition::Before(step) => {
                let step = *step;
                self.enter_step(turn, id, step);
            }
            FramePosition::In(_) => self.step_visit(turn, id),
            FramePosition::Ended if id == ROOT => self.end_flow(turn),
            FramePosition::Ended => self.exit(turn, id, crate::event::Exit::Done),
            FramePosition::Failed(..) => self.leave(turn, id),
            FramePosition::Cancelled(_) => {}
        }
    }

    /// Takes one step towards the end of the execution: first closes what is running, then undoes
    /// what was done.
    fn step_ending(&mut self, turn: &mut Turn<'_>) {
        let reason = match self.data.ending.as_ref().map(|ending| ending.status) {
            Some(Status::TimedOut) => CancelReason::ExecutionTimedOut,
            Some(Status::RollbackFailed) => CancelReason::RollbackFailed,
            _ => CancelReason::Stopped,
        };
        let step = self.close_flow_step();
        if !self.close(turn, step, reason) {
            self.begin_undo(turn, ROOT);
        }
    }
}

/// The call from which no report came in time, and the event that records it.
fn silence_detail(flow: &Flow, report: Signal) -> Option<(EventId, EventKind)> {
    Some(match report {
        Signal::HeartbeatMissed { call } => (call, timed_out(flow, &FaultKind::Heartbeat, None, None)),
        Signal::TimedOut { call, holder } => (call, timed_out(flow, &FaultKind::Timeout, None, holder)),
        Signal::LeaseEnded {
            call,
            redeliver,
            holder,
        } => (call, timed_out(flow, &FaultKind::Heartbeat, Some(redeliver), holder)),
        _ => return None,
    })
}

fn timed_out(flow: &Flow, fault: &FaultKind, redeliver: Option<u32>, holder: Option<Box<Holder>>) -> EventKind {
    let error = flow.fault_names.name(fault);
    EventKind::TaskTimedOut {
        error,
        redeliver,
        holder,
    }
}
