//! Why an execution is idle, in one word.

use super::{InFlight, State, StepRun, TaskPhase, TimerFor, UndoPhase, VisitPhase};
use crate::event::EventId;
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::value::Text;

/// How many calls, and how many timers, are looked at. If there are more, any of them will do.
const LOOKED_AT: usize = 64;

/// The kinds of waits of an idle execution, apart from tasks of queues. Waits that need a person
/// come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenWaitKind {
    /// An operator's decision.
    Manual,
    /// A report from outside.
    Callback,
    /// The end of a child.
    Child,
    /// The time of the next attempt.
    Retry,
    /// The time of the next call.
    Poll,
    /// The end of a wait.
    Timer,
}

/// What an execution that only waits is waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWait {
    /// Who or what ends the wait.
    pub kind: OpenWaitKind,
    /// The id of the child, or the name of the step.
    pub of: Text,
}

impl State {
    /// What the execution waits for, if [`State::is_asleep`] holds and no call of it is in a queue:
    /// of several, the one that most needs a person. If there are very many, not all are looked at.
    pub fn open_wait(&self, flow: &Flow) -> Option<OpenWait> {
        self.manual_wait(flow)
            .or_else(|| self.call_wait(flow))
            .or_else(|| self.timer_wait(flow))
    }

    fn manual_wait(&self, flow: &Flow) -> Option<OpenWait> {
        let frame = self.data.manual.values().next()?;
        let step = self.frame(*frame)?.visit()?.step;
        Some(of_step(flow, OpenWaitKind::Manual, step))
    }

    fn call_wait(&self, flow: &Flow) -> Option<OpenWait> {
        let mut child = None;
        for (call, in_flight) in self.calls.iter().take(LOOKED_AT) {
            match self.wait_of(flow, call, in_flight) {
                Some(wait) if wait.kind == OpenWaitKind::Callback => return Some(wait),
                wait => child = child.or(wait),
            }
        }
        child
    }

    fn wait_of(&self, flow: &Flow, call: EventId, in_flight: &InFlight) -> Option<OpenWait> {
        let frame = self.frame(in_flight.frame)?;
        let (step, child) = match in_flight.rollback {
            true => {
                let run = frame.undoing.as_ref()?.current.as_ref()?;
                // A task that started a child may be undone by another call.
                (run.done.step, self.call_to_send(flow, call)?.child)
            }
            false => {
                let visit = frame.visit()?;
                (visit.step, visit.task().and_then(|run| run.child.clone()))
            }
        };
        Some(match child {
            Some(of) => {
                let kind = OpenWaitKind::Child;
                OpenWait { kind, of }
            }
            None => of_step(flow, OpenWaitKind::Callback, step),
        })
    }

    fn timer_wait(&self, flow: &Flow) -> Option<OpenWait> {
        let timers = self.timers.iter().take(LOOKED_AT);
        let waits = timers.filter_map(|(_, what)| self.pause_of(flow, what));
        waits.min_by_key(|wait| wait.kind)
    }

    /// The pause that a timer ends; `None` for a timer that only bounds something.
    fn pause_of(&self, flow: &Flow, what: TimerFor) -> Option<OpenWait> {
        let frame = self.frames.get_of(what)?;
        let undo = frame.undoing.as_ref().and_then(|undoing| undoing.current.as_ref());
        if let Some(run) = undo {
            let kind = match run.phase {
                UndoPhase::Retrying { .. } => OpenWaitKind::Retry,
                UndoPhase::Sleeping { .. } => OpenWaitKind::Poll,
                _ => return None,
            };
            return Some(of_step(flow, kind, run.done.step));
        }
        let visit = frame.visit()?;
        let kind = match &visit.phase {
            VisitPhase::Retrying { .. } => OpenWaitKind::Retry,
            VisitPhase::Started(StepRun::Wait(_)) => OpenWaitKind::Timer,
            VisitPhase::Started(StepRun::Task(run)) if matches!(run.phase, TaskPhase::Sleeping { .. }) => {
                OpenWaitKind::Poll
            }
            _ => return None,
        };
        Some(of_step(flow, kind, visit.step))
    }
}

fn of_step(flow: &Flow, kind: OpenWaitKind, step: StepId) -> OpenWait {
    let of = flow.step(step).map(|step| step.name.clone()).unwrap_or_default();
    OpenWait { kind, of }
}
