//! What a history says of each step: its state, how often it ran, which ways were taken.

mod fold;

use starbridge_fdl::graph::{Flow, StepId};
use starbridge_fdl::value::Text;
use starbridge_machine::Event;
use std::collections::BTreeMap;

/// The state a step is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing came to it.
    #[default]
    NotReached,
    /// It was done.
    Succeeded,
    /// Its error was caught.
    Caught,
    /// It was given up.
    Cancelled,
    /// It was undone.
    RolledBack,
    /// It failed.
    Failed,
    /// It could not be undone.
    UndoFailed,
    /// It waits: for a time, for its next attempt, for an operator.
    Waiting,
    /// It is being undone.
    Undoing,
    /// It runs.
    Running,
}

/// What is known of a step, over all the places and times it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The state that matters most among those of all places; in one place the latest counts.
    pub status: Status,
    /// How often it was come to.
    pub visits: u64,
    /// How often it was tried.
    pub attempts: u64,
    /// Of a foreach: items that were done; of a parallel: branches.
    pub children_done: u64,
    /// Of a foreach: items that failed; of a parallel: branches.
    pub children_failed: u64,
    /// What its children are called: `items`, `branches`; empty where there are none.
    pub children: &'static str,
    /// The latest error of the state shown.
    pub error: Option<Text>,
    /// What it waits for, where it does.
    pub waits: Option<&'static str>,
    /// In how many places (iterations) it is in each state.
    pub places: BTreeMap<Status, u64>,
    /// How often it was undone.
    pub undone: u64,
    /// How long its visits took together, in milliseconds.
    pub took: u64,
}

/// A way from one step to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Into the flow.
    Begin,
    /// To the next step, or to the end of the list.
    Next(StepId),
    /// Into an arm of a choice; none: its default.
    Arm(StepId, Option<u32>),
    /// From an arm of a choice to where its `goto` leads.
    Goto(StepId, Option<u32>),
    /// From a step to where a catch clause leads.
    Catch(StepId, StepId),
    /// Into a branch of a parallel.
    Branch(StepId, u32),
}

/// What a history says of a flow's steps.
#[derive(Clone, Debug, Default)]
pub struct Coloring {
    steps: Vec<Marks>,
    ways: BTreeMap<Way, u64>,
    ending: Option<String>,
}

impl Status {
    /// All, in the order of legends.
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

    /// What it is called.
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

    /// Whether something is still to come of it.
    fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Waiting | Self::Undoing)
    }
}

impl Coloring {
    /// Reads a history, whole or as far as it goes. Events of other flows' steps are passed over.
    pub fn from_history(flow: &Flow, history: &[Event]) -> Self {
        fold::fold(flow, history)
    }

    /// What is known of a step; that of a step not reached where it is of another flow.
    pub fn marks(&self, step: StepId) -> Marks {
        self.steps.get(step.0 as usize).cloned().unwrap_or_default()
    }

    /// How the execution ended, in words: its status, how long it took, and the error with its cause. Nothing where it has
    /// not ended.
    pub fn ending(&self) -> Option<&str> {
        self.ending.as_deref()
    }

    /// How often a way was taken.
    pub fn taken(&self, way: Way) -> u64 {
        self.ways.get(&way).copied().unwrap_or(0)
    }

    /// The states that occur, in the order of [`Status::ALL`], and how many steps are in each.
    pub fn occurring(&self) -> Vec<(Status, usize)> {
        Status::ALL
            .into_iter()
            .map(|status| (status, self.steps.iter().filter(|marks| marks.status == status).count()))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl Marks {
    /// What is told before all else: what failed.
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

    /// The state in a few words, what failed first: `done 3×`, `failed: Payment.Refused`, `3 failed, 97 done`.
    pub fn words(&self) -> String {
        let mut words = vec![if self.places.len() > 1 {
            let each = Self::FIRST.iter().filter_map(|status| {
                let count = self.places.get(status)?;
                Some(format!("{count} {}", status.as_str()))
            });
            each.collect::<Vec<_>>().join(", ")
        } else {
            self.words_of_one_state()
        }];
        words.extend(self.words_of_children());
        if self.attempts > self.visits.max(1) {
            words.push(format!("{} attempts", self.attempts));
        }
        if self.undone > 0 && self.status != Status::RolledBack {
            words.push(match self.undone {
                1 => "undone before".to_owned(),
                times => format!("undone {times}× before"),
            });
        }
        if self.took > 0 {
            words.push(super::words::took(self.took));
        }
        let mut words = words.join(" · ");
        // The error may be long, and what is too long is cut.
        if let (true, Some(error)) = (self.places.len() <= 1, &self.error) {
            words.push_str(": ");
            words.push_str(&super::text::clean(error));
        }
        words
    }

    fn words_of_children(&self) -> Option<String> {
        let (done, failed, children) = (self.children_done, self.children_failed, self.children);
        match (done, failed) {
            (0, 0) => None,
            (done, 0) => Some(format!("{done} {children} done")),
            (done, failed) => Some(format!("{children}: {failed} failed, {done} done")),
        }
    }

    fn words_of_one_state(&self) -> String {
        let mut words = match (self.status, self.waits) {
            (Status::Waiting, Some(waits)) => waits.to_owned(),
            (status, _) => status.as_str().to_owned(),
        };
        if self.visits > 1 {
            words.push_str(&format!(" {}×", self.visits));
        }
        words
    }
}
