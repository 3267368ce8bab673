//! Task.
//!
//! | run | what comes |
//! |---|---|
//! | ready | `TaskScheduled`: the call is outstanding; `StepFailed` where its parameters can't be made |
//! | in flight | waits for a report or its time; `TaskCancelled` once all attempts together took too long |
//! | pending | under `poll`: `PollScheduled` |
//! | answered | `StepSucceeded`; under `poll` perhaps `PollScheduled`; `StepFailed` for a result that is none |
//! | faulted | `StepFailed` |
//! | sleeping | waits for its timer |

use crate::effect::is_queue;
use crate::event::{CancelReason, EventKind, ScheduledCall};
use crate::state::{FrameId, State, TaskPhase};
use crate::steps::{AfterResult, after_acknowledgement};
use crate::turn::Turn;
use starbridge_flow::graph::{Call, Fault, FaultKind, Root, Step, Task};
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Text, Value};

impl State {
    pub(super) fn step_task(&mut self, turn: &mut Turn<'_>, id: FrameId, task: &Task) {
        let Some(run) = self.visit_and_step(turn, id).and_then(|(visit, _)| visit.task()) else {
            return;
        };
        match &run.phase {
            TaskPhase::Ready => self.schedule_call(turn, id, task),
            TaskPhase::Pending { retry_after } => {
                let next = after_acknowledgement(turn, task.poll.as_ref(), run.calls, *retry_after);
                self.go_on_polling(turn, id, next.map(AfterResult::Again));
            }
            TaskPhase::Answered { result } => {
                let next = self.after_result(turn, task.poll.as_ref(), result, run.calls);
                self.go_on_polling(turn, id, next);
            }
            TaskPhase::Faulted { failure, .. } => {
                let failure = failure.clone();
                self.fail_current(turn, id, failure);
            }
            TaskPhase::InFlight { call } => {
                let detail = EventKind::TaskCancelled {
                    of: *call,
                    reason: CancelReason::Timeout,
                };
                self.emit(turn, self.place(id), detail);
            }
            TaskPhase::Sleeping { .. } | TaskPhase::Cancelled => {}
        }
    }

    fn go_on_polling(&mut self, turn: &mut Turn<'_>, id: FrameId, next: Result<AfterResult, Fault>) {
        match next {
            Ok(AfterResult::Done) => self.complete(turn, id),
            Ok(AfterResult::Again(detail)) => {
                let visit = self.visit_and_step(turn, id).map(|(visit, _)| visit);
                match visit.and_then(|visit| visit.out_of_time.as_deref().cloned()) {
                    Some(failure) => self.fail_current(turn, id, failure),
                    None => self.emit(turn, self.place(id), detail),
                }
            }
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.fail_current(turn, id, failure);
            }
        }
    }

    /// The service parameters of a call with this input.
    pub(crate) fn params(&self, turn: &Turn<'_>, call: &Call, input: Root<'_>) -> Result<Option<Value>, Fault> {
        let Some(params) = &call.params else {
            return Ok(None);
        };
        let budget = self.budget(&[input]);
        let made = params.resolve(input, &budget);
        turn.spend(&budget);
        let made = made?;
        let (bytes, limit) = (made.json_len(), self.limits.collection_bytes);
        if bytes > limit {
            let cause = format!("the call's `serviceParams` have {bytes} bytes, more than the limit of {limit}");
            return Err(Fault::new(FaultKind::TooLarge, cause));
        }
        Ok(Some(made))
    }

    /// The resource of a call with this input.
    pub(crate) fn resource_of(&self, turn: &Turn<'_>, call: &Call, input: Root<'_>) -> Result<Text, Fault> {
        if call.template.is_none() {
            return Ok(call.resource.clone());
        }
        let budget = self.budget(&[input]);
        let made = call.resource_for(input, &budget);
        turn.spend(&budget);
        let made = made?;
        let (bytes, limit) = (made.len(), self.limits.step_data_bytes);
        if bytes > limit {
            let cause = format!("the call's resource has {bytes} bytes, more than the limit of {limit}");
            return Err(Fault::new(FaultKind::TooLarge, cause));
        }
        Ok(made)
    }

    fn schedule_call(&mut self, turn: &mut Turn<'_>, id: FrameId, task: &Task) {
        let Some((visit, step)) = self.visit_and_step(turn, id) else {
            return;
        };
        let Some(run) = visit.task() else {
            return;
        };
        let end = |bound| turn.now.plus(bound);
        let made = match run.timeout_at {
            Some(timeout_at) => Ok((Some(timeout_at), None)),
            None if is_queue(&task.call.resource) => self.queue_timeout(turn, id, step).map(|bound| (None, bound)),
            None => self.timeout_of_task(turn, id, step).map(|bound| (bound.map(end), None)),
        };
        let input = Root::from(&visit.input);
        let made = made.and_then(|times| {
            let resource = match &run.location {
                Some(location) => location.clone(),
                None => self.resource_of(turn, &task.call, input)?,
            };
            Ok((times, resource, self.params(turn, &task.call, input)?))
        });
        let ((timeout_at, timeout), resource, params) = match made {
            Ok(made) => made,
            Err(fault) => {
                let failure = turn.failure(&fault);
                return self.fail_current(turn, id, failure);
            }
        };
        let given = visit.settings.as_deref().cloned().unwrap_or_default();
        let detail = EventKind::TaskScheduled(Box::new(ScheduledCall {
            resource,
            pattern: task.call.pattern,
            attempt: visit.attempt,
            call: run.calls + 1,
            params,
            timeout_at,
            timeout,
            wait: given.wait.filter(|given| Some(*given) != task.wait),
            heartbeat: given.heartbeat.filter(|given| Some(*given) != task.heartbeat),
            priority: given.priority.filter(|given| Some(*given) != task.priority),
        }));
        self.emit(turn, self.place(id), detail);
    }

    /// How long a worker may hold the task. This time begins when the worker takes it.
    fn queue_timeout(&self, turn: &Turn<'_>, id: FrameId, step: &Step) -> Result<Option<Millis>, Fault> {
        let fixed = self
            .visit_and_step(turn, id)
            .and_then(|(visit, _)| visit.fixed_bound(step));
        match fixed {
            Some(bound) => Ok(Some(bound)),
            None => self.timeout_of_task(turn, id, step),
        }
    }
}
