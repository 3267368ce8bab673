//! Calls, which are work for the outside. They follow from the state: after a crash the same call is sent again under
//! the same idempotency key (`Idempotency-Key` of HTTP calls).

use crate::event::EventId;
use starbridge_flow::graph::{Pattern, Pointer};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};

/// A call that is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct CallToSend {
    /// The number of the call's `TaskScheduled` event.
    pub call: EventId,
    /// The step's name.
    pub step: Text,
    /// The numbers of the iterations around the step, from outside in; empty outside of foreach steps.
    pub iterations: Vec<u32>,
    /// The resource as the flow writes it, or the address at which a poll is to ask.
    pub resource: Text,
    /// Whether `resource` is the address at which a poll is to ask.
    pub follow: bool,
    /// Whether the step polls: an answer 202 is then no result yet.
    pub polling: bool,
    /// When the call counts as done.
    pub pattern: Pattern,
    /// Service parameters; if `None`, the input is sent.
    pub params: Option<Value>,
    /// The input of the task, after its mappings.
    pub input: Value,
    /// Secrets and tokens to put in when the call is sent, each with its place.
    pub references: Vec<CallReference>,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether the call undoes something.
    pub rollback: bool,
    /// The child execution that is to roll itself back, if the call is for one.
    pub child: Option<Text>,
    /// The number of the visit's `StepEntered` event, or of the `RollbackStarted`: the step key is made of it.
    pub visit: EventId,
    /// When the attempt times out.
    pub timeout_at: Option<Timestamp>,
    /// How long a worker of a queue may hold the task.
    pub timeout: Option<Millis>,
    /// The longest time between two heartbeats.
    pub heartbeat: Option<Millis>,
    /// The longest time the task may wait in a queue.
    pub wait: Option<Millis>,
    /// From 0 to 9; 9 goes first.
    pub priority: u8,
}

impl CallToSend {
    /// The idempotency key of this call in the execution with this id. It is the same when the call is sent again.
    pub fn idempotency_key(&self, execution: &str) -> String {
        key(execution, self.call)
    }

    /// The key of the step's visit: the same for all calls of its attempts and polls.
    pub fn step_key(&self, execution: &str) -> String {
        key(execution, self.visit)
    }
}

/// Joined by hand: every call has two keys, and `format!` takes several times as long.
fn key(execution: &str, event: EventId) -> String {
    [execution, "/", &event.0.to_string()].concat()
}

/// The type of a call, as messages carry it: `rollback` if it undoes something, otherwise `normal`.
pub fn call_type(rollback: bool) -> &'static str {
    match rollback {
        true => "rollback",
        false => "normal",
    }
}

/// A secret or token to put into a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReference {
    /// The part of the call in which it stands.
    pub part: CallPart,
    /// Where in that part it stands.
    pub at: Pointer,
    /// What to put there.
    pub reference: Reference,
}

/// A part of a call that can hold references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// The input of the task.
    Input,
    /// The service parameters.
    Params,
}

/// A value that only the sender of a call knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The secret with this name.
    Secret(Text),
    /// The task token of a call.
    Token {
        /// The id of the execution that the call belongs to.
        execution: Text,
        /// The number of the call's `TaskScheduled` event.
        call: EventId,
    },
}

/// Whether a resource is a queue from which workers take tasks (section "tasks").
pub(crate) fn is_queue(resource: &str) -> bool {
    resource.starts_with("queue:")
}
