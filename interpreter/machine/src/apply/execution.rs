//! The beginning and the end of an execution.

use crate::event::{Detail, Event, EventId, Failure, Path, Started};
use crate::state::{At, Ending, Frame, ROOT, State, Status};
use crate::turn::failure;
use starbridge_fdl::graph::{FaultKind, Flow, ListId};
use starbridge_fdl::value::{Object, Overlay};
use std::collections::BTreeMap;

impl State {
    pub(super) fn fold_started(&mut self, flow: &Flow, event: &Event, started: &Started) -> Option<()> {
        let first = flow.list(ListId(0))?.steps.first().copied();
        let input = Overlay::new(started.input.clone());
        let root = Frame {
            list: ListId(0),
            parent: None,
            path: Path::default(),
            extra: Object::new(),
            data: input.clone(),
            input,
            local: Object::new(),
            replaced: false,
            at: first.map_or(At::Ended, At::Before),
            visits: BTreeMap::new(),
            done: Vec::new(),
            rewind: None,
            undone: false,
            left_over: None,
            undoing: None,
            last: event.id,
            queued: false,
        };
        self.book.started = Some(Box::new(started.clone()));
        self.book.started_time = event.time;
        self.book.status = Status::Running;
        let bound = event.time.plus_millis(flow.timeout);
        self.book.timers.set_execution_bound(bound, event.id);
        self.add_frame(ROOT, root);
        Some(())
    }

    pub(super) fn fold_flow_input(&mut self, input: &Option<Object>) -> Option<()> {
        let input = input.clone()?;
        let root = self.book.frames.get_mut(&ROOT)?;
        root.last = self.book.last.next();
        root.input = Overlay::new(input.clone());
        root.data = root.input.clone();
        self.book.flow_input = Some(input);
        Some(())
    }

    pub(super) fn fold_end(&mut self, flow: &Flow, event: &Event) -> Option<()> {
        match &event.detail {
            Detail::ExecutionSucceeded { output } => {
                self.book.output = Some(output.clone());
                self.finish(Status::Succeeded);
            }
            Detail::ExecutionFailed { failure, step } => {
                self.leave_list(flow, ROOT);
                self.book.failure = Some(failure.clone());
                self.book.failed_step = *step;
                self.finish(Status::Failed);
            }
            Detail::ExecutionStopped { failure, .. } if self.book.status == Status::Succeeded => {
                self.book.status = Status::RollingBack;
                self.end_from_outside(flow, event.id, Status::RolledBack, failure.clone(), true);
            }
            Detail::ExecutionStopped { failure, .. } => {
                self.end_from_outside(flow, event.id, Status::Stopped, failure.clone(), event.rollback);
            }
            Detail::ExecutionTimedOut => {
                let name = flow.fault_names.name(&FaultKind::ExecutionTimeout);
                let seconds = flow.timeout / 1000;
                let cause = format!("the execution took longer than {seconds} seconds");
                let failure = failure(&name, &cause);
                self.end_from_outside(flow, event.id, Status::TimedOut, failure, true);
            }
            _ => return None,
        }
        Some(())
    }

    /// A stop or timeout: at once, or when the rollback it falls into has ended.
    fn end_from_outside(&mut self, flow: &Flow, event: EventId, status: Status, failure: Failure, undo: bool) {
        self.book.timers.cancel_execution_bound();
        let ending = Ending {
            status,
            failure,
            undo,
            interrupted: None,
        };
        if self.book.undoing > 0 {
            self.book.late_ending = Some(ending);
        } else {
            self.begin_ending(flow, event, ending);
        }
    }

    /// Freezes everything; the flow's frame then closes it.
    pub(crate) fn begin_ending(&mut self, flow: &Flow, event: EventId, ending: Ending) {
        self.book.timers.cancel_execution_bound();
        self.freeze(ROOT);
        self.withdraw(ROOT);
        if let Some(root) = self.book.frames.get_mut(&ROOT) {
            root.last = event;
        }
        self.book.ending = Some(ending);
        self.settle_ending(flow);
    }

    /// Ends the execution if it is being brought to its end and nothing is left to wait for or to undo.
    pub(crate) fn settle_ending(&mut self, flow: &Flow) {
        let Some(ending) = &self.book.ending else {
            return;
        };
        if !self.book.calls.is_empty() || self.book.undoing > 0 {
            self.settle(flow, ROOT);
            return;
        }
        if ending.undo && !self.undo_pile(flow, ROOT).is_empty() {
            self.book.failure = Some(ending.failure.clone());
            self.book.status = Status::RollingBack;
            self.settle(flow, ROOT);
            return;
        }
        let (status, failure) = (ending.status, ending.failure.clone());
        if status != Status::RolledBack {
            self.book.failure = Some(failure);
        }
        self.finish(status);
    }

    fn finish(&mut self, status: Status) {
        self.book.status = status;
        self.book.timers.clear();
        for id in std::mem::take(&mut self.book.ready) {
            if let Some(frame) = self.book.frames.get_mut(&id) {
                frame.queued = false;
            }
        }
    }
}
