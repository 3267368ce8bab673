//! The port for calls of resources.

use crate::history::LOG_BYTES;
use starbridge_flow::graph::{FaultKind, Pattern, Pointer};
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_flow::value::{Object, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// The outcome of a call, once there is one. Dropping the future cancels the call, as far as the receiver can be
/// told.
pub type OutcomeFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// The end of what the receiver of a call logs, while the call goes on. Clones share it, so it outlives a call that is given up.
#[derive(Clone, Debug, Default)]
pub struct LogTail(Arc<Mutex<Vec<u8>>>);

impl LogTail {
    /// How many bytes are kept: the log, and a margin before it. Text next to a cut may be the rest
    /// of a secret and is left out; it then comes from the margin.
    const BYTES: usize = LOG_BYTES + 4_096;

    /// Adds what was logged now.
    pub fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(Self::BYTES);
        kept.drain(..surplus);
    }

    /// What was logged so far; `None` if that is nothing.
    pub fn text(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!kept.is_empty()).then(|| String::from_utf8_lossy(&kept).into_owned())
    }
}

/// Sends calls to resources of one form (`http:`, `cmd:`, …).
pub trait Connector: Send + Sync {
    /// Sends a call. It always gives an outcome: an implementation must not panic or wait forever.
    /// The caller may limit the time further by dropping the future.
    fn call(&self, request: Request) -> OutcomeFuture<'_>;

    /// Sends a call as [`Connector::call`] does, and adds to `log` what the receiver logs
    /// meanwhile, if the connector can see it.
    fn call_logged(&self, request: Request, log: LogTail) -> OutcomeFuture<'_> {
        drop(log);
        self.call(request)
    }

    /// The members of `serviceParams` that are sent. Secrets and tokens are put in there and nowhere else.
    fn sent_members(&self) -> SentMembers {
        SentMembers::ALL
    }
}

/// Which members of `serviceParams` a connector sends.
#[derive(Clone, Copy, Debug)]
pub struct SentMembers {
    /// The members that the connector knows. If parameters have none of them, the whole of them is the body.
    pub known: &'static [&'static str],
    /// The known members whose values are sent.
    pub sent: &'static [&'static str],
}

impl SentMembers {
    /// Everything is sent.
    pub const ALL: Self = Self { known: &[], sent: &[] };

    /// Whether the value at this place in `serviceParams` is sent.
    pub fn holds(&self, params: &Value, at: &Pointer) -> bool {
        let knows = |members: &Object| members.iter().any(|(name, _)| self.known.contains(&name.as_str()));
        let is_body = !params.as_object().is_some_and(knows);
        is_body || at.first().is_some_and(|member| self.sent.contains(&member.as_str()))
    }

    /// The names of the members that are sent, for messages.
    pub fn names(&self) -> String {
        let names: Vec<String> = self.sent.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }
}

/// A call that is ready to be sent: the resource is mapped, tokens are signed, secrets are resolved.
#[derive(Clone, Debug)]
pub struct Request {
    /// The receiver: one of the forms of section "tasks" (`http://…`, `cmd:…`).
    pub target: String,
    /// How the resource map led to the target.
    pub via: ResourceFamily,
    /// When the call counts as done.
    pub pattern: Pattern,
    /// The input of the task, after its mappings.
    pub input: Value,
    /// Service parameters; if `None`, only the input is sent.
    pub params: Option<Value>,
    /// The ids that the call carries.
    pub keys: CallIds,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Whether the call undoes something: messages then say `"type": "rollback"`.
    pub rollback: bool,
    /// Whether the step polls: a 202 then means that there is no result yet.
    pub polling: bool,
    /// Whether `target` is the address at which a poll was told to ask: the request is then a GET without a body.
    pub follow: bool,
    /// When the attempt ends.
    pub timeout_at: Option<Timestamp>,
    /// The largest answer that is accepted, in bytes.
    pub answer_limit: usize,
}

/// The family of names through which the resource map led to a target. Some families have their own errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceFamily {
    /// None: the resource is called as the flow writes it.
    #[default]
    Direct,
    /// An `acs:fc:` pattern.
    FunctionCompute,
    /// An `acs:mns:` pattern.
    MessageService,
    /// Any other pattern.
    Map,
}

/// The ids that a call carries, as headers, attributes or fields (section "tasks").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallIds {
    /// `Idempotency-Key`: the same when the call is sent again.
    pub idempotency: String,
    /// `Starbridge-Step-Key`: the same for all retries and polls of the step's visit.
    pub step_visit: String,
    /// The execution's id.
    pub execution: String,
    /// The flow's name.
    pub flow: String,
    /// The step's name.
    pub step: String,
    /// W3C trace context; `None` without tracing.
    pub traceparent: Option<String>,
}

/// The outcome of sending a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The call's result.
    Result(Value),
    /// The receiver took the call, and the result comes another way. Under `polling`, a receipt with `status` 202
    /// means that there is no result yet (see `Signal::Submitted` of the machine).
    Accepted {
        /// What the receiver answered.
        receipt: Option<Value>,
    },
    /// The call failed, and the receiver may have seen it.
    Failed {
        /// The error: the interpreter's own by its kind, any other by its name. The execution's language names it.
        error: FaultKind,
        /// What happened, for people.
        cause: String,
        /// How long the call should not be tried again.
        retry_after: Option<Seconds>,
    },
    /// The call failed, and it is certain that the receiver saw nothing of it: the call can't be turned into a
    /// request, or nothing answers to the resource. There is nothing to undo. If this is not certain, the outcome is
    /// `Failed`.
    NotSent {
        /// The error: the interpreter's own by its kind, any other by its name. The execution's language names it.
        error: FaultKind,
        /// What happened, for people.
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

    /// The outcome of a call that was not sent, because nothing answers to the resource or the call can't be turned
    /// into a request.
    pub fn not_sent(cause: impl Into<String>) -> Self {
        Self::NotSent {
            error: FaultKind::Resource,
            cause: cause.into(),
        }
    }

    /// This outcome for a call that may have been sent before. `NotSent` becomes `Failed`, because it says nothing
    /// about the earlier sending.
    #[must_use]
    pub fn sent_before(self) -> Self {
        match self {
            Self::NotSent { error, cause } => Self::failed(error, cause),
            other => other,
        }
    }
}
