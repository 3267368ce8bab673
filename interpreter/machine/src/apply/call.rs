//! Folding of calls: scheduled, acknowledged, answered, given up.

use crate::effect::is_queue;
use crate::event::{Event, EventId, EventKind, Failure, ScheduledCall};
use crate::state::{FrameId, InFlight, State, TaskPhase, TaskRun, TimerFor};
use crate::turn::failure;
use starbridge_flow::graph::{FaultKind, Flow, StepKind};
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_flow::value::{Text, Value};

impl State {
    pub(super) fn fold_call(&mut self, flow: &Flow, event: &Event, id: FrameId) -> Option<()> {
        match &event.detail {
            EventKind::TaskScheduled(scheduled) => self.fold_scheduled(event, id, scheduled)?,
            EventKind::PollScheduled { due, .. } => self.fold_poll(flow, event.id, id, *due)?,
            EventKind::TaskSubmitted { receipt, execution, .. } => {
                self.fold_submitted(flow, event, id, receipt.as_ref(), execution.as_ref())?;
            }
            EventKind::TaskSucceeded { result, held_time, .. } => {
                let bound = self.poll_bound(flow, event, held_time.unwrap_or(event.time));
                let run = self.task_run_of(id, event.caused_by)?;
                run.timeout_at = run.timeout_at.or(bound);
                run.phase = TaskPhase::Answered { result: result.clone() };
                self.close_call(event.caused_by);
            }
            EventKind::TaskFailed {
                failure,
                retry_after,
                not_sent,
                ..
            } => {
                self.fold_call_failed(id, event.caused_by, failure, retry_after.unwrap_or_default(), *not_sent)?;
            }
            EventKind::TaskSubmitFailed { failure, not_sent } => {
                self.fold_call_failed(id, event.caused_by, failure, Seconds::ZERO, *not_sent)?;
            }
            EventKind::TaskTimedOut { error, redeliver, .. } => {
                let run = self.task_run_of(id, event.caused_by)?;
                run.phase = TaskPhase::Faulted {
                    failure: timed_out(flow, error),
                    retry_after: Seconds::ZERO,
                };
                self.frames.get_mut(id)?.active()?.redeliver = redeliver.unwrap_or(0);
                self.give_up_call(event.caused_by);
            }
            EventKind::TaskCancelled { of, .. } => {
                let out_of_time = self.frames.get(id)?.visit()?.out_of_time.as_deref().cloned();
                self.task_run_of(id, *of)?.phase = match out_of_time {
                    Some(failure) => TaskPhase::Faulted {
                        failure,
                        retry_after: Seconds::ZERO,
                    },
                    None => TaskPhase::Cancelled,
                };
                self.give_up_call(*of);
                if self.data.ending.is_some() {
                    self.end_if_closed(flow);
                } else {
                    self.update_ready_queue_outward(flow, id);
                }
                return Some(());
            }
            _ => return None,
        }
        self.update_ready_queue(flow, id);
        if self.data.ending.is_some() {
            self.end_if_closed(flow);
        }
        Some(())
    }

    /// The deadline of an attempt that asks workers repeatedly. It counts from the time when a
    /// worker first took the task.
    fn poll_bound(&self, flow: &Flow, event: &Event, held: Timestamp) -> Option<Timestamp> {
        let step = event.step.and_then(|step| flow.step(step))?;
        let polls = matches!(&step.kind, StepKind::Task(task) if task.poll.is_some());
        let millis = self.calls.get(event.caused_by)?.timeout.filter(|_| polls)?;
        Some(self.counted_from(held).plus(millis))
    }

    fn fold_scheduled(&mut self, event: &Event, id: FrameId, scheduled: &ScheduledCall) -> Option<()> {
        self.frames.get_mut(id)?.active()?.calls = scheduled.call;
        let run = self.task_run(id)?;
        if !matches!(run.phase, TaskPhase::Ready) {
            return None;
        }
        run.calls = scheduled.call;
        run.last_call = event.id;
        run.called = true;
        run.timeout_at = scheduled.timeout_at;
        run.phase = TaskPhase::InFlight { call: event.id };
        self.open_call(event, id, false, scheduled);
        Some(())
    }

    fn fold_submitted(
        &mut self,
        flow: &Flow,
        event: &Event,
        id: FrameId,
        receipt: Option<&Value>,
        execution: Option<&Text>,
    ) -> Option<()> {
        self.calls.acknowledge(event.caused_by)?;
        let step = event.step.and_then(|step| flow.step(step)).map(|step| &step.kind);
        let polls = matches!(step, Some(StepKind::Task(task)) if task.poll.is_some());
        let pending = pending_of(receipt).filter(|_| polls);
        let run = self.task_run(id)?;
        run.child = execution.cloned().or(run.child.take());
        if let Some((location, retry_after)) = pending {
            run.location = location;
            run.phase = TaskPhase::Pending { retry_after };
            self.close_call(event.caused_by);
        }
        Some(())
    }

    fn fold_call_failed(
        &mut self,
        id: FrameId,
        call: EventId,
        failure: &Failure,
        retry_after: Seconds,
        not_sent: bool,
    ) -> Option<()> {
        let run = self.task_run_of(id, call)?;
        // Even if this call was not sent, an earlier one of the attempt may have been. A child that began has acted,
        // however it ended.
        run.called = !not_sent || run.calls > 1 || run.child.is_some();
        run.phase = TaskPhase::Faulted {
            failure: failure.clone(),
            retry_after,
        };
        self.close_call(call);
        Some(())
    }

    fn fold_poll(&mut self, flow: &Flow, event: EventId, id: FrameId, due: Timestamp) -> Option<()> {
        let visit = self.frames.get_mut(id)?.active()?;
        let bounded = visit.fixed_bound(flow.step(visit.step)?).is_some();
        let started = visit.started;
        let run = visit.task_mut()?;
        run.phase = TaskPhase::Sleeping { due, timer: event };
        let deadline = run.timeout_at.filter(|_| bounded);
        visit.deadline = deadline;
        self.timers.set(due, event, TimerFor::Frame(id));
        if let Some(deadline) = deadline {
            self.timers.set(deadline, started, TimerFor::Frame(id));
        }
        Some(())
    }

    fn task_run(&mut self, id: FrameId) -> Option<&mut TaskRun> {
        self.frames.get_mut(id)?.active()?.task_mut()
    }

    /// The task's attempt, if it waits for this call.
    fn task_run_of(&mut self, id: FrameId, call: EventId) -> Option<&mut TaskRun> {
        self.task_run(id)
            .filter(|run| matches!(run.phase, TaskPhase::InFlight { call: waiting } if waiting == call))
    }

    pub(super) fn open_call(&mut self, event: &Event, frame: FrameId, rollback: bool, scheduled: &ScheduledCall) {
        let (call, queued) = (event.id, is_queue(&scheduled.resource));
        let copied = if queued { self.input_bytes(frame, rollback) } else { 0 };
        let in_flight = InFlight {
            frame,
            rollback,
            submitted: false,
            timeout_at: scheduled.timeout_at,
            queued,
            timeout: scheduled.timeout,
            queued_since: queued.then_some(event.time),
            bytes: weight(scheduled).saturating_add(copied),
        };
        self.calls.open(call, in_flight);
        if let Some(due) = scheduled.timeout_at {
            self.timers.set(due, call, TimerFor::Call);
        }
    }

    /// The bytes of the input of a call, unless they are few. The task of a queue has a copy of it, also of what it inherits.
    fn input_bytes(&self, frame: FrameId, rollback: bool) -> usize {
        let bytes = self.frames.get(frame).and_then(|frame| match rollback {
            true => Some(frame.undoing.as_ref()?.current.as_ref()?.input.json_len()),
            false => Some(frame.visit()?.input.json_len()),
        });
        bytes.filter(|bytes| *bytes >= FEW_BYTES).unwrap_or(0)
    }

    /// A call is over: its timer is cancelled.
    pub(super) fn close_call(&mut self, call: EventId) {
        let bound = self.calls.close(call).and_then(|in_flight| in_flight.timeout_at);
        self.timers.cancel(bound.map(|due| (due, call)));
    }

    /// A call is over without its report, which may still come: its timer is cancelled.
    pub(super) fn give_up_call(&mut self, call: EventId) {
        let bound = self.calls.give_up(call).and_then(|in_flight| in_flight.timeout_at);
        self.timers.cancel(bound.map(|due| (due, call)));
    }
}

/// A call's resource and parameters count on their own only from this many bytes on; less counts as a part of its list.
const FEW_BYTES: usize = 4096;

/// The bytes of a call's resource and parameters. Its input counts elsewhere.
fn weight(scheduled: &ScheduledCall) -> usize {
    let params = scheduled.params.as_ref().map_or(0, Value::json_len);
    let made = params.saturating_add(scheduled.resource.len());
    if made < FEW_BYTES { 0 } else { made }
}

/// The failure of a call that timed out, or whose worker missed a heartbeat.
pub(super) fn timed_out(flow: &Flow, error: &Text) -> Failure {
    let silent = *error == *flow.fault_names.name(&FaultKind::Heartbeat);
    let cause = if silent {
        "no heartbeat came in time"
    } else {
        "no answer came in time"
    };
    failure(error, cause)
}

/// Reads a receipt that says there is no result yet. Returns where to ask, and how long to wait at
/// least. `None`: the receipt does not say that.
pub(super) fn pending_of(receipt: Option<&Value>) -> Option<(Option<Text>, Seconds)> {
    let receipt = receipt?.as_object()?;
    let status = receipt.get("status")?.as_number()?.as_u64()?;
    if status != 202 {
        return None;
    }
    let location = receipt.get("location").and_then(Value::as_text).cloned();
    let retry_after = receipt
        .get("retryAfter")
        .and_then(Value::as_number)
        .and_then(serde_json::Number::as_u64);
    Some((location, Seconds(retry_after.unwrap_or(0))))
}
