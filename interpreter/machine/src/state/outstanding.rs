//! What is outstanding: calls and timers. Both follow from the state.

use super::{Frame, InFlight, State, UndoPhase};
use crate::effect::CallToSend;
use crate::event::{Child, EventId, StepPath};
use crate::signal::Timer;
use starbridge_flow::graph::{Budget, Call, DEFAULT_PRIORITY, Flow, Pattern, Root, StepKind, Undo};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};

impl State {
    /// The calls scheduled after `event` that have to be sent, in order. Pass the last event before the turn, or 0
    /// after loading.
    pub fn calls_to_send_after<'a>(&'a self, flow: &'a Flow, event: EventId) -> impl Iterator<Item = CallToSend> + 'a {
        self.calls
            .after(event)
            .filter(|(_, in_flight)| !in_flight.submitted)
            .filter_map(move |(call, _)| self.call_to_send(flow, call))
    }

    /// The timers due at `now`, in the order of (due, event that set them). None while the execution is paused.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = Timer> + '_ {
        let due = self.paused().is_none().then(|| self.timers.due(now));
        due.into_iter().flatten().map(|(due, set_by)| Timer { due, set_by })
    }

    /// When the next timer is due; `None` if none is set, or the execution is paused.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.timers.next_due().filter(|_| self.paused().is_none())
    }

    /// The calls in flight, whether sent or not, in order.
    pub fn calls_in_flight(&self) -> impl Iterator<Item = EventId> + '_ {
        self.calls.iter().map(|(call, _)| call)
    }

    /// The composites around the step of a call that is in flight.
    pub fn call_path(&self, call: EventId) -> Option<&StepPath> {
        let in_flight = self.calls.get(call)?;
        let frame = self.frames.get(in_flight.frame)?;
        match in_flight.rollback {
            true => Some(&frame.undoing.as_ref()?.current.as_ref()?.done.path),
            false => Some(&frame.path),
        }
    }

    /// A call that is in flight, in the form in which it is sent; `None` if it is not in flight.
    pub fn call_to_send(&self, flow: &Flow, call: EventId) -> Option<CallToSend> {
        let in_flight = self.calls.get(call)?;
        let frame = self.frames.get(in_flight.frame)?;
        if in_flight.rollback {
            self.undo_to_send(flow, frame, call, in_flight)
        } else {
            self.task_to_send(flow, frame, call, in_flight)
        }
    }

    fn task_to_send(&self, flow: &Flow, frame: &Frame, call: EventId, in_flight: &InFlight) -> Option<CallToSend> {
        let visit = frame.visit()?;
        let step = flow.step(visit.step)?;
        let StepKind::Task(task) = &step.kind else {
            return None;
        };
        let run = visit.task().filter(|run| run.last_call == call)?;
        let input = visit.input.to_value();
        let params = params_again(&task.call, Root::from(&visit.input));
        let given = visit.settings.as_deref().cloned().unwrap_or_default();
        Some(CallToSend {
            call,
            step: step.name.clone(),
            iterations: iterations(&frame.path),
            resource: (run.location.clone()).unwrap_or_else(|| resource_again(&task.call, Root::from(&visit.input))),
            follow: run.location.is_some(),
            polling: task.poll.is_some(),
            pattern: task.call.pattern,
            params,
            references: self.references_of_task(flow, in_flight.frame, visit, step),
            input,
            attempt: visit.attempt,
            rollback: false,
            child: None,
            visit: visit.entered,
            timeout_at: run.timeout_at,
            timeout: in_flight.timeout,
            heartbeat: given.heartbeat.or(task.heartbeat),
            wait: given.wait.or(task.wait),
            priority: self.priority_of(given.priority.or(task.priority)),
        })
    }

    fn undo_to_send(&self, flow: &Flow, frame: &Frame, call: EventId, in_flight: &InFlight) -> Option<CallToSend> {
        let run = frame.undoing.as_ref()?.current.as_ref()?;
        if !matches!(run.phase, UndoPhase::InFlight { call: waiting } if waiting == call) {
            return None;
        }
        let step = flow.step(run.done.step)?;
        let StepKind::Task(task) = &step.kind else {
            return None;
        };
        let rollback = task.rollback.as_ref()?;
        let input = run.input.to_value();
        let mut references = Vec::new();
        let (resource, pattern, params, child) = match &rollback.undo {
            Undo::Call(undo) => {
                references = self.references_of_undo(rollback.enter.as_deref(), undo, call);
                let params = params_again(undo, Root::from(&input));
                let resource = resource_again(undo, Root::from(&input));
                (resource, undo.pattern, params, None)
            }
            Undo::Child => {
                let resource = resource_again(&task.call, Root::from(&run.done.input));
                (resource, Pattern::Sync, None, run.done.child.clone())
            }
        };
        let location = run.polling.as_ref().and_then(|polling| polling.location.clone());
        Some(CallToSend {
            call,
            step: step.name.clone(),
            iterations: iterations(&run.done.path),
            follow: location.is_some(),
            resource: location.unwrap_or(resource),
            polling: rollback.poll.is_some(),
            pattern,
            params,
            references,
            input,
            attempt: run.attempt,
            rollback: true,
            child,
            visit: run.started,
            timeout_at: in_flight.timeout_at,
            timeout: in_flight.timeout,
            heartbeat: rollback.heartbeat,
            wait: rollback.wait,
            priority: self.priority_of(rollback.priority.or(task.priority)),
        })
    }
}

impl State {
    /// The priority of a task: its own, or that of the execution.
    fn priority_of(&self, own: Option<u8>) -> u8 {
        let of_start = || self.started()?.terms.priority;
        own.or_else(of_start).unwrap_or(DEFAULT_PRIORITY)
    }
}

/// The service parameters of a scheduled call. They were made within a budget when it was scheduled, so making them
/// again needs no budget.
fn params_again(call: &Call, input: Root<'_>) -> Option<Value> {
    call.params.as_ref()?.resolve(input, &Budget::unlimited()).ok()
}

/// The resource of a call that was scheduled with this input, filled in again.
pub(crate) fn resource_again(call: &Call, input: Root<'_>) -> Text {
    call.resource_for(input, &Budget::unlimited())
        .unwrap_or_else(|_| call.resource.clone())
}

fn iterations(path: &StepPath) -> Vec<u32> {
    path.items()
        .iter()
        .filter_map(|item| match item.child {
            Child::Iteration(number) => Some(number),
            _ => None,
        })
        .collect()
}
