//! Replay: feeding the recorded signals back must give the recorded events.

use crate::event::{Event, EventId, EventKind};
use crate::signal::{EndBeforeStart, NewOrder, Signal, Timer};
use crate::state::{State, Status};
use starbridge_flow::graph::{FaultKind, Flow};

impl Event {
    /// Whether this event begins a turn: it records a signal.
    pub fn begins_turn(&self) -> bool {
        matches!(
            self.detail,
            EventKind::ExecutionStarted(_)
                | EventKind::TaskSubmitted { .. }
                | EventKind::TaskSubmitFailed { .. }
                | EventKind::TaskSucceeded { .. }
                | EventKind::TaskFailed { .. }
                | EventKind::TaskTimedOut { .. }
                | EventKind::TimerFired { .. }
                | EventKind::LateResultIgnored { .. }
                | EventKind::ManualResolved(_)
                | EventKind::ExecutionStopped { .. }
                | EventKind::ExecutionTimedOut { .. }
                | EventKind::ExecutionRedriven { .. }
                | EventKind::RollbackSkipped { .. }
                | EventKind::ExecutionPaused { .. }
                | EventKind::ExecutionResumed { .. }
                | EventKind::ExecutionReordered { .. }
                | EventKind::ExecutionForked { .. }
                | EventKind::TurnContinued
        )
    }
}

/// How many of these events belong to the turn that the first one begins.
pub fn turn_length(events: &[Event]) -> usize {
    // A start enters a step or ends. If a stop follows at once, the start was declined.
    let declined = matches!(events, [first, next, ..]
        if matches!(first.detail, EventKind::ExecutionStarted(_))
            && matches!(next.detail, EventKind::ExecutionStopped { .. }));
    let own = if declined { 2 } else { 1 };
    let later = events.iter().skip(own).position(Event::begins_turn);
    later.map_or(events.len(), |more| own + more)
}

impl State {
    /// The signal that a turn records. `self` must be the state before that turn. `None` if its first event records no
    /// signal, or none that this state could have taken.
    pub fn recorded_signal(&self, flow: &Flow, turn: &[Event]) -> Option<Signal> {
        let event = turn.first()?;
        let call = event.caused_by;
        Some(match &event.detail {
            EventKind::ExecutionStarted(started) => match turn.get(1).and_then(|next| recorded_end(flow, next)) {
                Some(end) if started.terms.waited.is_some() => Signal::Decline {
                    start: started.clone(),
                    end,
                },
                _ => Signal::Start(started.clone()),
            },
            EventKind::TaskTimedOut { .. } => self.recorded_silence(flow, event)?,
            EventKind::ExecutionTimedOut { .. } => self.recorded_timer(event, call)?,
            EventKind::TimerFired { of } => self.recorded_timer(event, *of)?,
            EventKind::ManualResolved(resolution) => Signal::Resolve {
                request: event.caused_by,
                resolution: resolution.clone(),
            },
            EventKind::ExecutionStopped { failure, by } => Signal::Stop {
                error: Some(failure.error.to_string()),
                cause: failure.cause.to_string(),
                by: by.as_ref().map(ToString::to_string),
                rollback: event.rollback,
                // Histories do not record who asked. One that has Succeeded took a stop only from
                // its parent; an operator's stop in an older history is replayed alike.
                with_parent: self.status() == Status::Succeeded,
            },
            EventKind::TurnContinued => Signal::Continue,
            EventKind::ExecutionForked {
                execution,
                event,
                name,
                by,
            } => Signal::Fork {
                of: execution.clone(),
                event: *event,
                name: name.clone(),
                by: by.clone(),
            },
            EventKind::ExecutionRedriven {
                by, inputs, definition, ..
            } => Signal::Redrive {
                by: (!by.is_empty()).then(|| by.to_string()),
                inputs: inputs.clone(),
                definition: definition.clone(),
            },
            EventKind::RollbackSkipped { by, cause, .. } => Signal::Skip {
                by: (!by.is_empty()).then(|| by.to_string()),
                cause: cause.to_string(),
            },
            EventKind::ExecutionPaused { by, cause, with_parent } => Signal::Pause {
                by: (!by.is_empty()).then(|| by.to_string()),
                cause: cause.to_string(),
                with_parent: *with_parent,
            },
            EventKind::ExecutionResumed { by } => Signal::Resume {
                by: (!by.is_empty()).then(|| by.to_string()),
                with_parent: false,
            },
            EventKind::ExecutionReordered {
                priority,
                order_time,
                by,
            } => Signal::Reorder {
                by: (!by.is_empty()).then(|| by.to_string()),
                order: recorded_order(*priority, *order_time),
            },
            _ => return recorded_report(event),
        })
    }

    fn recorded_silence(&self, flow: &Flow, event: &Event) -> Option<Signal> {
        let EventKind::TaskTimedOut {
            error,
            redeliver,
            holder,
        } = &event.detail
        else {
            return None;
        };
        let (call, holder) = (event.caused_by, holder.clone());
        match *redeliver {
            Some(redeliver) => Some(Signal::LeaseEnded {
                call,
                redeliver,
                holder,
            }),
            None if *error == *flow.fault_names.name(&FaultKind::Heartbeat) => Some(Signal::HeartbeatMissed { call }),
            None if self.is_queued(call) => Some(Signal::TimedOut { call, holder }),
            None => self.recorded_timer(event, call),
        }
    }

    fn recorded_timer(&self, event: &Event, set_by: EventId) -> Option<Signal> {
        self.due(event.time)
            .find(|timer| timer.set_by == set_by)
            .map(|Timer { due, set_by }| Signal::TimerDue(Timer { due, set_by }))
    }
}

fn recorded_order(priority: Option<u8>, order_time: Option<i64>) -> NewOrder {
    NewOrder {
        priority,
        order_time,
        ..NewOrder::default()
    }
}

/// How an execution ended before its first step, if this event, the second of its history, says so. A failure to make
/// the flow's input follows from the start itself.
fn recorded_end(flow: &Flow, event: &Event) -> Option<EndBeforeStart> {
    match &event.detail {
        EventKind::ExecutionStopped { failure, by } => Some(EndBeforeStart::Stopped {
            error: Some(failure.error.to_string()),
            cause: failure.cause.to_string(),
            by: by.as_ref().map(ToString::to_string),
            rollback: event.rollback,
        }),
        EventKind::ExecutionFailed { failure, .. } => {
            let late = flow.fault_names.name(&FaultKind::StartDeadline);
            (flow.enter.is_none() || failure.error == late).then(|| EndBeforeStart::Failed {
                error: failure.error.to_string(),
                cause: failure.cause.to_string(),
            })
        }
        _ => None,
    }
}

/// The report on a call that an event records.
fn recorded_report(event: &Event) -> Option<Signal> {
    let call = event.caused_by;
    Some(match &event.detail {
        EventKind::TaskSubmitted {
            receipt,
            execution,
            version,
        } => Signal::Submitted {
            call,
            receipt: receipt.clone(),
            execution: execution.clone(),
            version: *version,
        },
        EventKind::TaskSubmitFailed { failure, not_sent } => Signal::SubmitFailed {
            call,
            error: failure.error.to_string(),
            cause: failure.cause.to_string(),
            not_sent: *not_sent,
        },
        EventKind::TaskSucceeded {
            result,
            worker,
            held_time,
        } => Signal::Succeeded {
            call,
            result: result.clone(),
            worker: worker.clone(),
            held_time: *held_time,
        },
        EventKind::TaskFailed {
            failure,
            retry_after,
            not_sent,
            holder,
        } => Signal::Failed {
            call,
            error: failure.error.to_string(),
            cause: failure.cause.to_string(),
            retry_after: *retry_after,
            not_sent: *not_sent,
            holder: holder.clone(),
        },
        EventKind::LateResultIgnored { of, .. } => Signal::Failed {
            call: *of,
            error: String::new(),
            cause: String::new(),
            retry_after: None,
            not_sent: false,
            holder: None,
        },
        _ => return None,
    })
}
