//! The steps of a compiled flow.

use super::{
    Budget, Fault, Guard, ListId, Lookup, Matcher, Parameters, Program, ResourceTemplate, RetrySettings, Root,
    SettingsReader, StepId,
};
use crate::time::Millis;
use crate::value::{Text, Value};
use std::sync::Arc;

/// A node of the graph, with all that the machine needs to run it.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name, unique in the flow.
    pub name: Text,
    /// The list it stands in.
    pub list: ListId,
    /// Its place in that list, from 0.
    pub position: u32,
    /// What it does.
    pub kind: StepKind,
    /// How its input is made.
    pub enter: InputMode,
    /// How its output is made.
    pub leave: OutputMode,
    /// Makes the output of the step after its error was caught; `None`: `{}`.
    pub failed: Option<Arc<dyn Program>>,
    /// The next sibling; `None`: the list ends here.
    pub next: Option<StepId>,
    /// Retry policies; the first that matches decides.
    pub retry: Vec<Retry>,
    /// Catch clauses; the first that matches decides.
    pub catch: Vec<Catch>,
    /// The time limit of each attempt.
    pub timeout: Option<NumberSource<Millis>>,
    /// Reads from the step's input, when it is entered, the numbers that are not fixed.
    pub settings: Option<Arc<dyn SettingsReader>>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// Calls a resource.
    Task(Box<Task>),
    /// Does nothing.
    Pass,
    /// Ends at a time, or after a while.
    Wait(Wait),
    /// Runs the first arm whose condition holds.
    Choice(Choice),
    /// Runs branches in parallel.
    Parallel(Parallel),
    /// Runs a list of steps for each item of a collection.
    Foreach(Foreach),
    /// Ends its list well.
    Succeed,
    /// Fails its list.
    Fail(Fail),
}

/// How a step's input is made.
#[derive(Clone, Debug)]
pub enum InputMode {
    /// The parent's input with the parent's variables over it (FDL).
    Merged,
    /// The parent's input as it is now.
    Input,
    /// The result of the program over the parent's input and variables.
    Program(Arc<dyn Program>),
}

/// How a step's output is made.
#[derive(Clone, Debug)]
pub enum OutputMode {
    /// The step's local.
    Local,
    /// `{}`.
    Nothing,
    /// The result of the program over the step's own input and local.
    Program(Arc<dyn Program>),
}

/// How a step's output is passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputPassing {
    /// It is merged into the list's variables (FDL). A document that is not an object replaces
    /// them.
    #[default]
    Merge,
    /// It becomes the input of the next step, and the list's result.
    Replace,
}

/// The values that a language accepts as a document: an input, an output, or the result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Documents {
    /// Objects only (FDL). Any other result of a call is a fault of the kind `Result`.
    #[default]
    Objects,
    /// Any JSON value.
    Any,
}

impl Documents {
    /// Whether the language accepts this value as a document.
    pub fn takes(self, value: &Value) -> bool {
        self == Self::Any || value.as_object().is_some()
    }
}

/// A number or a span of time that is fixed in the text, or made at run time from the step's own
/// input.
#[derive(Clone, Debug)]
pub enum NumberSource<T = u64> {
    /// The number.
    Fixed(T),
    /// The member `value` of the program's result; a span of time is in milliseconds.
    Program(Arc<dyn Program>),
}

/// A value: fixed, or looked up in the step's own input.
#[derive(Clone, Debug)]
pub enum Source {
    /// Fixed in the text.
    Constant(Value),
    /// Found in the step's own input.
    Lookup(Arc<dyn Lookup>),
}

/// In the middle of 0 (last) to 9 (first).
pub const DEFAULT_PRIORITY: u8 = 5;
/// The default number of foreach items that are worked on at once.
pub const DEFAULT_CONCURRENCY: u64 = 100;

/// A call of a resource.
#[derive(Clone, Debug)]
pub struct Task {
    /// The resource and how it is called.
    pub call: Call,
    /// The polling, if the call is repeated until a condition holds.
    pub poll: Option<Poll>,
    /// How it is undone.
    pub rollback: Option<Rollback>,
    /// From 0 to 9; 9 goes first. `None`: the execution's priority.
    pub priority: Option<u8>,
    /// The longest time without a heartbeat of a worker or callback.
    pub heartbeat: Option<Millis>,
    /// The longest wait in a queue before a worker takes it.
    pub wait: Option<Millis>,
    /// The time limit of all attempts of a visit together, including pauses.
    pub total_timeout: Option<Millis>,
}

/// A resource, and how it is called.
#[derive(Clone, Debug)]
pub struct Call {
    /// The resource as written: `resourceArn`, `resource` or `action`.
    pub resource: Text,
    /// Fills in the resource, if parts of it are made from the call's input.
    pub template: Option<Arc<dyn ResourceTemplate>>,
    /// When the task counts as done.
    pub pattern: Pattern,
    /// Its parameters; FDL's `serviceParams`.
    pub params: Option<Arc<dyn Parameters>>,
}

impl Call {
    /// The resource that is called with this input.
    ///
    /// # Errors
    ///
    /// The fault with which the call fails, if the input has no fitting value for a part.
    pub fn resource_for(&self, input: Root<'_>, budget: &Budget) -> Result<Text, Fault> {
        match &self.template {
            None => Ok(self.resource.clone()),
            Some(template) => template.fill(input, budget),
        }
    }
}

/// When a task counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// With the answer to the request.
    RequestResponse,
    /// When the started work has ended.
    Sync,
    /// When a report with the call's token arrives.
    WaitForCallback,
}

impl Pattern {
    /// The language's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestResponse => "requestResponse",
            Self::Sync => "sync",
            Self::WaitForCallback => "waitForCallback",
        }
    }

    /// The pattern for a word of the language.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::RequestResponse, Self::Sync, Self::WaitForCallback]
            .into_iter()
            .find(|pattern| pattern.as_str() == word)
    }
}

/// Repeats a call until a condition holds (section "tasks", `poll`).
#[derive(Clone, Debug)]
pub struct Poll {
    /// The poll is done when this holds for the result.
    pub until: Option<Arc<dyn Guard>>,
    /// The poll fails when this holds for the result. It is evaluated first.
    pub fail_when: Option<Arc<dyn Guard>>,
    /// Pause after the first call.
    pub interval: Millis,
    /// Longest pause.
    pub max_interval: Millis,
    /// The growth factor of the pause.
    pub multiplier: f64,
    /// The maximum number of calls.
    pub max_attempts: Option<u64>,
}

/// How a task is undone (section "rollback").
#[derive(Clone, Debug)]
pub struct Rollback {
    /// What undoes it.
    pub undo: Undo,
    /// Makes the input of the undoing call; `None`: the task's input merged with its result.
    pub enter: Option<Arc<dyn Program>>,
    /// The time limit of each attempt.
    pub timeout: Option<Millis>,
    /// Retry policies.
    pub retry: Vec<Retry>,
    /// The polling, if the undoing call is repeated until a condition holds.
    pub poll: Option<Poll>,
    /// From 0 to 9; 9 goes first. `None`: the task's priority.
    pub priority: Option<u8>,
    /// The longest time without a heartbeat of a worker or callback.
    pub heartbeat: Option<Millis>,
    /// The longest wait in a queue before a worker takes it.
    pub wait: Option<Millis>,
}

/// How a task is undone.
#[derive(Clone, Debug)]
pub enum Undo {
    /// A resource is called for it.
    Call(Call),
    /// The child flow that it started undoes itself.
    Child,
}

/// A retry policy.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The errors that it handles.
    pub errors: Vec<Matcher>,
    /// Delay before the first retry.
    pub interval: Millis,
    /// Longest delay.
    pub max_interval: Millis,
    /// How many retries.
    pub max_attempts: u64,
    /// The growth factor of the delay.
    pub multiplier: f64,
    /// The largest random reduction of the delay, as a share from 0 to 1.
    pub jitter: f64,
    /// How the delay grows.
    pub backoff: BackoffKind,
    /// A value for each attempt.
    pub values: Option<Values>,
}

impl Retry {
    /// The policy with these numbers in place of its own.
    #[must_use]
    pub fn with(&self, given: &RetrySettings) -> Self {
        Self {
            interval: given.interval.unwrap_or(self.interval),
            max_interval: given.max_interval.unwrap_or(self.max_interval),
            max_attempts: given.max_attempts.unwrap_or(self.max_attempts),
            multiplier: given.multiplier.unwrap_or(self.multiplier),
            jitter: given.jitter.unwrap_or(self.jitter),
            ..self.clone()
        }
    }
}

/// How a delay grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffKind {
    /// interval · multiplier^(k−1)
    Exponential,
    /// interval
    Fixed,
    /// k⁴ + 15 + uniform(0 to 1)·30·(k+1) seconds
    Polynomial,
}

/// The values for the attempts of a step.
#[derive(Clone, Debug)]
pub enum Values {
    /// Given in the text.
    List(Vec<Value>),
    /// The member `value` of the program's result over the parent's input and variables when the
    /// step is entered, if that is an array.
    Program(Arc<dyn Program>),
}

/// A catch clause.
#[derive(Clone, Debug)]
pub struct Catch {
    /// The errors that it handles.
    pub errors: Vec<Matcher>,
    /// What happens.
    pub target: CatchTarget,
}

/// What a catch clause does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchTarget {
    /// Continues at a sibling.
    Goto(StepId),
    /// Waits for an operator.
    Manual,
}

/// How long to wait.
#[derive(Clone, Debug)]
pub enum Wait {
    /// Seconds: a number or a numeric string.
    Duration(Source),
    /// RFC 3339.
    Timestamp(Source),
}

/// Arms, tried in order.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The arms with conditions.
    pub arms: Vec<Arm>,
    /// The arm without a condition: taken if no condition holds.
    pub default: Option<Arm>,
}

/// An arm of a choice.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its condition; a default arm has none.
    pub condition: Option<Arc<dyn Guard>>,
    /// The condition as written, for pictures.
    pub text: Text,
    /// The steps that run first.
    pub list: Option<ListId>,
    /// The sibling of the choice that is next.
    pub goto: Option<StepId>,
}

/// Branches that run in parallel.
#[derive(Clone, Debug)]
pub struct Parallel {
    /// In the order of the text, by which paths count them.
    pub branches: Vec<Branch>,
    /// How many must succeed.
    pub wait_for: WaitFor,
    /// How many run at once; `None`: all.
    pub concurrency: Option<NumberSource>,
}

/// A branch of a parallel.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Its name, if it has one.
    pub name: Option<Text>,
    /// Indices of the branches that must have succeeded before it.
    pub depends_on: Vec<u32>,
    /// Its steps.
    pub list: ListId,
    /// Priority of its first step.
    pub priority: u8,
}

/// How many branches must succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// All; the first failure is the step's.
    All,
    /// This many; `"any"` is 1.
    Count(u32),
}

/// A list of steps for each item of a collection.
#[derive(Clone, Debug)]
pub struct Foreach {
    /// The lookup of the collection in the step's own input.
    pub collection: Arc<dyn Lookup>,
    /// The key under which an iteration sees its item.
    pub item: Text,
    /// The key under which an iteration sees its number.
    pub index: Option<Text>,
    /// The steps.
    pub list: ListId,
    /// How many iterations run at once.
    pub concurrency: NumberSource,
    /// How many iterations may fail.
    pub tolerance: Option<Tolerance>,
}

/// How many iterations may fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// This many.
    Count(u64),
    /// This share, from 0 to 100 percent.
    Percent(f64),
}

/// An intentional error.
#[derive(Clone, Debug)]
pub struct Fail {
    /// Its name.
    pub error: Option<Source>,
    /// What people read of it.
    pub cause: Option<Source>,
}
