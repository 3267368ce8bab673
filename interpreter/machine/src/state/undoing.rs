//! Undoing: what was done, in what order it is undone, and how far a rollback has come (section "rollback").

use super::TimerKey;
use super::done::{Done, DoneList, from_merged, merged};
use crate::event::{EventId, Failure};
use serde::{Deserialize, Serialize};
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_flow::value::{Overlay, Text, Value};

/// A rollback in progress: one call after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Undoing {
    /// What is left to undo; the last entry is undone next.
    pub(crate) queue: DoneList,
    pub(crate) current: Option<UndoRun>,
    /// The failure because of which the rollback undoes. `None` if it arose when an output was made; it can then be
    /// computed again.
    pub(crate) failure: Option<Failure>,
    /// The rollback failed: everything stops.
    pub(crate) failed: bool,
}

/// One task being undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UndoRun {
    pub(crate) done: Done,
    /// The number of its `RollbackStarted` event.
    pub(crate) started: EventId,
    /// The attempt, from 1; 0 before the first.
    pub(crate) attempt: u32,
    pub(crate) retries: Vec<u32>,
    /// How many retries the queue grants for the failure of the latest attempt, where no policy names it.
    #[serde(default)]
    pub(crate) redeliver: u32,
    pub(crate) retried: u32,
    /// The latest call of the undo; 0 if there is none, or the state comes from a checkpoint of an earlier form.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) last_call: EventId,
    /// The input of the undoing call.
    #[serde(serialize_with = "merged", deserialize_with = "from_merged")]
    pub(crate) input: Overlay,
    /// The calls of the latest attempt, where the rollback polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) polling: Option<UndoPolling>,
    pub(crate) phase: UndoPhase,
}

/// The attempt of a rollback that polls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UndoPolling {
    /// How many calls the attempt made.
    pub(crate) calls: u32,
    /// When the attempt times out.
    pub(crate) timeout_at: Option<Timestamp>,
    /// Where the next call asks.
    pub(crate) location: Option<Text>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum UndoPhase {
    /// An attempt is about to begin.
    Entered,
    /// The input is made, and the call is about to be scheduled.
    Started,
    InFlight {
        call: EventId,
    },
    Answered,
    /// The answer is no result yet.
    Pending {
        retry_after: Seconds,
    },
    /// A result came that may or may not end the poll.
    Polled {
        result: Value,
    },
    /// The rollback waits to call again. `deadline` is when its attempt times out.
    Sleeping {
        due: Timestamp,
        timer: EventId,
        deadline: Option<Timestamp>,
    },
    Faulted {
        failure: Failure,
        retry_after: Seconds,
    },
    /// The attempt failed. A retry, or the end of the rollback, is next.
    Failed {
        failure: Failure,
        retry_after: Seconds,
    },
    Retrying {
        due: Timestamp,
        timer: EventId,
    },
}

impl Undoing {
    /// A rollback of these entries, put into the order in which they are undone.
    pub(crate) fn new(mut queue: Vec<Done>, failure: Option<Failure>) -> Self {
        queue.sort_by_key(|done| (done.class, done.order));
        Self {
            queue: queue.into(),
            current: None,
            failure,
            failed: false,
        }
    }

    /// Whether the rollback has something to do now.
    pub(crate) fn has_work(&self) -> bool {
        match &self.current {
            _ if self.failed => false,
            None => true,
            Some(run) => !matches!(
                run.phase,
                UndoPhase::InFlight { .. } | UndoPhase::Retrying { .. } | UndoPhase::Sleeping { .. }
            ),
        }
    }
}

/// Whether this names no event.
fn is_none(event: &EventId) -> bool {
    event.0 == 0
}

impl UndoRun {
    /// How many calls the latest attempt made, where the rollback polls.
    pub(crate) fn calls(&self) -> u32 {
        self.polling.as_ref().map_or(0, |polling| polling.calls)
    }

    /// The timers that the rollback set, except that of its call.
    pub(crate) fn timer_keys(&self) -> impl Iterator<Item = TimerKey> + use<> {
        let (pause, bound) = match self.phase {
            UndoPhase::Retrying { due, timer } => (Some((due, timer)), None),
            UndoPhase::Sleeping { due, timer, deadline } => {
                (Some((due, timer)), deadline.map(|deadline| (deadline, self.started)))
            }
            _ => (None, None),
        };
        pause.into_iter().chain(bound)
    }
}
