//! Polling: what a result means, and when the resource is called again. Tasks and rollbacks poll alike (section "tasks").

use crate::event::EventKind;
use crate::retry::pause;
use crate::state::State;
use crate::turn::Turn;
use starbridge_flow::graph::{Fault, FaultKind, Guard, Poll, Root};
use starbridge_flow::time::Seconds;
use starbridge_flow::value::Value;
use std::sync::Arc;

/// What a result means for a poll.
enum PollEnd<'p> {
    Done,
    Failed,
    Not(&'p Poll),
}

/// What comes after a result.
pub(crate) enum AfterResult {
    /// The poll is over, or there is none: the result is final.
    Done,
    /// The resource is called again.
    Again(EventKind),
}

impl State {
    /// What comes after a result. A task without `poll` ends with its first one. `calls` is how many calls the attempt made.
    /// The fault is the attempt's failure.
    pub(crate) fn after_result(
        &self,
        turn: &Turn<'_>,
        poll: Option<&Poll>,
        result: &Value,
        calls: u32,
    ) -> Result<AfterResult, Fault> {
        if !turn.flow.documents.takes(result) {
            let cause = format!("the result is {}, not an object", result.kind());
            return Err(Fault::new(FaultKind::Result, cause));
        }
        match self.poll_ends(turn, poll, Root::from(result))? {
            PollEnd::Done => Ok(AfterResult::Done),
            PollEnd::Failed => {
                let cause = "the result says that it failed: `failWhen` holds";
                Err(Fault::new(FaultKind::Poll, cause))
            }
            PollEnd::Not(poll) => poll_scheduled(turn, poll, calls, Seconds::ZERO).map(AfterResult::Again),
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
}

/// The event by which a resource is called again after an acknowledgement that is no answer.
/// The fault is the attempt's failure.
pub(crate) fn after_acknowledgement(
    turn: &Turn<'_>,
    poll: Option<&Poll>,
    calls: u32,
    retry_after: Seconds,
) -> Result<EventKind, Fault> {
    // Connectors send an acknowledgement only for polls.
    let poll = poll.ok_or_else(|| {
        let cause = "the resource accepted the call but gave no result";
        Fault::new(FaultKind::Result, cause)
    })?;
    poll_scheduled(turn, poll, calls, retry_after)
}

fn poll_scheduled(turn: &Turn<'_>, poll: &Poll, calls: u32, retry_after: Seconds) -> Result<EventKind, Fault> {
    if poll.max_attempts.is_some_and(|most| u64::from(calls) >= most) {
        let cause = format!("{calls} calls gave no result that ends the poll");
        return Err(Fault::new(FaultKind::Poll, cause));
    }
    let pause = pause(poll.interval, poll.max_interval, poll.multiplier, calls);
    Ok(EventKind::PollScheduled {
        call: calls + 1,
        due: turn.now.plus(pause.max(retry_after.into())),
    })
}
