//! The compiled flow as a whole.

use super::{
    CatchTarget, Documents, FaultNames, ListId, OutputPassing, Program, Schema, Source, Step, StepId, StepKind,
};
use crate::time::Millis;
use crate::value::{Text, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// A flow ready to run. [`Flow::new`] makes it from its parts and checks that every number in them
/// refers to something.
#[derive(Clone, Debug)]
pub struct Flow {
    parts: FlowParts,
    names: HashMap<Text, StepId>,
}

/// The parts that a front end gives to a flow.
#[derive(Clone, Debug)]
pub struct FlowParts {
    /// The definition's own name; shown, never interpreted.
    pub name: Option<Text>,
    /// Hash of the definition: two texts with the same hash mean the same flow.
    pub hash: Text,
    /// The definition as a value, as an exported history carries it.
    pub definition: Value,
    /// The steps, by [`StepId`].
    pub steps: Vec<Step>,
    /// The lists, by [`ListId`]; the first is the flow's own.
    pub lists: Vec<List>,
    /// Makes the flow's input from the execution's input.
    pub enter: Option<Arc<dyn Program>>,
    /// Makes the output from the flow's input and variables.
    pub leave: Option<Arc<dyn Program>>,
    /// How a step's output is passed on.
    pub passing: OutputPassing,
    /// The documents of the language.
    pub documents: Documents,
    /// The time limit of the execution.
    pub timeout: Millis,
    /// What happens at that limit.
    pub on_timeout: OnTimeout,
    /// The schema of the execution's input.
    pub input_schema: Option<Schema>,
    /// What the output must fit; anything if there is none.
    pub output_schema: Option<Schema>,
    /// The concurrency keys.
    pub concurrency: Vec<ConcurrencyKey>,
    /// The language's names for faults.
    pub fault_names: FaultNames,
}

/// What happens when an execution takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTimeout {
    /// Running steps are cancelled, and what was done is undone.
    #[default]
    Cancel,
    /// Nothing new begins, and calls that are out may end. If that does not complete the flow, what
    /// was done is undone.
    Drain,
}

/// A list of steps that run one after the other.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Its steps in order.
    pub steps: Vec<StepId>,
    /// Whether some edge in it leads backward, so that a step may be visited more than once.
    pub loops: bool,
}

/// A mutex or a job limit (section "starting").
#[derive(Clone, Debug)]
pub struct ConcurrencyKey {
    /// The pool that the key belongs to; `None`: the flow's own.
    pub pool: Option<Text>,
    /// A constant, or a lookup in the execution's input.
    pub key: Source,
    /// How many executions with the same key may run.
    pub limit: u64,
}

/// Why parts do not make a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowError {
    /// There is no list 0.
    Empty,
    /// Two steps have this name.
    DuplicateName(Text),
    /// This step refers to a step or list that does not exist.
    Dangling(Text),
}

impl Flow {
    /// Puts the parts together. Every id in them must refer to something, and every name must be
    /// unique.
    ///
    /// # Errors
    ///
    /// A [`FlowError`] if there is no list, two steps have one name, or a step refers to one that
    /// does not exist.
    pub fn new(parts: FlowParts) -> Result<Self, FlowError> {
        if parts.lists.is_empty() {
            return Err(FlowError::Empty);
        }
        let mut names = HashMap::default();
        for (index, step) in parts.steps.iter().enumerate() {
            let id = StepId(u32::try_from(index).unwrap_or(u32::MAX));
            if names.insert(step.name.clone(), id).is_some() {
                return Err(FlowError::DuplicateName(step.name.clone()));
            }
            if !leads_somewhere(step, &parts) {
                return Err(FlowError::Dangling(step.name.clone()));
            }
        }
        Ok(Self { parts, names })
    }

    /// The step of that number; `None` for a number of another flow.
    pub fn step(&self, id: StepId) -> Option<&Step> {
        self.parts.steps.get(id.0 as usize)
    }

    /// The list of that number.
    pub fn list(&self, id: ListId) -> Option<&List> {
        self.parts.lists.get(id.0 as usize)
    }

    /// Looks a step up; names are unique in a flow.
    pub fn step_named(&self, name: &str) -> Option<StepId> {
        self.names.get(name).copied()
    }

    /// Whether one of its steps may ask an operator.
    pub fn may_ask_operator(&self) -> bool {
        let manual = |step: &Step| step.catch.iter().any(|catch| catch.target == CatchTarget::Manual);
        self.steps.iter().any(manual)
    }
}

impl std::ops::Deref for Flow {
    type Target = FlowParts;
    fn deref(&self) -> &FlowParts {
        &self.parts
    }
}

/// Whether all edges of a step lead to existing steps and lists.
fn leads_somewhere(step: &Step, parts: &FlowParts) -> bool {
    let step_there = |id: StepId| (id.0 as usize) < parts.steps.len();
    let list_there = |id: ListId| (id.0 as usize) < parts.lists.len();
    let catches = step.catch.iter().all(|catch| match catch.target {
        CatchTarget::Goto(id) => step_there(id),
        CatchTarget::Manual => true,
    });
    let inside = match &step.kind {
        StepKind::Choice(choice) => choice
            .arms
            .iter()
            .chain(&choice.default)
            .all(|arm| arm.list.is_none_or(list_there) && arm.goto.is_none_or(step_there)),
        StepKind::Parallel(parallel) => parallel.branches.iter().all(|branch| {
            list_there(branch.list)
                && branch
                    .depends_on
                    .iter()
                    .all(|&on| (on as usize) < parallel.branches.len())
        }),
        StepKind::Foreach(foreach) => list_there(foreach.list),
        _ => true,
    };
    catches && inside && list_there(step.list) && step.next.is_none_or(step_there)
}
