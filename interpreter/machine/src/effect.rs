//! Calls, which are work for the outside. They follow from the state, so a crash repeats them under the same key.

use crate::event::EventId;
use starbridge_flow::graph::{Pattern, Pointer};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};

/// A call as it leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct CallToSend {
    /// Number of its `TaskScheduled`.
    pub call: EventId,
    /// The step's name.
    pub step: Text,
    /// Iteration numbers from outside in, where the step stands in foreach steps.
    pub iterations: Vec<u32>,
    /// The resource as written, or where a poll is told to ask.
    pub resource: Text,
    /// Whether `resource` is where a poll is told to ask.
    pub follow: bool,
    /// Whether the step polls, so that a 202 is no result yet.
    pub polling: bool,
    /// When it counts as done.
    pub pattern: Pattern,
    /// Service parameters; without, the input is sent.
    pub params: Option<Value>,
    /// The mapped input.
    pub input: Object,
    /// What is put in when it leaves, each at its place.
    pub references: Vec<CallReference>,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether it undoes something.
    pub rollback: bool,
    /// The child execution that is to undo itself.
    pub child: Option<Text>,
    /// Number of the visit's `StepEntered`, or of the `RollbackStarted`: what a step key is made of.
    pub visit: EventId,
    /// When the attempt times out.
    pub timeout_at: Option<Timestamp>,
    /// How long a worker of a queue may have it, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Longest silence, in milliseconds.
    pub heartbeat_ms: Option<u64>,
    /// Longest waiting in a queue, in milliseconds.
    pub wait_ms: Option<u64>,
    /// 0–9, 9 first.
    pub priority: u8,
}

impl CallToSend {
    /// Its idempotency key: one a call of that execution, the same when it is sent again.
    pub fn idempotency_key(&self, execution: &str) -> String {
        format!("{execution}/{}", self.call)
    }

    /// The key of the step's visit: the same for all calls of its attempts and polls.
    pub fn step_key(&self, execution: &str) -> String {
        format!("{execution}/{}", self.visit)
    }
}

/// What a call is for, as a word: `rollback` where it undoes something, otherwise `normal`.
pub fn call_type(rollback: bool) -> &'static str {
    match rollback {
        true => "rollback",
        false => "normal",
    }
}

/// A reference in a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReference {
    /// The part of the call it stands in.
    pub part: CallPart,
    /// The place in that part.
    pub at: Pointer,
    /// What it refers to.
    pub reference: Reference,
}

/// A part of a call that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// The mapped input.
    Input,
    /// The service parameters.
    Params,
}

/// What is known only to whoever sends a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The secret of that name.
    Secret(Text),
    /// The token of a call.
    Token {
        /// The execution it belongs to.
        execution: Text,
        /// Number of its `TaskScheduled`.
        call: EventId,
    },
}

/// Whether a resource is a queue that workers take tasks from (section "tasks").
pub(crate) fn is_queue(resource: &str) -> bool {
    resource.starts_with("queue:")
}
