//! The children of a parallel or foreach.

use super::{DoneList, FrameId};
use crate::event::Failure;
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Budget, Foreach, NumberSource, Root, StepId};
use starbridge_flow::value::{Array, Overlay, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The children of a parallel or foreach in one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Children {
    /// How many children there will be.
    pub(crate) total: u32,
    /// The collection of a foreach is not an array, so no iteration begins.
    pub(crate) invalid: bool,
    /// The items of a foreach, found once. Not part of a checkpoint, since they follow from the input.
    #[serde(skip)]
    pub(crate) collection: Option<Array>,
    /// How many may run at once, where a program said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<u32>,
    /// How many children began.
    pub(crate) entered: u32,
    /// Children that began and have not exited, by number.
    pub(crate) live: BTreeMap<u32, FrameId>,
    /// Children that exited without success, by number. A redrive may resume them.
    #[serde(rename = "parked")]
    pub(crate) retained: BTreeMap<u32, FrameId>,
    /// Those of `retained` that a redrive resumes as soon as the concurrency allows.
    #[serde(default, rename = "again")]
    pub(crate) to_resume: BTreeSet<u32>,
    /// The outcomes by number, up to the last one that is known.
    pub(crate) results: Vec<Outcome>,
    /// The length of the results as JSON, in bytes.
    pub(crate) results_len: usize,
    pub(crate) succeeded: u32,
    /// How many children failed, including those that are being undone.
    pub(crate) failed: u32,
    /// Set if the attempt ends before all children are done.
    pub(crate) closing: Option<Closing>,
    /// What children that exited did and a rollback would undo.
    pub(crate) done: DoneList,
}

/// The outcome of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It is not over, or it never began.
    Open,
    Done(Value),
    Failed(Failure),
    Cancelled,
}

/// Why an attempt ends before all its children are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Closing {
    /// It fails with this error, which arose in that step.
    Failed { failure: Failure, origin: StepId },
    /// As many branches have succeeded as the step wants.
    Met,
}

impl Outcome {
    /// Its length in the list of results, with a comma, in bytes.
    fn json_len(&self) -> usize {
        1 + match self {
            Self::Open | Self::Cancelled => 4,
            Self::Done(result) => result.json_len(),
            Self::Failed(failure) => 20 + failure.error.json_len() + failure.cause.json_len(),
        }
    }
}

impl Children {
    pub(crate) fn new(total: u32) -> Self {
        Self {
            total,
            invalid: false,
            collection: None,
            concurrency: None,
            entered: 0,
            live: BTreeMap::new(),
            retained: BTreeMap::new(),
            to_resume: BTreeSet::new(),
            results: Vec::new(),
            results_len: 0,
            succeeded: 0,
            failed: 0,
            closing: None,
            done: DoneList::default(),
        }
    }

    /// The children of a foreach. Without iterations if the collection is not an array.
    pub(crate) fn of_foreach(foreach: &Foreach, input: &Overlay) -> Self {
        let collection = Self::collected(foreach, input);
        let total = collection.as_ref().map_or(0, Array::len);
        Self {
            invalid: collection.is_none(),
            collection,
            ..Self::new(u32::try_from(total).unwrap_or(u32::MAX))
        }
    }

    /// The items of a foreach. They were found within a budget before the step began, so finding them again needs no
    /// budget.
    pub(crate) fn collected(foreach: &Foreach, input: &Overlay) -> Option<Array> {
        match foreach.collection.find(Root::from(input), &Budget::unlimited()) {
            Ok(Some(Value::Array(items))) => Some(items),
            _ => None,
        }
    }

    /// How many may run at once, by what the step says; all where it says nothing.
    pub(crate) fn most_of(&self, concurrency: Option<&NumberSource>) -> usize {
        let most = match concurrency {
            None => return usize::MAX,
            Some(NumberSource::Fixed(most)) => *most,
            Some(NumberSource::Program(_)) => self.concurrency.map_or(1, u64::from),
        };
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// The size of the items of a foreach, in bytes.
    pub(crate) fn collection_len(&self) -> usize {
        self.collection.as_ref().map_or(0, Array::json_len)
    }

    /// The outcome of the child with this number.
    pub(crate) fn outcome(&self, number: u32) -> &Outcome {
        self.results.get(number as usize).unwrap_or(&Outcome::Open)
    }

    /// Sets the outcome of a child.
    pub(crate) fn set_outcome(&mut self, number: u32, outcome: Outcome) {
        self.results_len += outcome.json_len();
        let index = number as usize;
        if index >= self.results.len() {
            self.results.resize(index + 1, Outcome::Open);
        }
        if let Some(place) = self.results.get_mut(index) {
            *place = outcome;
        }
    }

    /// Clears the outcome of a child. Returns whether it had failed.
    pub(crate) fn reopen(&mut self, number: u32) -> bool {
        let Some(place) = self.results.get_mut(number as usize) else {
            return false;
        };
        let was = std::mem::replace(place, Outcome::Open);
        if was != Outcome::Open {
            self.results_len = self.results_len.saturating_sub(was.json_len());
        }
        matches!(was, Outcome::Failed(_))
    }

    /// Moves a retained child back among the live ones.
    pub(crate) fn release(&mut self, number: u32) -> Option<FrameId> {
        let child = self.retained.remove(&number)?;
        self.live.insert(number, child);
        Some(child)
    }

    /// Whether no child is left to begin and none runs.
    pub(crate) fn is_over(&self) -> bool {
        self.live.is_empty() && self.entered >= self.total
    }

    /// The local data of the step: one entry for each child, in order.
    pub(crate) fn local(&self) -> Array {
        (0..self.total)
            .map(|number| match self.outcome(number) {
                Outcome::Open | Outcome::Cancelled => Value::Null,
                Outcome::Done(result) => result.clone(),
                Outcome::Failed(failure) => Value::Object(
                    [
                        ("error".into(), failure.error.clone().into()),
                        ("cause".into(), failure.cause.clone().into()),
                    ]
                    .into_iter()
                    .collect(),
                ),
            })
            .collect()
    }
}
