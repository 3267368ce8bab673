//! Undoing: what was done, in what order it is undone, and how far that has come (section "rollback").

use crate::event::{EventId, Failure, Path};
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::StepId;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Overlay, Text};

/// A task that has a rollback and was called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) class: DoneClass,
    /// What orders those of one class: the event of completion, or of the call where there was none.
    pub(crate) order: EventId,
    /// Its last call.
    pub(crate) call: EventId,
    pub(crate) step: StepId,
    #[serde(with = "path_items")]
    pub(crate) path: Path,
    #[serde(serialize_with = "as_object", deserialize_with = "from_object")]
    pub(crate) input: Overlay,
    /// What the call gave; `{}` where nothing came.
    pub(crate) result: Object,
    /// The child execution it started.
    pub(crate) child: Option<Text>,
}

/// Undone last first: the failed task, then what was cancelled, then what had completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum DoneClass {
    Completed,
    Cancelled,
    Failed,
}

/// A rollback in progress: one call after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Undoing {
    /// What is left, the next one last.
    pub(crate) queue: Vec<Done>,
    pub(crate) current: Option<UndoRun>,
    /// The failure that is being undone; none where it is that of making an output, which can be made out again.
    pub(crate) failure: Option<Failure>,
    /// It could not be undone: everything stops.
    pub(crate) failed: bool,
}

/// One task being undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UndoRun {
    pub(crate) done: Done,
    /// Its `RollbackStarted`.
    pub(crate) started: EventId,
    /// The attempt, from 1; 0 before the first.
    pub(crate) attempt: u32,
    pub(crate) retries: Vec<u32>,
    /// Retries that the queue gives the failure of the latest attempt, where no policy names it.
    #[serde(default)]
    pub(crate) redeliver: u32,
    pub(crate) retried: u32,
    /// The input of the undoing call.
    #[serde(serialize_with = "as_object", deserialize_with = "from_object")]
    pub(crate) input: Overlay,
    pub(crate) phase: UndoPhase,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum UndoPhase {
    /// An attempt is about to begin.
    Entered,
    /// Its input is made; the call is about to be scheduled.
    Started,
    InFlight {
        call: EventId,
    },
    Answered,
    Faulted {
        failure: Failure,
        retry_after: u64,
    },
    /// The attempt failed: a retry or the end is next.
    Failed {
        failure: Failure,
        retry_after: u64,
    },
    Retrying {
        due: Timestamp,
        timer: EventId,
    },
}

impl Undoing {
    /// Puts what was done into the order of undoing.
    pub(crate) fn new(mut queue: Vec<Done>, failure: Option<Failure>) -> Self {
        queue.sort_by_key(|done| (done.class, done.order));
        Self {
            queue,
            current: None,
            failure,
            failed: false,
        }
    }

    /// Whether something can be done now.
    pub(crate) fn has_work(&self) -> bool {
        match &self.current {
            _ if self.failed => false,
            None => true,
            Some(run) => !matches!(run.phase, UndoPhase::InFlight { .. } | UndoPhase::Retrying { .. }),
        }
    }
}

fn as_object<S: serde::Serializer>(overlay: &Overlay, serializer: S) -> Result<S::Ok, S::Error> {
    overlay.to_object().serialize(serializer)
}

fn from_object<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Overlay, D::Error> {
    Object::deserialize(deserializer).map(Overlay::new)
}

mod path_items {
    use crate::event::{Path, PathItem};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.items().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        Vec::<PathItem>::deserialize(deserializer).map(Path::from)
    }
}
