//! The children of a parallel or foreach.

use super::{Done, FrameId};
use crate::event::Failure;
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Amount, Budget, Foreach, Root, StepId};
use starbridge_flow::value::{Array, Object, Overlay, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The children of a parallel or foreach in one attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Children {
    /// How many there are to be.
    pub(crate) total: u32,
    /// The collection of a foreach is no list, so nothing begins.
    pub(crate) invalid: bool,
    /// The items of a foreach, found once. Not written down: they follow from the input.
    #[serde(skip)]
    pub(crate) collection: Option<Array>,
    /// How many may run at once, where a program said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<u32>,
    /// How many began.
    pub(crate) entered: u32,
    /// Those that began and did not exit, by number.
    pub(crate) live: BTreeMap<u32, FrameId>,
    /// Those that exited without success, by number: a redrive may go on with them.
    #[serde(rename = "parked")]
    pub(crate) retained: BTreeMap<u32, FrameId>,
    /// Those of `retained` that a redrive lets go on as soon as there is room.
    #[serde(default, rename = "again")]
    pub(crate) to_resume: BTreeSet<u32>,
    /// Results by number, as far as there are any.
    pub(crate) results: Vec<Outcome>,
    /// Length of the results as JSON.
    pub(crate) results_len: usize,
    pub(crate) succeeded: u32,
    /// Failures, those being undone included.
    pub(crate) failed: u32,
    /// The attempt is coming to its end before all are done.
    pub(crate) closing: Option<Closing>,
    /// What children did that could be undone, once they exited.
    pub(crate) done: Vec<Done>,
}

/// What became of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// Not over, or never begun.
    Open,
    Done(Object),
    Failed(Failure),
    Cancelled,
}

/// Why an attempt ends before all children are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Closing {
    /// It fails with this error, which arose in that step.
    Failed { failure: Failure, origin: StepId },
    /// As many as wanted have succeeded.
    Met,
}

impl Outcome {
    /// Its length in the list of results, with a comma.
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
            done: Vec::new(),
        }
    }

    /// Those of a foreach, or of what has no collection that is a list.
    pub(crate) fn of_foreach(foreach: &Foreach, input: &Overlay) -> Self {
        let collection = Self::collected(foreach, input);
        let total = collection.as_ref().map_or(0, Array::len);
        Self {
            invalid: collection.is_none(),
            collection,
            ..Self::new(u32::try_from(total).unwrap_or(u32::MAX))
        }
    }

    /// The items of a foreach. They were found within a budget before the step began, so finding them again needs none.
    pub(crate) fn collected(foreach: &Foreach, input: &Overlay) -> Option<Array> {
        match foreach.collection.find(Root::Overlay(input), &Budget::unlimited()) {
            Ok(Some(Value::Array(items))) => Some(items),
            _ => None,
        }
    }

    /// How many may run at once, by what the step says; all where it says nothing.
    pub(crate) fn most_of(&self, concurrency: Option<&Amount>) -> usize {
        let most = match concurrency {
            None => return usize::MAX,
            Some(Amount::Fixed(most)) => *most,
            Some(Amount::Program(_)) => self.concurrency.map_or(1, u64::from),
        };
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Bytes of the items of a foreach.
    pub(crate) fn collection_len(&self) -> usize {
        self.collection.as_ref().map_or(0, Array::json_len)
    }

    /// What became of a child.
    pub(crate) fn outcome(&self, number: u32) -> &Outcome {
        self.results.get(number as usize).unwrap_or(&Outcome::Open)
    }

    /// Notes what became of a child.
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

    /// What became of a child is open again. Answers whether it had failed.
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

    /// A retained child runs again.
    pub(crate) fn release(&mut self, number: u32) -> Option<FrameId> {
        let child = self.retained.remove(&number)?;
        self.live.insert(number, child);
        Some(child)
    }

    /// Whether nothing is left to begin and nothing runs.
    pub(crate) fn is_over(&self) -> bool {
        self.live.is_empty() && self.entered >= self.total
    }

    /// The step's local: one entry a child, in order.
    pub(crate) fn local(&self) -> Array {
        (0..self.total)
            .map(|number| match self.outcome(number) {
                Outcome::Open | Outcome::Cancelled => Value::Null,
                Outcome::Done(result) => result.clone().into(),
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
