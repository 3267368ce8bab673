//! What follows a failure: a retry, a catch, or the failure leaves the list (sections "errors" and "rollback").

use crate::close::CloseStep;
use crate::event::{Child, EventKind, Exit, Failure};
use crate::retry::{chance, delay};
use crate::state::{Closing, Frame, FrameId, FramePosition, ROOT, State, Visit, VisitPhase};
use crate::steps::{foreach, parallel};
use crate::turn::{EventAddress, Turn};
use starbridge_flow::graph::{CatchTarget, Fault, Output, Retry, Root, Step, StepId, StepKind, Values};
use starbridge_flow::time::{Millis, Seconds, Timestamp};
use starbridge_flow::value::Value;
use std::borrow::Cow;

/// A failure, and what has been tried before it.
pub(crate) struct Tried<'a> {
    /// How many retries of each policy are used.
    pub(crate) retries: &'a [u32],
    /// How many retries are used in total.
    pub(crate) retried: u32,
    pub(crate) failure: &'a Failure,
    /// How long the resource asks to be left alone.
    pub(crate) retry_after: Seconds,
    /// How many retries the queue grants where no policy names the failure.
    pub(crate) redeliver: u32,
}

pub(crate) struct NextRetry {
    pub(crate) policy: u32,
    pub(crate) delay: Millis,
    pub(crate) value: Option<Value>,
}

impl State {
    /// After an attempt failed: makes the event of a retry, of a catch, or of the end of the list.
    pub(super) fn after_failure(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let Some((visit, step)) = self.visit_and_step(turn, id) else {
            return;
        };
        let VisitPhase::Failed {
            failure,
            retry_after,
            uncatchable,
            ..
        } = &visit.phase
        else {
            return;
        };
        let (failure, retry_after, uncatchable) = (failure.clone(), *retry_after, *uncatchable);
        if uncatchable {
            return self.leave(turn, id);
        }
        // Values that could not be evaluated count as none: entering the step has already reported it.
        let resolve = |values: &Values| self.retry_values(turn, self.frame(id)?, visit, values).ok()?;
        let tried = Tried {
            retries: &visit.retries,
            retried: visit.retried,
            failure: &failure,
            retry_after,
            redeliver: visit.redeliver,
        };
        let policies = policies_of(visit, step);
        let hopeless = Self::hopeless(turn, visit, step).is_some();
        let next = match hopeless {
            true => None,
            false => self.next_retry(turn, id, &policies, &tried, &resolve),
        };
        if let Some(next) = next {
            let attempt = visit.attempt + 1;
            let detail = retry_scheduled(next, attempt, turn.now);
            return self.emit(turn, self.place(id), detail);
        }
        let names = &turn.flow.fault_names;
        let clause = step.catch.iter().find(|clause| {
            clause
                .errors
                .iter()
                .any(|matcher| matcher.matches(&failure.error, names))
        });
        match clause.map(|clause| clause.target) {
            Some(CatchTarget::Goto(goto)) => self.catch(turn, id, goto, &failure),
            Some(CatchTarget::Manual) => self.emit(turn, self.place(id), EventKind::ManualRequested(failure)),
            None => self.leave(turn, id),
        }
    }

    /// The retry that a failure leads to. The first policy that matches decides alone. If none matches, the queue
    /// whose worker missed a heartbeat decides: it counts as a policy after those of the step.
    pub(crate) fn next_retry(
        &self,
        turn: &Turn<'_>,
        id: FrameId,
        policies: &[Retry],
        tried: &Tried<'_>,
        resolve: &dyn Fn(&Values) -> Option<Vec<Value>>,
    ) -> Option<NextRetry> {
        let names = &turn.flow.fault_names;
        let found = policies.iter().enumerate().find(|(_, policy)| {
            policy
                .errors
                .iter()
                .any(|matcher| matcher.matches(&tried.failure.error, names))
        });
        let (index, policy, most) = match found {
            Some((index, policy)) => (index, Some(policy), policy.max_attempts),
            None => (policies.len(), None, u64::from(tried.redeliver)),
        };
        let k = tried.retries.get(index).copied().unwrap_or(0) + 1;
        if u64::from(k) > most {
            return None;
        }
        let value = match policies.iter().find_map(|policy| policy.values.as_ref()) {
            None => None,
            Some(values) => {
                let next = resolve(values).and_then(|values| values.get(tried.retried as usize + 1).cloned());
                if policy.is_some_and(|policy| policy.values.is_some()) && next.is_none() {
                    return None;
                }
                next
            }
        };
        let chance = chance(self.seed(), self.data.last.next().0, id);
        Some(NextRetry {
            policy: u32::try_from(index).unwrap_or(u32::MAX),
            delay: policy
                .map_or(Millis::ZERO, |policy| delay(policy, k, chance))
                .max(tried.retry_after.into()),
            value,
        })
    }

    /// Catches a failure: the list goes on at a sibling step, with what `errorMappings` make of the error.
    fn catch(&mut self, turn: &mut Turn<'_>, id: FrameId, goto: StepId, failure: &Failure) {
        match self.run_failed(turn, id, failure) {
            Ok(made) => {
                let detail = EventKind::StepExited {
                    goto: Some(goto),
                    caught: Some(made.value),
                    missing: made.missing,
                };
                self.emit(turn, self.place(id), detail);
            }
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.fail_attempt(turn, id, failure, 0);
            }
        }
    }

    fn run_failed(&self, turn: &Turn<'_>, id: FrameId, failure: &Failure) -> Result<Output, Fault> {
        let (Some((visit, step)), Some(frame)) = (self.visit_and_step(turn, id), self.frame(id)) else {
            return Ok(Output::default());
        };
        let Some(program) = &step.failed else {
            return Ok(Output::default());
        };
        let error: Value = [
            ("error".into(), Value::from(failure.error.clone())),
            ("cause".into(), Value::from(failure.cause.clone())),
        ]
        .into_iter()
        .collect();
        let view = self.view(turn, frame, visit, step, None, None);
        let (input, variables) = (Root::from(&visit.input), Root::from(&error));
        self.run_program(turn, program.as_ref(), input, variables, &view)
    }

    /// A failure leaves the list of a frame. What must be undone is undone first.
    pub(crate) fn leave(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let Some(frame) = self.frame(id) else {
            return;
        };
        let Some((failure, origin)) = failure_of(frame) else {
            return;
        };
        let undoable = self.has_undo(turn.flow, id);
        match frame.parent {
            _ if undoable && self.is_undone_alone(turn, frame) => self.begin_undo(turn, id),
            None => {
                let place = self.flow_place(frame.last);
                let step = Some(origin);
                self.emit(turn, place, EventKind::ExecutionFailed { failure, step });
            }
            // A failure that may not be caught inside the arm may be caught outside of it.
            Some((parent, Child::Arm(_))) => {
                let place = EventAddress {
                    caused_by: frame.last,
                    ..self.place(parent)
                };
                let attempt = self
                    .frame(parent)
                    .and_then(Frame::visit)
                    .map_or(1, |visit| visit.attempt);
                let attempt = if self.is_full() { 0 } else { attempt };
                self.emit(turn, place, EventKind::StepFailed { failure, attempt });
            }
            Some(_) => self.exit(turn, id, Exit::Failed(failure)),
        }
    }

    /// Whether the list of a frame is undone on its own: the flow's list, an arm's, and that of a child whose failure
    /// is tolerated.
    fn is_undone_alone(&self, turn: &Turn<'_>, frame: &Frame) -> bool {
        let Some((parent, child)) = frame.parent else {
            return true;
        };
        if matches!(child, Child::Arm(_)) {
            return true;
        }
        let Some((visit, step)) = self.visit_and_step(turn, parent) else {
            return false;
        };
        let Some(children) = visit.children() else {
            return false;
        };
        match &step.kind {
            StepKind::Foreach(foreach) => foreach::tolerates(foreach, children.failed + 1, children.total),
            StepKind::Parallel(parallel) => parallel::tolerates(parallel, children, |other| {
                Some(other) == child.number() || self.is_branch_failing(children, other)
            }),
            _ => false,
        }
    }

    /// A composite's attempt ends before all its children are done: closes what runs, then undoes it if the attempt
    /// failed.
    pub(super) fn step_closing(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        let reason = self.closing_reason(visit);
        let failure = Self::closing_failure(visit);
        let met = visit
            .children()
            .is_some_and(|children| matches!(children.closing, Some(Closing::Met)));
        let step = self.close_step(id);
        if step != CloseStep::Clear {
            self.close(turn, step, reason);
        } else if met {
            self.complete(turn, id);
        } else if self.has_undo(turn.flow, id) {
            self.begin_undo(turn, id);
        } else if let Some(failure) = failure {
            self.fail_current(turn, id, failure);
        }
    }

    /// Begins the rollback that a failure in this frame requires.
    pub(crate) fn begin_undo(&mut self, turn: &mut Turn<'_>, id: FrameId) {
        let mut stack = self.undo_stack(turn.flow, id);
        stack.sort_by_key(|done| (done.class, done.order));
        let Some(first) = stack.pop() else {
            return;
        };
        let place = EventAddress {
            frame: id,
            step: Some(first.step),
            path: first.path,
            caused_by: self
                .frame(if self.data.ending.is_some() { ROOT } else { id })
                .map_or(self.data.last, |frame| frame.last),
            rollback: true,
        };
        self.emit(turn, place, EventKind::RollbackStarted { of: first.call });
    }
}

/// The event of a retry. Its delay is the time it really waits, which is shorter than asked for near the end of time.
pub(crate) fn retry_scheduled(next: NextRetry, attempt: u32, now: Timestamp) -> EventKind {
    let due = now.plus(next.delay);
    EventKind::RetryScheduled {
        policy: next.policy,
        attempt,
        delay: due.since(now),
        due,
        value: next.value,
    }
}

/// The policies of a step, with the numbers that its input gave.
fn policies_of<'f>(visit: &Visit, step: &'f Step) -> Cow<'f, [Retry]> {
    let given = visit.settings.as_ref().map_or(&[][..], |settings| &settings.retry);
    if given.is_empty() {
        return Cow::Borrowed(&step.retry);
    }
    let with = |(number, policy): (u32, &Retry)| match given.iter().find(|given| given.policy == number) {
        Some(given) => policy.with(given),
        None => policy.clone(),
    };
    Cow::Owned((0..).zip(&step.retry).map(with).collect())
}

fn failure_of(frame: &Frame) -> Option<(Failure, StepId)> {
    match &frame.at {
        FramePosition::Failed(_, failure, origin) => Some((failure.clone(), *origin)),
        FramePosition::In(visit) => match &visit.phase {
            VisitPhase::Failed { failure, origin, .. } => Some((failure.clone(), *origin)),
            _ => None,
        },
        _ => None,
    }
}
