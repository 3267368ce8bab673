//! Folding of the beginning and the end of an execution.

use crate::event::{Event, EventId, EventKind, Failure, StartRecord, StepPath};
use crate::state::{Ending, Frame, ROOT, State, Status};
use crate::turn::failure;
use starbridge_flow::graph::{FaultKind, Flow, ListId};
use starbridge_flow::value::{Overlay, Value};

impl State {
    pub(super) fn fold_started(&mut self, flow: &Flow, event: &Event, started: &StartRecord) -> Option<()> {
        flow.list(ListId(0))?;
        let input = Overlay::new(started.input.clone());
        let root = Frame::new(flow, ListId(0), None, StepPath::default(), input, event.id);
        self.data.started = Some(Box::new(started.clone()));
        self.data.started_time = event.time;
        self.data.status = Status::Running;
        let bound = event.time.plus(flow.timeout);
        self.timers.set_execution_bound(bound, event.id);
        self.frames.add(ROOT, root);
        Some(())
    }

    pub(super) fn fold_flow_input(&mut self, input: &Option<Value>) -> Option<()> {
        let input = input.clone()?;
        let root = self.frames.get_mut(ROOT)?;
        root.last = self.data.last.next();
        root.input = Overlay::new(input.clone());
        root.data = root.input.clone();
        self.data.flow_input = Some(input);
        Some(())
    }

    pub(super) fn fold_end(&mut self, flow: &Flow, event: &Event) -> Option<()> {
        if matches!(event.detail, EventKind::ExecutionStopped { .. }) {
            self.end_pause(event.time);
        }
        match &event.detail {
            EventKind::ExecutionSucceeded { output } => {
                self.data.output = Some(output.clone());
                self.finish(Status::Succeeded);
            }
            EventKind::ExecutionFailed { failure, step } => {
                self.leave_list(flow, ROOT);
                self.data.failure = Some(failure.clone());
                self.data.failed_step = *step;
                self.finish(Status::Failed);
            }
            EventKind::ExecutionStopped { failure, .. } if self.data.status == Status::Succeeded => {
                self.data.status = Status::RollingBack;
                self.end_from_outside(flow, event.id, Status::RolledBack, failure.clone(), true);
            }
            EventKind::ExecutionStopped { failure, .. } => {
                self.end_from_outside(flow, event.id, Status::Stopped, failure.clone(), event.rollback);
            }
            EventKind::ExecutionTimedOut { drain: true } => self.begin_draining(flow),
            EventKind::ExecutionTimedOut { drain: false } => {
                self.end_from_outside(flow, event.id, Status::TimedOut, timed_out(flow), true);
            }
            _ => return None,
        }
        Some(())
    }

    /// The time is over: nothing new begins from now on.
    fn begin_draining(&mut self, flow: &Flow) {
        self.timers.cancel_execution_bound();
        self.data.draining = true;
        for id in self.frames.ids() {
            self.update_ready_queue(flow, id);
        }
    }

    /// Ends the execution if it drains, no call is in flight, and the flow is not complete.
    pub(super) fn end_if_drained(&mut self, flow: &Flow, event: EventId) {
        let over = self.data.status != Status::Running || self.data.ending.is_some();
        if over || !self.calls.is_empty() || self.frames.has_rollback() || self.frames.next_ready().is_some() {
            return;
        }
        let ending = Ending {
            status: Status::TimedOut,
            failure: timed_out(flow),
            undo: true,
            interrupted: None,
        };
        self.begin_ending(flow, event, ending);
    }

    /// A stop or timeout. It takes effect at once, or, if a rollback is in progress, when that has ended.
    fn end_from_outside(&mut self, flow: &Flow, event: EventId, status: Status, failure: Failure, undo: bool) {
        self.timers.cancel_execution_bound();
        let ending = Ending {
            status,
            failure,
            undo,
            interrupted: None,
        };
        if self.frames.has_rollback() {
            self.data.late_ending = Some(ending);
        } else {
            self.begin_ending(flow, event, ending);
        }
    }

    /// Suspends everything. The flow's frame then closes it.
    pub(crate) fn begin_ending(&mut self, flow: &Flow, event: EventId, ending: Ending) {
        self.timers.cancel_execution_bound();
        self.suspend(ROOT);
        self.cancel_waits(ROOT);
        if let Some(root) = self.frames.get_mut(ROOT) {
            root.last = event;
        }
        self.data.ending = Some(ending);
        self.end_if_closed(flow);
    }

    /// Ends the execution if it is being brought to its end and nothing is left to wait for or to undo.
    pub(crate) fn end_if_closed(&mut self, flow: &Flow) {
        let Some(ending) = &self.data.ending else {
            return;
        };
        if !self.calls.is_empty() || self.frames.has_rollback() {
            self.update_ready_queue(flow, ROOT);
            return;
        }
        if ending.undo && self.has_undo(flow, ROOT) {
            self.data.failure = Some(ending.failure.clone());
            self.data.status = Status::RollingBack;
            self.update_ready_queue(flow, ROOT);
            return;
        }
        let (status, failure) = (ending.status, ending.failure.clone());
        if status != Status::RolledBack {
            self.data.failure = Some(failure);
        }
        self.finish(status);
    }

    fn finish(&mut self, status: Status) {
        self.data.status = status;
        self.data.paused = None;
        self.timers.clear();
        self.frames.clear_ready();
    }
}

/// The failure of an execution that took too long.
fn timed_out(flow: &Flow) -> Failure {
    let name = flow.fault_names.name(&FaultKind::ExecutionTimeout);
    let seconds = flow.timeout.as_secs();
    failure(&name, &format!("the execution took longer than {seconds} seconds"))
}
