//! Deciding how a rollback goes on: one task after the other, last done first undone (section "rollback").
//!
//! | current | what comes |
//! |---|---|
//! | none | `RollbackStarted` of the next |
//! | entered | the input is made: `StepStarted` |
//! | started | `TaskScheduled` |
//! | in flight, retrying, sleeping | waits |
//! | pending | under `poll`: `PollScheduled` |
//! | answered | `RollbackSucceeded` |
//! | polled | `RollbackSucceeded`, `PollScheduled` or `StepFailed` |
//! | faulted | `StepFailed` |
//! | failed | `RetryScheduled` or `RollbackFailed` |

use crate::context::{StepView, View};
use crate::effect::is_queue;
use crate::event::{EventId, EventKind, Failure, ScheduledCall};
use crate::state::{FrameId, State, UndoPhase, UndoRun, resource_again};
use crate::steps::{AfterResult, Tried, after_acknowledgement, retry_scheduled};
use crate::turn::{EventAddress, Turn};
use starbridge_flow::graph::{Call, Fault, Pattern, Poll, Rollback, Root, StepKind, Undo, Values};
use starbridge_flow::time::Seconds;
use starbridge_flow::value::{Object, Text, Value};

impl State {
    /// The address of the rollback in progress in a frame.
    pub(crate) fn undo_place(&self, id: FrameId, caused_by: EventId) -> EventAddress {
        let run = self.undo_run(id);
        EventAddress {
            frame: id,
            step: run.map(|run| run.done.step),
            path: run.map(|run| run.done.path.clone()).unwrap_or_default(),
            caused_by,
            rollback: true,
        }
    }

    fn undo_run(&self, id: FrameId) -> Option<&UndoRun> {
        self.frame(id)?.undoing.as_ref()?.current.as_ref()
    }

    /// Does one thing for the rollback in a frame.
    pub(crate) fn step_undo(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let Some(undoing) = self.frame(id).and_then(|frame| frame.undoing.as_ref()) else {
            return;
        };
        let last = self.frame(id).map_or(self.data.last, |frame| frame.last);
        let Some(run) = &undoing.current else {
            let Some(next) = undoing.queue.last() else {
                return;
            };
            let place = EventAddress {
                frame: id,
                step: Some(next.step),
                path: next.path.clone(),
                caused_by: last,
                rollback: true,
            };
            let of = next.call;
            return self.emit(turn, place, EventKind::RollbackStarted { of });
        };
        let place = self.undo_place(id, last);
        let attempt = run.attempt.max(1);
        match run.phase.clone() {
            UndoPhase::Entered => self.begin_undo_attempt(turn, id, place),
            UndoPhase::Started => self.schedule_undo(turn, id, place),
            UndoPhase::InFlight { .. } | UndoPhase::Retrying { .. } | UndoPhase::Sleeping { .. } => {}
            UndoPhase::Pending { retry_after } => {
                let (poll, calls) = (Self::poll_of(turn, run), run.calls());
                let next = after_acknowledgement(turn, poll, calls, retry_after);
                self.go_on_undoing(turn, place, attempt, next.map(AfterResult::Again));
            }
            UndoPhase::Polled { result } => {
                let next = self.after_result(turn, Self::poll_of(turn, run), &result, run.calls());
                self.go_on_undoing(turn, place, attempt, next);
            }
            UndoPhase::Answered => self.emit(turn, place, EventKind::RollbackSucceeded),
            UndoPhase::Faulted { failure, .. } => self.emit(turn, place, EventKind::StepFailed { failure, attempt }),
            UndoPhase::Failed { failure, retry_after } => {
                self.after_undo_failure(turn, id, place, &failure, retry_after)
            }
        }
    }

    fn rollback_of<'a>(turn: &Turn<'a>, run: &UndoRun) -> Option<&'a Rollback> {
        match &turn.flow.step(run.done.step)?.kind {
            StepKind::Task(task) => task.rollback.as_ref(),
            _ => None,
        }
    }

    fn poll_of<'a>(turn: &Turn<'a>, run: &UndoRun) -> Option<&'a Poll> {
        Self::rollback_of(turn, run)?.poll.as_ref()
    }

    fn go_on_undoing(
        &mut self,
        turn: &mut Turn<'_>,
        place: EventAddress,
        attempt: u32,
        next: Result<AfterResult, Fault>,
    ) {
        let detail = match next {
            Ok(AfterResult::Done) => EventKind::RollbackSucceeded,
            Ok(AfterResult::Again(detail)) => detail,
            Err(fault) => EventKind::StepFailed {
                failure: turn.failure(&fault),
                attempt,
            },
        };
        self.emit(turn, place, detail);
    }

    fn begin_undo_attempt(&mut self, turn: &mut Turn<'_>, id: FrameId, place: EventAddress) {
        let Some(run) = self.undo_run(id) else {
            return;
        };
        let attempt = run.attempt + 1;
        let made = match Self::rollback_of(turn, run).and_then(|rollback| rollback.enter.as_ref()) {
            None => Ok(None),
            Some(program) => {
                let view = self.undo_view(turn, id, run, attempt);
                let (input, variables) = (Root::from(&run.done.input), Root::from(&run.done.result));
                let made = self.run_program(turn, program.as_ref(), input, variables, &view);
                made.map(Some)
            }
        };
        match made {
            Ok(made) => {
                let (input, missing) = made.map_or((None, Vec::new()), |made| (Some(made.value), made.missing));
                let detail = EventKind::StepStarted {
                    attempt,
                    input,
                    missing,
                    bounds: None,
                };
                self.emit(turn, place, detail);
                // The call follows at once, because the input may show its number.
                self.step_undo(turn, id);
            }
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.emit(turn, place, EventKind::StepFailed { failure, attempt });
            }
        }
    }

    fn undo_view<'a>(&'a self, turn: &Turn<'_>, id: FrameId, run: &'a UndoRun, attempt: u32) -> View<'a> {
        let rollback = Self::rollback_of(turn, run);
        let waits = rollback.is_some_and(
            |rollback| matches!(&rollback.undo, Undo::Call(call) if call.pattern == Pattern::WaitForCallback),
        );
        let retry_value = rollback.and_then(|rollback| {
            let values = rollback.retry.iter().find_map(|policy| policy.values.as_ref())?;
            listed(values)?.get(run.retried as usize).cloned()
        });
        View {
            state: self,
            step: turn.flow.step(run.done.step).map(|step| StepView {
                name: step.name.clone(),
                path: &run.done.path,
                entered: run.started,
                visit: 1,
                attempt,
                call: waits.then(|| self.data.last.next().next()),
                polls: rollback.is_some_and(|rollback| rollback.poll.is_some()).then_some(0),
                retry_value,
                failure: self.failure_being_undone(turn, id),
            }),
        }
    }

    /// The failure because of which a rollback undoes.
    fn failure_being_undone(&self, turn: &Turn<'_>, id: FrameId) -> Option<Failure> {
        let known = self.frame(id)?.undoing.as_ref()?.failure.clone();
        known.or_else(|| self.unshown_failure(turn, id))
    }

    /// That failure if it arose when an output was made. No event records it yet, so it is computed again.
    fn unshown_failure(&self, turn: &Turn<'_>, id: FrameId) -> Option<Failure> {
        if self.frame(id)?.undoing.as_ref()?.failure.is_some() {
            return None;
        }
        let fault = match self.output_of(turn, id) {
            Err(fault) if self.visit_and_step(turn, id).is_some() => fault,
            _ => self.flow_output(turn).err()?,
        };
        Some(turn.failure(&fault))
    }

    /// Resource and service parameters of an undoing call with this input.
    fn undo_call(&self, turn: &Turn<'_>, call: &Call, input: Root<'_>) -> Result<(Text, Option<Value>), Fault> {
        Ok((self.resource_of(turn, call, input)?, self.params(turn, call, input)?))
    }

    fn schedule_undo(&mut self, turn: &mut Turn<'_>, id: FrameId, place: EventAddress) {
        let Some(run) = self.undo_run(id) else {
            return;
        };
        let Some(rollback) = Self::rollback_of(turn, run) else {
            return;
        };
        let (resource, pattern, params) = match &rollback.undo {
            Undo::Call(call) => match self.undo_call(turn, call, Root::from(&run.input)) {
                Ok((resource, params)) => (resource, call.pattern, params),
                Err(fault) => {
                    let (failure, attempt) = (turn.failure(&fault), run.attempt);
                    return self.emit(turn, place, EventKind::StepFailed { failure, attempt });
                }
            },
            Undo::Child => {
                let child = run.done.child.clone().unwrap_or_default();
                let params: Object = [("executionId".into(), child.into())].into_iter().collect();
                let resource = match turn.flow.step(run.done.step).map(|step| &step.kind) {
                    Some(StepKind::Task(task)) => resource_again(&task.call, Root::from(&run.done.input)),
                    _ => return,
                };
                (resource, Pattern::Sync, Some(Value::from(params)))
            }
        };
        let polling = run.polling.clone().unwrap_or_default();
        let resource = polling.location.unwrap_or(resource);
        let (timeout_at, timeout) = match (polling.timeout_at, rollback.timeout) {
            (Some(timeout_at), _) => (Some(timeout_at), None),
            (None, Some(bound)) if is_queue(&resource) => (None, Some(bound)),
            (None, timeout) => (timeout.map(|bound| turn.now.plus(bound)), None),
        };
        let detail = EventKind::TaskScheduled(Box::new(ScheduledCall {
            resource,
            pattern,
            attempt: run.attempt,
            call: polling.calls + 1,
            params,
            timeout_at,
            timeout,
            wait: None,
            heartbeat: None,
            priority: None,
        }));
        self.emit(turn, place, detail);
    }

    fn after_undo_failure(
        &mut self,
        turn: &mut Turn<'_>,
        id: FrameId,
        place: EventAddress,
        failure: &Failure,
        retry_after: Seconds,
    ) {
        let Some(run) = self.undo_run(id) else {
            return;
        };
        let tried = Tried {
            retries: &run.retries,
            retried: run.retried,
            failure,
            retry_after,
            redeliver: run.redeliver,
        };
        let policies = Self::rollback_of(turn, run).map(|rollback| rollback.retry.as_slice());
        let next = self.next_retry(turn, id, policies.unwrap_or_default(), &tried, &|values| listed(values));
        let detail = match next {
            Some(next) => retry_scheduled(next, run.attempt + 1, turn.now),
            None => EventKind::RollbackFailed {
                failure: failure.clone(),
                original: self.unshown_failure(turn, id),
            },
        };
        self.emit(turn, place, detail);
    }
}

/// The values of a rollback's policy. Only literal values are allowed: a rollback is no step that is entered.
fn listed(values: &Values) -> Option<Vec<Value>> {
    match values {
        Values::List(values) => Some(values.clone()),
        Values::Program(_) => None,
    }
}
