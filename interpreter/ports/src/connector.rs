//! Connectors: how a call reaches what it is for.

use starbridge_flow::graph::{FaultKind, Pattern, Pointer};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use std::future::Future;
use std::pin::Pin;

/// The answer to come. Dropping it gives the call up: what can be told so is told.
pub type OutcomeFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Something that can carry calls of one form of resource (`http:`, `cmd:`, …).
pub trait Connector: Send + Sync {
    /// Carries a call. The answer is always an outcome, never a panic or an endless wait without end of its own accord:
    /// whoever calls bounds the time by dropping the future.
    fn call(&self, request: Request) -> OutcomeFuture<'_>;

    /// The members of `serviceParams` that are sent. A secret or a token is put in there and nowhere else.
    fn sent_members(&self) -> SentMembers {
        SentMembers::ALL
    }
}

/// Which members of `serviceParams` a connector sends.
#[derive(Clone, Copy, Debug)]
pub struct SentMembers {
    /// The members that mean something to it. Parameters without any of them are the body, whole.
    pub known: &'static [&'static str],
    /// Those of them whose values are sent.
    pub sent: &'static [&'static str],
}

impl SentMembers {
    /// All is sent.
    pub const ALL: Self = Self { known: &[], sent: &[] };

    /// Whether a place in `serviceParams` is sent.
    pub fn holds(&self, params: &Value, at: &Pointer) -> bool {
        let knows = |members: &Object| members.iter().any(|(name, _)| self.known.contains(&name.as_str()));
        let is_body = !params.as_object().is_some_and(knows);
        is_body || at.first().is_some_and(|member| self.sent.contains(&member.as_str()))
    }

    /// Their names, for messages.
    pub fn names(&self) -> String {
        let names: Vec<String> = self.sent.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }
}

/// A call, ready to leave: resource mapped, tokens signed, secrets resolved.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it goes: one of the forms of section "tasks" (`http://…`, `cmd:…`).
    pub target: String,
    /// What the resource was written as, where the resource map led here.
    pub via: Via,
    /// When the task counts as done.
    pub pattern: Pattern,
    /// The mapped input.
    pub input: Object,
    /// Service parameters; without, the input is all there is to send.
    pub params: Option<Value>,
    /// Ids the call carries.
    pub keys: Keys,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether it undoes something: messages say `"type": "rollback"` then.
    pub rollback: bool,
    /// Whether the step polls: a 202 is an acceptance then, not a result.
    pub polling: bool,
    /// Whether `target` is where a poll was told to ask: a GET without a body.
    pub follow: bool,
    /// When the attempt ends.
    pub timeout_at: Option<Timestamp>,
    /// Bytes an answer may have; one byte more is refused.
    pub answer_limit: usize,
}

/// The family of names through which the resource map led to a target; some have errors of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// Written as it is called.
    #[default]
    Direct,
    /// An `acs:fc:` pattern.
    FunctionCompute,
    /// An `acs:mns:` pattern.
    MessageService,
    /// Any other pattern.
    Map,
}

/// The ids a call carries, as headers, attributes or fields (section "tasks").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// `Idempotency-Key`: one a call, the same when it is sent again.
    pub idempotency: String,
    /// `Starbridge-Step-Key`: one a visit of the step, the same over its retries and polls.
    pub step_visit: String,
    /// The execution's id.
    pub execution: String,
    /// The flow's name.
    pub flow: String,
    /// The step's name.
    pub step: String,
    /// W3C trace context, where there is one.
    pub traceparent: Option<String>,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It gave this result.
    Result(Value),
    /// It was taken; the result comes otherwise. Under `polling` with `status` 202 (see `Signal::Submitted`).
    Accepted {
        /// What the other side said.
        receipt: Option<Value>,
    },
    /// It failed, and the other side may have seen it.
    Failed {
        /// The error: the interpreter's own by its kind, any other by its name. The execution's language names it.
        error: FaultKind,
        /// Its cause.
        cause: String,
        /// Seconds before which it should not be tried again.
        retry_after: Option<u64>,
    },
    /// It failed, and it is certain that the other side saw nothing of it: the call can't be made what it is for, or nothing
    /// answers to the resource. There is nothing to undo. Where that is not certain, it is `Failed`.
    NotSent {
        /// The error: the interpreter's own by its kind, any other by its name. The execution's language names it.
        error: FaultKind,
        /// Its cause.
        cause: String,
    },
}

impl Outcome {
    /// A failure with this name, or of this kind, and with this cause.
    pub fn failed(error: impl Into<FaultKind>, cause: impl Into<String>) -> Self {
        Self::Failed {
            error: error.into(),
            cause: cause.into(),
            retry_after: None,
        }
    }

    /// A call that was not sent because nothing answers to what it names, or it can't be made what it is for.
    pub fn not_sent(cause: impl Into<String>) -> Self {
        Self::NotSent {
            error: FaultKind::Resource,
            cause: cause.into(),
        }
    }

    /// The same of a call that may have been sent before: what this sending knows says nothing about an earlier one.
    #[must_use]
    pub fn sent_before(self) -> Self {
        match self {
            Self::NotSent { error, cause } => Self::failed(error, cause),
            other => other,
        }
    }
}
