//! Task.
//!
//! | run | what comes |
//! |---|---|
//! | ready | `TaskScheduled`: the call is outstanding; `StepFailed` where its parameters can't be made |
//! | in flight | waits for a report or its time |
//! | pending | under `poll`: `PollScheduled` |
//! | answered | `StepSucceeded`; under `poll` perhaps `PollScheduled`; `StepFailed` for a result that is none |
//! | faulted | `StepFailed` |
//! | sleeping | waits for its timer |

use crate::effect::is_queue;
use crate::event::{EventKind, ScheduledCall};
use crate::retry::pause;
use crate::state::{FrameId, State, TaskPhase};
use crate::turn::Turn;
use starbridge_flow::graph::{Call, Fault, FaultKind, Guard, NumberSource, Poll, Root, Step, Task};
use starbridge_flow::time::{Millis, Seconds};
use starbridge_flow::value::Value;
use std::sync::Arc;

/// What a result means for a poll.
enum PollEnd<'p> {
    Done,
    Failed,
    Not(&'p Poll),
}

impl State {
    pub(super) fn step_task(&mut self, turn: &mut Turn<'_>, id: FrameId, task: &Task) {
        let Some(run) = self.visit_and_step(turn, id).and_then(|(visit, _)| visit.task()) else {
            return;
        };
        match &run.phase {
            TaskPhase::Ready => self.schedule_call(turn, id, task),
            TaskPhase::Pending { retry_after } => {
                let retry_after = *retry_after;
                match &task.poll {
                    Some(poll) => self.poll_again(turn, id, poll, retry_after),
                    // Without `poll` an acknowledgement is no answer. Connectors send one only for polls.
                    None => {
                        let failure =
                            turn.fault(FaultKind::Result, "the resource accepted the call but gave no result");
                        self.fail_current(turn, id, failure);
                    }
                }
            }
            TaskPhase::Answered { result } => match result {
                Value::Object(result) => match self.poll_ends(turn, task.poll.as_ref(), Root::Object(result)) {
                    Ok(PollEnd::Failed) => {
                        let failure = turn.fault(FaultKind::Poll, "the result says that it failed: `failWhen` holds");
                        self.fail_current(turn, id, failure);
                    }
                    Ok(PollEnd::Not(poll)) => self.poll_again(turn, id, poll, Seconds::ZERO),
                    Ok(PollEnd::Done) => self.complete(turn, id),
                    Err(fault) => {
                        let failure = turn.failure(&fault);
                        self.fail_current(turn, id, failure);
                    }
                },
                other => {
                    let cause = format!("the result is {}, not an object", other.kind());
                    let failure = turn.fault(FaultKind::Result, cause);
                    self.fail_current(turn, id, failure);
                }
            },
            TaskPhase::Faulted { failure, .. } => {
                let failure = failure.clone();
                self.fail_current(turn, id, failure);
            }
            TaskPhase::InFlight { .. } | TaskPhase::Sleeping { .. } | TaskPhase::Cancelled => {}
        }
    }

    /// Whether a result ends the poll. A task without `poll` ends with its first result.
    fn poll_ends<'p>(&self, turn: &Turn<'_>, poll: Option<&'p Poll>, result: Root<'_>) -> Result<PollEnd<'p>, Fault> {
        let Some(poll) = poll else {
            return Ok(PollEnd::Done);
        };
        let budget = self.budget(&[result]);
        let holds =
            |guard: &Option<Arc<dyn Guard>>| guard.as_ref().map(|guard| guard.holds(result, &budget)).transpose();
        let ends = match holds(&poll.fail_when) {
            Ok(Some(true)) => Ok(PollEnd::Failed),
            Ok(_) => holds(&poll.until).map(|until| match until {
                Some(false) => PollEnd::Not(poll),
                _ => PollEnd::Done,
            }),
            Err(fault) => Err(fault),
        };
        turn.spend(&budget);
        ends
    }

    /// The service parameters of a call with this input.
    pub(crate) fn params(&self, turn: &Turn<'_>, call: &Call, input: Root<'_>) -> Result<Option<Value>, Fault> {
        let Some(params) = &call.params else {
            return Ok(None);
        };
        let budget = self.budget(&[input]);
        let made = params.resolve(input, &budget);
        turn.spend(&budget);
        made.map(Some)
    }

    fn schedule_call(&mut self, turn: &mut Turn<'_>, id: FrameId, task: &Task) {
        let Some((visit, step)) = self.visit_and_step(turn, id) else {
            return;
        };
        let Some(run) = visit.task() else {
            return;
        };
        let resource = run.location.clone().unwrap_or_else(|| task.call.resource.clone());
        let end = |bound| turn.now.plus(bound);
        let made = match run.timeout_at {
            Some(timeout_at) => Ok((Some(timeout_at), None)),
            None if is_queue(&resource) => self.queue_timeout(turn, id, step).map(|bound| (None, bound)),
            None => self.timeout_of_task(turn, id, step).map(|bound| (bound.map(end), None)),
        };
        let made = made.and_then(|times| Ok((times, self.params(turn, &task.call, Root::Overlay(&visit.input))?)));
        let ((timeout_at, timeout), params) = match made {
            Ok(made) => made,
            Err(fault) => {
                let failure = turn.failure(&fault);
                return self.fail_current(turn, id, failure);
            }
        };
        let detail = EventKind::TaskScheduled(Box::new(ScheduledCall {
            resource,
            pattern: task.call.pattern,
            attempt: visit.attempt,
            call: run.calls + 1,
            params,
            timeout_at,
            timeout,
        }));
        self.emit(turn, self.place(id), detail);
    }

    /// How long a worker may hold the task. This time begins when the worker takes it.
    fn queue_timeout(&self, turn: &Turn<'_>, id: FrameId, step: &Step) -> Result<Option<Millis>, Fault> {
        match &step.timeout {
            Some(NumberSource::Fixed(bound)) => Ok(Some(*bound)),
            _ => self.timeout_of_task(turn, id, step),
        }
    }

    fn poll_again(&mut self, turn: &mut Turn<'_>, id: FrameId, poll: &Poll, retry_after: Seconds) {
        let Some(run) = self.visit_and_step(turn, id).and_then(|(visit, _)| visit.task()) else {
            return;
        };
        let calls = run.calls;
        if poll.max_attempts.is_some_and(|most| u64::from(calls) >= most) {
            let cause = format!("{calls} calls gave no result that ends the poll");
            let failure = turn.fault(FaultKind::Poll, cause);
            return self.fail_current(turn, id, failure);
        }
        let pause = pause(poll.interval, poll.max_interval, poll.multiplier, calls);
        let detail = EventKind::PollScheduled {
            call: calls + 1,
            due: turn.now.plus(pause.max(retry_after.into())),
        };
        self.emit(turn, self.place(id), detail);
    }
}
