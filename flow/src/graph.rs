//! The compiled flow: the result of a front end, and all that the machine sees of a text.
//!
//! Step and list ids are integers, edges are explicit, paths and conditions are parsed. Nothing here is particular to
//! FDL: a front end fills in programs ([`Program`], [`Guard`], [`Lookup`], [`Parameters`]), how output is passed on ([`OutputPassing`]) and how it names
//! faults ([`FaultNames`]).

mod budget;
mod fault;
mod flow;
mod program;
mod reference;
mod schema;
mod settings;
mod step;

pub use budget::{Budget, Exhausted};
pub use fault::{Fault, FaultKind, FaultNames, Matcher, Origin};
pub use flow::{ConcurrencyKey, Flow, FlowError, FlowParts, List, OnTimeout};
pub use program::{
    CONTEXT_MEMBERS, Context, Guard, Lookup, Output, Parameters, Program, ResourceTemplate, Root, Scope,
};
pub use reference::{Carried, NoPointer, Pointer, SecretReference};
pub use schema::{Schema, SchemaError, SchemaViolation};
pub use settings::{RetrySettings, Settings, SettingsReader};
pub use step::{
    Arm, BackoffKind, Branch, Call, Catch, CatchTarget, Choice, DEFAULT_CONCURRENCY, DEFAULT_PRIORITY, Documents, Fail,
    Foreach, InputMode, NumberSource, OutputMode, OutputPassing, Parallel, Pattern, Poll, Retry, Rollback, Source,
    Step, StepKind, Task, Tolerance, Undo, Values, Wait, WaitFor,
};

/// Number of a step in its flow: an index into `Flow::steps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct StepId(pub u32);

/// Number of a list of steps in its flow: an index into `Flow::lists`; 0 is the flow's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ListId(pub u32);
