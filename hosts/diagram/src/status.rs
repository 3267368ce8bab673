//! The status of each step in a history: its state, how often it ran, and which ways were taken.

mod fold;
mod places;

use crate::words::Words;
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::time::Millis;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, Failure};
use std::collections::{BTreeMap, HashSet};

/// The status of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It was not reached.
    #[default]
    NotReached,
    /// It ended without an error.
    Succeeded,
    /// It failed, and its error was caught.
    Caught,
    /// It was cancelled.
    Cancelled,
    /// It was undone.
    RolledBack,
    /// It ended with an error that nothing caught.
    Failed,
    /// It could not be undone.
    UndoFailed,
    /// It waits: for a time, for its next attempt, or for an operator.
    Waiting,
    /// It is being undone.
    Undoing,
    /// It runs.
    Running,
}

/// The status of a step, over all places and visits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The most important status of all places. In one place the latest one counts.
    pub status: Status,
    /// How often it was entered.
    pub visits: u64,
    /// How many attempts it had.
    pub attempts: u64,
    /// How many items of a foreach, or branches of a parallel, succeeded.
    pub children_done: u64,
    /// How many items of a foreach, or branches of a parallel, failed.
    pub children_failed: u64,
    /// The word for its children: `items` or `branches`; empty if it has none.
    pub children: &'static str,
    /// The latest error for the status.
    pub error: Option<Text>,
    /// What it waits for, if it waits.
    pub waits: Option<&'static str>,
    /// In how many places (iterations) it has each status.
    pub places: BTreeMap<Status, u64>,
    /// How often it was undone.
    pub undone: u64,
    /// How long its visits took together.
    pub took: Millis,
}

/// A way from one step to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the flow's beginning.
    Begin,
    /// From the step to the next one, or to the end of the list.
    Next(StepId),
    /// Into an arm of a choice; `None` is its default.
    Arm(StepId, Option<u32>),
    /// From an arm of a choice to the target of its `goto`.
    Goto(StepId, Option<u32>),
    /// From a step to the target of a catch clause.
    Catch(StepId, StepId),
    /// Into a branch of a parallel.
    Branch(StepId, u32),
}

/// The status of a flow's steps in a history.
#[derive(Clone, Debug, Default)]
pub struct FlowStatus {
    steps: Vec<Marks>,
    ways: BTreeMap<Way, u64>,
    ending: Option<Ending>,
}

/// How an execution ended.
#[derive(Clone, Debug)]
struct Ending {
    status: &'static str,
    took: Millis,
    step: Option<String>,
    failure: Option<Failure>,
}

impl Status {
    /// All statuses, in the order of legends.
    pub const ALL: [Self; 10] = [
        Self::Succeeded,
        Self::Running,
        Self::Waiting,
        Self::Failed,
        Self::Caught,
        Self::Cancelled,
        Self::Undoing,
        Self::RolledBack,
        Self::UndoFailed,
        Self::NotReached,
    ];

    /// The word for the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotReached => "not reached",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "done",
            Self::Failed => "failed",
            Self::Caught => "caught",
            Self::Cancelled => "cancelled",
            Self::Undoing => "being undone",
            Self::RolledBack => "undone",
            Self::UndoFailed => "could not be undone",
        }
    }

    /// Whether the step has not ended.
    fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Waiting | Self::Undoing)
    }
}

/// A history that is read event by event. A copy shares everything that does not change afterwards.
#[derive(Clone)]
pub struct Folding(fold::Fold);

impl Folding {
    /// No event yet.
    pub fn of(flow: &Flow) -> Self {
        Self(fold::Fold::of(flow))
    }

    /// Takes the next event. An event of a step that the flow does not have is ignored.
    pub fn see(&mut self, flow: &Flow, event: &Event) {
        self.0.see(flow, event);
    }

    /// The status after the events so far.
    pub fn finish(self) -> FlowStatus {
        self.0.finish()
    }

    /// The approximate memory of what was not counted before, in bytes. What copies share counts once.
    pub fn bytes(&self, counted: &mut HashSet<usize>) -> usize {
        self.0.bytes(counted)
    }
}

impl FlowStatus {
    /// Reads a history, complete or not. Events of steps that the flow does not have are ignored.
    pub fn from_history(flow: &Flow, history: &[Event]) -> Self {
        let mut folding = Folding::of(flow);
        for event in history {
            folding.see(flow, event);
        }
        folding.finish()
    }

    /// The marks of a step. A step that the flow does not have counts as not reached.
    pub fn marks(&self, step: StepId) -> Marks {
        self.steps.get(step.0 as usize).cloned().unwrap_or_default()
    }

    /// How the execution ended, in words: its status, how long it took, and the error with its
    /// cause. `None` if it has not ended.
    pub fn ending(&self) -> Option<String> {
        self.ending_in(Words::English)
    }

    /// [`Self::ending`] in a language.
    pub(super) fn ending_in(&self, words: Words) -> Option<String> {
        let ending = self.ending.as_ref()?;
        let mut said = words.say(ending.status).to_owned();
        if ending.took > Millis::ZERO {
            said.push_str(&words.fill(" after {}", &[&super::labels::took(ending.took)]));
        }
        if let Some(failure) = &ending.failure {
            if let Some(step) = &ending.step {
                said.push_str(&words.fill(" in {}", &[step]));
            }
            said.push_str(&format!(": {}", super::text::clean(&failure.error)));
            if !failure.cause.is_empty() {
                said.push_str(&format!(": {}", super::text::clean(&failure.cause)));
            }
        }
        Some(said)
    }

    /// How often a way was taken.
    pub fn taken(&self, way: Way) -> u64 {
        self.ways.get(&way).copied().unwrap_or(0)
    }

    /// The statuses that occur, in the order of [`Status::ALL`], with the number of steps that have each.
    pub fn occurring(&self) -> Vec<(Status, usize)> {
        Status::ALL
            .into_iter()
            .map(|status| (status, self.steps.iter().filter(|marks| marks.status == status).count()))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl Marks {
    /// The statuses in the order of importance: failures come first.
    const FIRST: [Status; 10] = [
        Status::Failed,
        Status::UndoFailed,
        Status::Running,
        Status::Waiting,
        Status::Undoing,
        Status::Caught,
        Status::RolledBack,
        Status::Succeeded,
        Status::Cancelled,
        Status::NotReached,
    ];

    /// The state in a few words, with failures first: `done 3×`, `failed: Payment.Refused`, `3
    /// failed, 97 done`.
    pub fn words(&self) -> String {
        self.words_in(Words::English)
    }

    /// [`Self::words`] in a language.
    pub(super) fn words_in(&self, language: Words) -> String {
        let mut words = vec![if self.places.len() > 1 {
            let each = Self::FIRST.iter().filter_map(|status| {
                let count = self.places.get(status)?;
                Some(format!("{count} {}", language.say(status.as_str())))
            });
            each.collect::<Vec<_>>().join(", ")
        } else {
            self.words_of_one_state(language)
        }];
        words.extend(self.words_of_children(language));
        if self.attempts > self.visits.max(1) {
            words.push(language.fill("{} attempts", &[&self.attempts.to_string()]));
        }
        if self.undone > 0 && self.status != Status::RolledBack {
            words.push(match self.undone {
                1 => language.say("undone before").to_owned(),
                times => language.fill("undone {}× before", &[&times.to_string()]),
            });
        }
        if self.took > Millis::ZERO {
            words.push(super::labels::took(self.took));
        }
        let mut words = words.join(" · ");
        // The error may be long, so it is cut.
        if let (true, Some(error)) = (self.places.len() <= 1, &self.error) {
            words.push_str(": ");
            words.push_str(&super::text::clean(error));
        }
        words
    }

    fn words_of_children(&self, language: Words) -> Option<String> {
        let (done, failed) = (self.children_done, self.children_failed);
        if (done, failed) == (0, 0) {
            return None;
        }
        let children = language.say(self.children);
        let (done, failed) = (done.to_string(), failed.to_string());
        Some(match self.children_failed {
            0 => language.fill("{} {} done", &[&done, children]),
            _ => language.fill("{}: {} failed, {} done", &[children, &failed, &done]),
        })
    }

    fn words_of_one_state(&self, language: Words) -> String {
        let mut words = match (self.status, self.waits) {
            (Status::Waiting, Some(waits)) => language.say(waits).to_owned(),
            (status, _) => language.say(status.as_str()).to_owned(),
        };
        if self.visits > 1 {
            words.push_str(&format!(" {}×", self.visits));
        }
        words
    }
}
